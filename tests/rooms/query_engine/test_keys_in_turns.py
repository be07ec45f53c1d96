"""Queries with very many keys that are only planned or explained: others have their turn between a few of the keys."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.engine.container import Container
from pleiad.engine.query.explain import explain
from pleiad.engine.query.request import QueryRequest
from pleiad.heads.nosql import queries
from pleiad.keys.range import WHOLE
from pleiad.partition.map import PartitionMap
from pleiad.query.pace import STEPS_OF_A_LOOK, Pace

KEYS = 6_000
TEXT = "SELECT * FROM c WHERE c.pk IN (" + ",".join(f"'k{number}'" for number in range(KEYS)) + ")"


class Run:
    """How many calls there were, and how many of them in a row at most, without a turn for others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[Any], name: str) -> None:
        self.calls = self.in_a_row = self.longest = 0
        counted, worked = getattr(kind, name), Pace.worked

        def call(*arguments: Any) -> Any:
            self.calls += 1
            self.in_a_row += 1
            self.longest = max(self.longest, self.in_a_row)
            return counted(*arguments)

        def turn(pace: Pace, steps: int) -> None:
            self.in_a_row = 0
            worked(pace, steps)

        monkeypatch.setattr(kind, name, call)
        monkeypatch.setattr(Pace, "worked", turn)


async def test_a_plan_of_many_keys_lets_others_in(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as w:
        run = Run(monkeypatch, Container, "span_of")
        document = await queries._plan(w.container, TEXT, {}, None)
    assert len(document["queryRanges"]) == run.calls == KEYS
    assert run.longest <= STEPS_OF_A_LOOK


async def test_an_explanation_of_many_keys_lets_others_in(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        run = Run(monkeypatch, PartitionMap, "overlapping")
        with Pace.of_request(w.container.limits) as pace:
            found = await pace.run(explain, w.container, QueryRequest(TEXT, {}, WHOLE, 1))
    assert f"{KEYS:,} values" in found.why
    assert run.calls == KEYS
    assert run.longest <= STEPS_OF_A_LOOK
