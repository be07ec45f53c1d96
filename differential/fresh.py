"""Random texts asked of both: values of expressions, answers to queries."""

from __future__ import annotations

import math
from typing import Any

from differential.compare import Tally, note_answer, same_value
from differential.expressions import Expressions
from differential.ours import EVERYTHING, Answer, Case, answer_of, planner_answer, value_of
from differential.planner import Planner
from differential.queries import Queries
from differential.recorded import function_of
from differential.wild import Wild
from pleiad.errors import PleiadError
from pleiad.values.undefined import UNDEFINED

_EXACT = 2**53
WILD_RATES = {"acceptance": 0.995, "code": 0.99, "text": 0.98, "place": 0.97, "plan": 0.985, "ranges": 0.975}
"""What wild queries have to come to, by measure."""


class NotShown:
    """The planner folds the expression to what it cannot show, or does not fold it."""


def planner_value(planner: Planner, expression: str) -> Any:
    """The value that the planner gives a constant expression, by the key it routes to."""
    document = planner.ask(Case(f"SELECT * FROM c WHERE c.pk = ({expression})"))
    if document is None:
        return NotShown
    if "error" in document:
        return f"refused: {planner_answer(document).errors}"
    ranges = document["plan"]["queryRanges"]
    if ranges[0]["max"] == "Infinity":
        return NotShown
    if not ranges[0]["min"]:
        return UNDEFINED
    value = ranges[0]["min"][0]
    is_large = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= _EXACT
    if isinstance(value, dict) or is_large:
        # Arrays, objects and integers that no double holds are not to be seen in a key, but as texts they are.
        return Text if not expression.startswith("TOSTRING(") else NotShown
    return value


class Text:
    """The value has to be asked for as a text."""


def check_expressions(planner: Planner, seed: int, count: int, tally: Tally) -> None:
    """Compare the values of random expressions."""
    made = Expressions(seed)
    for _ in range(count):
        note_expression(planner, made.expression(), tally)


def note_expression(planner: Planner, expression: str, tally: Tally) -> None:
    """Compare the value of one expression."""
    expected = planner_value(planner, expression)
    if expected is Text:
        expression = f"TOSTRING({expression})"
        expected = planner_value(planner, expression)
    if expected is NotShown or expected is Text:
        return
    found: Any
    try:
        found = value_of(expression)
    except PleiadError as error:
        found = f"refused: {error.message}"
    if isinstance(found, float) and not math.isfinite(found):
        return
    is_refused = isinstance(expected, str) and expected.startswith("refused: ") and isinstance(found, str)
    if is_refused and found.startswith("refused: "):
        found = expected
    is_same = same_value(expected, found)
    cause = function_of(expression)
    if expected is UNDEFINED and "??" in expression and ("NaN" in expression or "0/0" in expression):
        cause = "?? of a comparison with NaN"
    tally.note("values", expression, expected, expected if is_same else found, cause)


def check_queries(planner: Planner, seed: int, count: int, tally: Tally) -> None:
    """Compare the answers to random queries."""
    _check(planner, Queries(seed), count, tally)


def check_wild(planner: Planner, seed: int, count: int, tally: Tally) -> None:
    """Compare the answers to wild queries."""
    _check(planner, Wild(seed), count, tally)


def _check(planner: Planner, made: Queries | Wild, count: int, tally: Tally) -> None:
    for _ in range(count):
        case = made.case()
        document = planner.ask(case)
        if document is not None:
            note_answer(tally, case.text, planner_answer(document), answer_of(case))


def is_narrower(expected: Answer, found: Answer) -> bool:
    """Whether Pleiad routes to fewer keys than the planner, where it could lose a partition."""
    if expected.ranges is None or found.ranges is None or found.ranges == EVERYTHING:
        return False
    return expected.ranges == EVERYTHING or not set(expected.ranges) <= set(found.ranges)
