"""The answers recorded from the planner, and Pleiad's answers beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from differential.compare import Tally, note_answer, same_value
from differential.ours import Case, answer_of, planner_answer, value_of
from pleiad.errors import PleiadError
from pleiad.values.undefined import UNDEFINED

CONSTANTS = "oracle_constants.jsonl"
QUERIES = "oracle_queries.jsonl"


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of recorded answers."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def case_of(record: dict[str, Any]) -> Case:
    return Case(
        record["q"],
        tuple(record.get("parameters") or ()),
        tuple(record.get("paths") or ("/pk",)),
        record.get("vector"),
    )


def check_constants(path: Path, tally: Tally) -> None:
    for record in records(path):
        expected = UNDEFINED if record.get("undefined") else record["v"]
        found: Any
        try:
            found = value_of(record["e"])
        except PleiadError as error:
            found = f"refused: {error.message}"
        is_same = same_value(expected, found)
        tally.note(
            "constants", record["e"], expected, expected if is_same else found, function_of(record["e"])
        )


def check_queries(path: Path, tally: Tally) -> None:
    for record in records(path):
        case = case_of(record)
        note_answer(tally, case.text, planner_answer(record), answer_of(case))


def function_of(expression: str) -> str:
    """The function an expression begins with, which is its most likely cause."""
    name = expression.split("(")[0].strip()
    return name.upper() if name.replace("_", "").isalnum() else "operators"
