"""What a store promises of snapshots: one moment, whatever is committed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pleiad.keys.range import EpkRange
from pleiad.store.rows import ItemKey, Mutation, PartitionWrite, Verb
from pleiad.store.segments import Segment
from pleiad.store.store import Store

pytestmark = pytest.mark.every_store

Opened = Callable[[], AbstractAsyncContextManager[Store]]
EPK = bytes(15) + b"\x01"
KEY_A, KEY_C = ItemKey(EPK, "a"), ItemKey(EPK, "c")
SPAN = EpkRange(EPK, EPK + b"\xff")


async def write(segment: Segment, verb: Verb, id: str, body: bytes = b"{}") -> None:
    await segment.commit(PartitionWrite(0, 1, 1_000, (Mutation(verb, EPK, id, body, 10, 1),)))


async def test_a_snapshot_keeps_its_moment_while_others_create_change_and_delete(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        for id in ("a", "b"):
            await write(segment, Verb.CREATE, id, b'{"n":1}')
        snapshot = segment.snapshot()
        await write(segment, Verb.REPLACE, "a", b'{"n":2}')
        await write(segment, Verb.DELETE, "b")
        await write(segment, Verb.CREATE, "c")

        rows = await snapshot.scan(SPAN, 0, 10, 1_000)
        assert [(row.id, row.body) for row in rows] == [("a", b'{"n":1}'), ("b", b'{"n":1}')]
        assert [row.id if row else None for row in await snapshot.read_many([KEY_A, KEY_C])] == ["a", None]
        found = await snapshot.find(rows[1].number)
        assert found is not None
        assert found.id == "b"
        snapshot.close()

        later = segment.snapshot()
        assert [row.id for row in await later.scan(SPAN, 0, 10, 1_000)] == ["a", "c"]
        later.close()
        later.close()


async def test_a_snapshot_of_an_empty_segment_stays_empty(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        snapshot = segment.snapshot()
        await write(segment, Verb.CREATE, "a")
        assert await snapshot.read_many([KEY_A]) == [None]
        assert await snapshot.scan(SPAN, 0, 10, 1_000) == []
        snapshot.close()


async def test_a_snapshot_outlives_the_deletion_of_its_segment(opened: Opened) -> None:
    async with opened() as store:
        await write(store.segment("s"), Verb.CREATE, "a")
        snapshot = store.segment("s").snapshot()
        await store.drop_segments(["s"])
        assert await snapshot.read_many([KEY_A]) != [None]
        snapshot.close()


async def test_a_page_of_a_snapshot_ends_with_the_row_that_fills_it(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        for id in "abcde":
            await write(segment, Verb.CREATE, id)
        snapshot = segment.snapshot()

        async def ids(after: int, limit: int, bytes_max: int) -> str:
            return "".join(row.id for row in await snapshot.scan(SPAN, after, limit, bytes_max))

        assert await ids(0, 10, 1) == "a"
        assert await ids(0, 10, 10) == "a"
        assert await ids(0, 10, 11) == "ab"
        assert await ids(0, 10, 1_000) == "abcde"
        assert await ids(0, 3, 1_000) == "abc"
        second = (await snapshot.scan(SPAN, 0, 2, 1_000))[1]
        assert await ids(second.number, 10, 20) == "cd"
        snapshot.close()
