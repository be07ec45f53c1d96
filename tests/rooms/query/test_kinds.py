"""What is said of the types of an expression holds for its value, whatever it is made of."""

from __future__ import annotations

import time
from random import Random

import pytest

from differential.expressions import Expressions
from differential.ours import Case, answer_of
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.functions import REGISTRY
from pleiad.query.route.kinds import kind_of_value, kinds
from pleiad.query.route.signatures import MISSING, NUMBER, SIGNATURES, TESTS, call_kinds
from pleiad.query.run import Query
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()
VALUES = ("1", "-2.5", "'a'", "'2020-01-02'", "true", "null", "[]", "[1, 'a']", "{}", "{a: 1}", "undefined")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20))])
def test_the_value_of_a_random_expression_has_one_of_its_types(seed: int, context: QueryContext) -> None:
    made = Expressions(seed)
    for _ in range(1_500):
        text = made.expression()
        try:
            query = Query(f"SELECT VALUE ({text})", LIMITS)
            found = query.run((), {}, context)
        except PleiadError:
            continue
        # What is no finite number is left out, as what is undefined is.
        allowed = kind_of_value(found[0]) if found else MISSING | NUMBER
        assert kinds(query.plan.block.selection) & allowed, text


@pytest.mark.parametrize("calls", [20, pytest.param(600, marks=pytest.mark.long)])
def test_every_call_has_a_value_of_the_types_of_its_signature(calls: int, context: QueryContext) -> None:
    random = Random(1)

    def value_of(text: str) -> object:
        found = Query(f"SELECT VALUE {text}", LIMITS).run((), {}, context)
        return found[0] if found else UNDEFINED

    given = {text: kind_of_value(value_of(text)) for text in VALUES}
    for name, function in sorted(REGISTRY.items()):
        if function.name in ("NOW", "AGO", "DATETIMEADD", "HASH", "GENERATEEMBEDDINGS", "VECTORDISTANCE"):
            continue
        most = function.max_args if function.max_args is not None else function.min_args + 2
        for _ in range(calls):
            arguments = random.choices(VALUES, k=random.randint(function.min_args, most))
            text = f"{name}({', '.join(arguments)})"
            kinds_of_arguments = [given[each] for each in arguments]
            assert call_kinds(function.name, kinds_of_arguments) & kind_of_value(value_of(text)), text


def test_every_function_has_a_signature() -> None:
    without = {each.name for each in REGISTRY.values()} - SIGNATURES.keys() - TESTS.keys()
    assert without == {"CHOOSE", "IIF"}
    assert call_kinds("ABS", [MISSING]) == MISSING
    assert call_kinds("IS_DEFINED", [MISSING]) == call_kinds("IS_NULL", [MISSING])


def test_aliases_of_aliases_do_not_grow_without_end() -> None:
    rows, condition = "SELECT VALUE c FROM c", "v39 = 1"
    for number in reversed(range(40)):
        above = f"v{number - 1}" if number else "c.pk"
        condition = f"(LET v{number} = [{above}, {above}] IN {condition})"
    for number in range(40):
        rows = f"SELECT VALUE [x{number}, x{number}] FROM ({rows}) x{number}"
    started = time.process_time()
    assert answer_of(Case(f"SELECT * FROM c WHERE {condition}")).ranges in ("all", [])
    assert answer_of(Case(f"{rows} WHERE x39 = 1")).ranges in ("all", [])
    assert time.process_time() - started < 20
