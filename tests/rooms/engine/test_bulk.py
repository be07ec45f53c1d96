"""Writes of bulk go to the store together; what the whole could not decide is decided for each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from pleiad import errors
from pleiad.catalog.throughput import Throughput
from pleiad.engine import batch, reading
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.heads.nosql.batch import text as batch_text
from pleiad.item import body
from pleiad.partition.partition import Partition
from pleiad.store.rows import Mutation, Outcome, Result
from pleiad.store.segments import SegmentDroppedError

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
Commit = Callable[..., Awaitable[Sequence[Outcome]]]


async def new_container(engine: Engine) -> Container:
    await engine.create_database({"id": "d"}, None)
    definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    await engine.create_container(engine.database("d"), definition, Throughput(20_000))
    return await engine.container("d", "c")


def operation(verb: ItemVerb, id: str, pk: str, n: int) -> ItemOperation:
    text = orjson.dumps({"id": id, "pk": pk, "n": n})
    return ItemOperation(verb, id if verb is ItemVerb.REPLACE else "", text, key=(pk,))


async def value(container: Container, id: str, pk: str) -> Any:
    row = (await reading.read(container, id, (pk,))).row
    assert row is not None
    return orjson.loads(row.body)["n"]


def statuses(answer: batch.BatchAnswer) -> list[Any]:
    return [each.row if isinstance(each, PleiadError) else each.created for each in answer.answers]


@pytest.mark.every_store
async def test_writes_to_several_partitions_share_a_commit_and_each_has_an_end_of_its_own(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        assert len(container.map.partitions) > 1
        commits: list[int] = []
        whole: Commit = container.commit

        def counted(partition: Partition, mutations: Sequence[Mutation], *rest: Any) -> Any:
            commits.append(len(mutations))
            return whole(partition, mutations, *rest)

        monkeypatch.setattr(container, "commit", counted)
        operations = [operation(ItemVerb.CREATE, f"i{n}", f"k{n}", n) for n in range(30)]
        operations += [
            operation(ItemVerb.CREATE, "i0", "k0", 100),
            operation(ItemVerb.UPSERT, "i1", "k1", 101),
            operation(ItemVerb.UPSERT, "i1", "k1", 102),
            operation(ItemVerb.REPLACE, "i2", "k2", 103),
            operation(ItemVerb.REPLACE, "none", "k2", 104),
            ItemOperation(ItemVerb.CREATE, body=b"{", key=("k2",)),
        ]
        answer = await batch.run_bulk(container, operations)
        assert len(commits) == len(container.map.partitions)
        assert statuses(answer)[:30] == [True] * 30
        ends = [errors.ITEM_EXISTS, False, False, False, errors.ITEM_NOT_FOUND, errors.BAD_JSON]
        assert statuses(answer)[30:] == ends
        assert [await value(container, f"i{n}", f"k{n}") for n in range(4)] == [0, 102, 103, 3]
        spent = sum(partition.governor.snapshot().ru for partition in container.map.partitions)
        reads = 4 * 1.0
        assert spent == pytest.approx(answer.charge_ru + reads)


@pytest.mark.parametrize("reason", ["unavailable", "gone", "dropped"])
async def test_writes_that_the_whole_could_not_decide_are_done_one_by_one_in_their_order(
    engine: Opened, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        whole: Commit = container.commit

        async def refuses_several(partition: Partition, mutations: Sequence[Mutation], *rest: Any) -> Any:
            if len(mutations) == 1:
                return await whole(partition, mutations, *rest)
            if reason == "unavailable":
                raise errors.UNAVAILABLE(reason="The store could not write; nothing was changed.")
            if reason == "dropped":
                raise SegmentDroppedError()
            return [Outcome(Result.GONE)] * len(mutations)

        monkeypatch.setattr(container, "commit", refuses_several)
        operations = [operation(ItemVerb.UPSERT, "i", "k", n) for n in range(20)]
        answer = await batch.run_bulk(container, operations)
        assert statuses(answer) == [True] + [False] * 19
        assert await value(container, "i", "k") == 19


async def test_what_may_have_been_written_is_not_written_again(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        tried: list[int] = []

        async def says_nothing(partition: Partition, mutations: Sequence[Mutation], *rest: Any) -> Any:
            tried.append(len(mutations))
            raise errors.REQUEST_TIMEOUT(reason="The store did not answer in time.")

        monkeypatch.setattr(container, "commit", says_nothing)
        answer = await batch.run_bulk(
            container, [operation(ItemVerb.CREATE, f"i{n}", "k", n) for n in range(5)]
        )
        assert statuses(answer) == [errors.REQUEST_TIMEOUT] * 5
        assert tried == [5]


async def test_the_items_of_a_compact_request_are_read_once(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await new_container(opened)
        texts = [
            b'{"operationType":"Create","partitionKey":["k%d"],"resourceBody":{"id":"i","pk":"k%d","n":%d}}'
            % (n, n, n)
            for n in range(5)
        ]
        raw = b"[" + b",".join(texts) + b"]"
        entries = await batch_text.read(raw, None, container, container.limits)

        def read_again(*_: Any) -> Any:
            raise AssertionError("an item was read again")

        monkeypatch.setattr(body, "read", read_again)
        answer = await batch.run_bulk(container, [entry.operation for entry in entries])
        assert statuses(answer) == [True] * 5
        assert [await value(container, "i", f"k{n}") for n in range(5)] == list(range(5))
