"""A batch that writes whole items, each once, needs no look before it; its answers are those of a batch that looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from pleiad.catalog.throughput import Throughput
from pleiad.engine import batch, transaction
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import Conditions, ItemAnswer
from pleiad.errors import PleiadError
from pleiad.store.segments import SegmentDroppedError

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
CREATE, UPSERT, REPLACE = ItemVerb.CREATE, ItemVerb.UPSERT, ItemVerb.REPLACE


def write(
    verb: ItemVerb, id: str, renamed: str = "", conditions: Conditions | None = None, **more: Any
) -> ItemOperation:
    body = orjson.dumps({"id": renamed or id, "pk": "p", "u": renamed or id, **more})
    named = id if verb is REPLACE else ""
    return ItemOperation(verb, named, body, conditions or Conditions(), ("p",))


KNOWN = [write(CREATE, "a", n=1), write(CREATE, "b", u="taken", n=[1, 2]), write(CREATE, "c")]
BATCHES = {
    "new items": [write(CREATE, "x"), write(UPSERT, "y", n=5)],
    "all three": [write(CREATE, "x"), write(UPSERT, "a", n=2), write(REPLACE, "b", n=[2, 3], u="new")],
    "a name that is free": [write(REPLACE, "a", "z"), write(CREATE, "x")],
    "a name that is taken": [write(CREATE, "x"), write(REPLACE, "a", "b")],
    "a name that gets free": [write(REPLACE, "a", "z"), write(CREATE, "a")],
    "an item twice": [write(UPSERT, "x", n=1), write(UPSERT, "x", n=2), write(REPLACE, "x", n=3)],
    "an item that is there": [write(CREATE, "x"), write(CREATE, "a"), write(CREATE, "y")],
    "an item that is not there": [write(UPSERT, "a", n=7), write(REPLACE, "x")],
    "a unique value": [write(CREATE, "x"), write(UPSERT, "a", u="taken")],
    "a condition": [write(CREATE, "x"), write(UPSERT, "a", conditions=Conditions(if_match='"none"'))],
    "another key": [write(CREATE, "x"), ItemOperation(CREATE, "", b'{"id":"y","pk":"q"}', key=("p",))],
    "no item": [write(CREATE, "x"), ItemOperation(UPSERT, "", b'["y"]', key=("p",))],
}


async def new_container(engine: Engine, id: str) -> Container:
    definition = {
        "id": id,
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
    }
    await engine.create_container(engine.database("d"), definition, Throughput(20_000))
    return await engine.container("d", id)


async def known(container: Container) -> None:
    for each in KNOWN:
        answer = await batch.run_transaction(container, ("p",), [each])
        assert not answer.has_failure


def told(answer: batch.BatchAnswer) -> list[tuple[Any, ...]]:
    """What of each end does not depend on the container."""
    return [
        (each.row, each.message, each.charge_ru)
        if isinstance(each, PleiadError)
        else (each.created, each.charge, each.row and each.row[2:4], each.row and each.row[5:])
        for each in answer.answers
    ]


@pytest.mark.parametrize("operations", BATCHES.values(), ids=BATCHES)
async def test_both_ways_answer_alike(
    engine: Opened, monkeypatch: pytest.MonkeyPatch, operations: Sequence[ItemOperation]
) -> None:
    async with engine() as opened:
        await opened.create_database({"id": "d"}, None)
        short, long = await new_container(opened, "short"), await new_container(opened, "long")
        for container in (short, long):
            await known(container)
        answer = await batch.run_transaction(short, ("p",), operations)
        monkeypatch.setattr(batch, "are_whole_writes", lambda _: False)
        monkeypatch.setattr(batch, "_needs_no_look", lambda _: False)
        expected = await batch.run_transaction(long, ("p",), operations)
        assert told(answer) == told(expected)
        assert answer.charge_ru == expected.charge_ru
        assert answer.partition.lsn == expected.partition.lsn


def read_item(id: str, n: int) -> ItemOperation:
    """The upsert of an item as a client has read it, in text that is plain."""
    value = {"id": id, "pk": "p", "u": id, "_etag": "of before", "_ts": 5, "n": n}
    return ItemOperation(UPSERT, "", orjson.dumps(value), Conditions(), ("p",), value)


@pytest.mark.parametrize("why", ["an item twice", "a segment that is moved"])
async def test_system_properties_are_taken_off_also_where_items_are_measured_again(
    engine: Opened, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    async with engine() as opened:
        await opened.create_database({"id": "d"}, None)
        container = await new_container(opened, "c")
        operations = [read_item("a", 1), read_item("a" if why == "an item twice" else "b", 2)]
        if why != "an item twice":
            commit, commits = container.commit, []

            async def moved_once(*given: Any, **named: Any) -> Any:
                commits.append(given)
                if len(commits) == 1:
                    raise SegmentDroppedError
                return await commit(*given, **named)

            monkeypatch.setattr(container, "commit", moved_once)
        answer = await batch.run_transaction(container, ("p",), operations)
        for each, operation in zip(answer.answers, operations, strict=True):
            assert isinstance(each, ItemAnswer)
            assert each.row is not None
            own = {name: value for name, value in (operation.value or {}).items() if not name.startswith("_")}
            assert each.row.body == orjson.dumps(own)


async def test_a_batch_of_whole_items_makes_no_plan_of_its_steps(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        await opened.create_database({"id": "d"}, None)
        container = await new_container(opened, "c")
        await known(container)
        monkeypatch.setattr(batch, "plan_operation", None)
        monkeypatch.setattr(transaction.Transaction, "look_up", None)
        answer = await batch.run_transaction(container, ("p",), [write(CREATE, "x"), write(UPSERT, "a", n=2)])
        assert not answer.has_failure
