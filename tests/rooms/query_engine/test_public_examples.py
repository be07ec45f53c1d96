"""The public examples, through the engine on three physical partitions, give their published results."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.project import REFERENCE

EXAMPLES = REFERENCE / "query_examples.json"
ADDED_ID = "added-by-the-test-"
SYSTEM = {"_rid", "_self", "_etag", "_attachments", "_ts"}
WRONG = {
    "docs/contains-all-cs#1": "the page expects a case-sensitive search to ignore case",
    "olddocs/object-array#2": "the page's result has an id that its data lacks",
    "olddocs/subquery#5": "the page's result counts two of the three entries in its data",
}


def comparable_examples() -> list[Any]:
    if not EXAMPLES.is_file():
        return []
    cases = json.loads(EXAMPLES.read_text(encoding="utf-8"))["cases"]
    return [
        pytest.param(case, id=case["id"])
        for case in cases
        if case["runnable"] and case["deterministic"] and case["id"] not in WRONG
    ]


def plain(value: Any) -> Any:
    """A result without what the engine adds to items, its numbers as doubles of nine digits."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {
            name: plain(part)
            for name, part in sorted(value.items())
            if name not in SYSTEM and not str(part).startswith(ADDED_ID)
        }
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return value
    return float(f"{value:.9g}")


@pytest.mark.parametrize("case", comparable_examples())
async def test_a_public_example_gives_its_published_result(world: Any, case: dict[str, Any]) -> None:
    parameters = {each["name"]: each["value"] for each in case.get("parameters") or ()}
    async with world(partitions=3, key_paths=("/id",)) as w:
        for number, item in enumerate(case["dataset"] or []):
            await w.put({"id": f"{ADDED_ID}{number}", **item})
        whole = await w.query(case["query"], parameters)
        paged = await w.query(case["query"], parameters, page_items=lambda: 1)
    found, expected = plain(whole.results), plain(case["expected"])
    if not case["ordered"]:
        found, expected = sorted(map(json.dumps, found)), sorted(map(json.dumps, expected))
    assert found == expected
    assert plain(paged.results) == plain(whole.results)
