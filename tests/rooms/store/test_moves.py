"""Fences, divisions and copies of segments: no row lost, none doubled, no writer with an old epoch."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.moves import Division, Totals
from pleiad.store.rows import Mutation, PartitionState, PartitionWrite, Result, Row, Verb, Version, WholeRow
from pleiad.store.segments import Segment, SegmentDroppedError
from pleiad.store.store import Store

pytestmark = pytest.mark.every_store

Opened = Callable[[], AbstractAsyncContextManager[Store]]

MIDDLE = b"\x20"
LOWER, UPPER = EpkRange(WHOLE.min, MIDDLE), EpkRange(MIDDLE, WHOLE.max)


def epk(number: int) -> bytes:
    return bytes([number]) * 16


def put(key: int, id: str, size_bytes: int = 10, unique: tuple[bytes, ...] = ()) -> Mutation:
    return Mutation(Verb.UPSERT, epk(key), id, b'{"n":1}', size_bytes, 1, None, unique)


def write(*mutations: Mutation, partition: int = 0, epoch: int = 1) -> PartitionWrite:
    return PartitionWrite(partition, epoch, 1_000, mutations)


async def results(segment: Segment, given: PartitionWrite) -> list[Result]:
    return [outcome.result for outcome in await segment.commit(given)]


async def all_rows(segment: Segment, span: EpkRange = WHOLE) -> list[Row]:
    return list(await segment.scan(span, 0, 100_000))


async def test_a_fence_shuts_out_who_knows_the_old_epoch(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(write(put(1, "a")))
        assert await segment.fence(0, 7) is None
        fenced = await segment.fence(0, 1)
        assert fenced == PartitionState(0, 2, 1, fenced.next_sequence if fenced else 0, 1, 10)
        assert await results(segment, write(put(1, "b"))) == [Result.GONE]
        assert await segment.fence(0, 1) is None
    async with opened() as store:
        segment = store.segment("s")
        assert await results(segment, write(put(1, "b"))) == [Result.GONE]
        assert fenced is not None
        await segment.open_partition(fenced)
        assert await results(segment, write(put(1, "b"), epoch=2)) == [Result.CREATED]


async def test_a_partition_that_was_never_written_can_be_fenced(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        fenced = await segment.fence(3, 1)
        assert fenced is not None
        assert (fenced.epoch, fenced.items) == (2, 0)
        assert await results(segment, write(put(1, "a"), partition=3)) == [Result.GONE]


async def test_a_partition_is_opened_again_with_its_counters_and_never_under_an_older_epoch(
    opened: Opened,
) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(write(put(1, "a")))
        await segment.fence(0, 1)
        reopened = await segment.reopen(0, 3)
        assert (reopened.epoch, reopened.lsn, reopened.items) == (3, 1, 1)
        assert await segment.fence(0, 1) is None
        assert await results(segment, write(put(1, "b"), epoch=3)) == [Result.CREATED]
        late = await segment.reopen(0, 2)
        assert (late.epoch, late.lsn, late.items) == (3, 2, 2)
        assert await results(segment, write(put(1, "c"), epoch=2)) == [Result.GONE]
        assert (await segment.reopen(5, 4)).epoch == 4
        assert await results(segment, write(put(1, "d"), partition=5, epoch=4)) == [Result.CREATED]


async def test_a_division_opens_two_partitions_over_the_same_rows(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(write(*[put(key, f"i{key}", 10 + key) for key in range(60)]))
        halves = await segment.divide(Division(0, 1, WHOLE, MIDDLE, 1, 2))
        assert halves is not None
        left, right = halves
        assert (left.items, left.size_bytes, left.lsn) == (32, sum(range(10, 42)), 60)
        assert (right.items, right.size_bytes, right.lsn) == (28, sum(range(42, 70)), 60)
        assert await results(segment, write(put(1, "late"))) == [Result.GONE]
        assert await segment.divide(Division(0, 1, WHOLE, MIDDLE, 1, 2)) is None
        (made,) = await segment.commit(write(put(1, "new"), partition=1))
        assert (made.result, made.lsn) == (Result.CREATED, 61)
        assert (await segment.state(2)).lsn == 60


async def test_a_divided_partition_tells_of_no_change_that_its_halves_made(opened: Opened) -> None:
    def kept(*mutations: Mutation, partition: int = 0) -> PartitionWrite:
        return write(*mutations, partition=partition)._replace(keep_versions=True)

    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(kept(put(1, "a"), put(50, "b")))
        assert await segment.divide(Division(0, 1, WHOLE, MIDDLE, 1, 2)) is not None
        for _ in range(3):
            await segment.commit(kept(put(1, "a"), partition=1))
        await segment.commit(kept(put(50, "c"), partition=2))
        # Read up to LSN 5, the place of the left half, the next change of the right half would be lost.
        assert [(row.id, row.lsn) for row in await segment.changes(WHOLE, 0, 10, partition=0)] == [("b", 2)]
        versions = await segment.versions(WHOLE, 0, 10, partition=0)
        assert [(version.id, version.lsn) for version in versions] == [("a", 1), ("b", 2)]
        halves = [await segment.changes(span, 2, 10, partition=id) for id, span in ((1, LOWER), (2, UPPER))]
        assert [[(row.id, row.lsn) for row in rows] for rows in halves] == [[("a", 5)], [("c", 3)]]


async def test_the_halves_are_counted_exactly_while_writes_go_on(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(write(*[put(key % 64, f"i{key}") for key in range(3_000)]))
        stop, written = asyncio.Event(), asyncio.Event()
        random_of = random.Random(1)

        async def keep_writing() -> None:
            while not stop.is_set():
                key, id = random_of.randrange(64), f"i{random_of.randrange(4_000)}"
                delete = Mutation(Verb.DELETE, epk(key), id)
                failing = Mutation(Verb.REPLACE, epk(key), "absent", b"{}", 1)
                await segment.commit(write(put(key, id, random_of.randrange(50)), delete))
                await segment.commit(write(put(key, id + "x"), failing)._replace(atomic=True))
                await segment.commit(write(put(key, id + "y")))
                written.set()

        writers = [asyncio.create_task(keep_writing()) for _ in range(4)]
        await written.wait()
        halves = await segment.divide(Division(0, 1, WHOLE, MIDDLE, 1, 2))
        stop.set()
        await asyncio.gather(*writers)
        assert halves is not None
        for state, span in zip(halves, (LOWER, UPPER), strict=True):
            assert await segment.totals(span) == Totals(state.items, state.size_bytes)


async def copied(source: Segment, target: Segment, span: EpkRange, meanwhile: Callable[[], object]) -> Totals:
    """Copies a range while `meanwhile` changes it, and gives what the target should hold."""
    lsn = (await source.state(0)).lsn
    await source.track_deletes(True)
    after = 0
    while (last := await target.copy_from(source, span, after, 100)) is not None:
        after = last
        await asyncio.sleep(0)
    base = await target.totals(span)
    deletes = items = size_bytes = 0
    for _ in range(3):
        at = (await source.state(0)).lsn
        done = await target.catch_up(source, span, lsn, deletes)
        lsn, deletes = at, done.last_delete
        items, size_bytes = items + done.items_change, size_bytes + done.size_bytes_change
    meanwhile()
    fenced = await source.fence(0, 1)
    assert fenced is not None
    done = await target.catch_up(source, span, lsn, deletes)
    return Totals(
        base.items + items + done.items_change, base.size_bytes + size_bytes + done.size_bytes_change
    )


@pytest.mark.parametrize("span", [WHOLE, LOWER, UPPER])
async def test_a_copy_catches_up_with_a_busy_source(opened: Opened, span: EpkRange) -> None:
    async with opened() as store:
        source, target = store.segment("source"), store.segment("target")
        for first in range(0, 1_500, 100):
            await asyncio.gather(
                *(
                    source.commit(write(put(key % 64, f"i{key}", unique=(b"%d" % key,))))
                    for key in range(first, first + 100)
                )
            )
        stop = asyncio.Event()
        random_of = random.Random(2)

        async def keep_writing() -> None:
            while not stop.is_set():
                number = random_of.randrange(1_600)
                key, id = number % 64, f"i{number}"
                unique = (b"%d" % random_of.randrange(2_000),)
                rename = Mutation(
                    Verb.REPLACE,
                    epk(key),
                    id,
                    b"{}",
                    5,
                    1,
                    None,
                    unique,
                    new_id=f"i{random_of.randrange(1_600)}",
                )
                delete = Mutation(Verb.DELETE, epk(key), id)
                await source.commit(write(random_of.choice([put(key, id, 20, unique), rename, delete])))

        writers = [asyncio.create_task(keep_writing()) for _ in range(4)]
        expected = await copied(source, target, span, stop.set)
        await asyncio.gather(*writers)
        assert await all_rows(target) == await all_rows(source, span)
        assert await target.totals(WHOLE) == expected == await source.totals(span)


async def test_unique_values_come_with_the_rows(opened: Opened) -> None:
    async with opened() as store:
        source, target = store.segment("source"), store.segment("target")
        await source.commit(write(put(1, "a", unique=(b"x",))))
        await copied(source, target, WHOLE, lambda: None)
        await target.open_partition(PartitionState(0, 2, 1, 2, 1, 10))
        assert await results(target, write(put(1, "b", unique=(b"x",)), epoch=2)) == [Result.UNIQUE_CONFLICT]


async def test_the_middle_has_as_many_logical_partitions_on_each_side(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        assert await segment.middle(WHOLE) is None
        await segment.commit(write(*[put(7, f"i{index}") for index in range(50)]))
        assert await segment.middle(WHOLE) is None
        await segment.commit(write(*[put(key, "one") for key in range(10)]))
        assert await segment.middle(WHOLE) == epk(5)
        assert await segment.middle(EpkRange(epk(6), epk(8))) == epk(7)


async def test_a_dropped_segment_says_so(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(write(put(1, "a")))
        await store.drop_segments(["s"])
        for call in (segment.read(epk(1), "a"), segment.scan(WHOLE, 0, 1), segment.fence(0, 1)):
            with pytest.raises(SegmentDroppedError):
                await call
        with pytest.raises(SegmentDroppedError):
            await segment.commit(write(put(1, "b")))


async def test_the_halves_of_one_part_are_counted_without_what_happens_in_the_other(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await segment.commit(write(*[put(key, f"i{key}") for key in range(60)]))
        assert await segment.divide(Division(0, 1, WHOLE, MIDDLE, 1, 2)) is not None
        stop = asyncio.Event()

        async def write_below() -> None:
            for number in range(10_000):
                await segment.commit(write(put(number % 32, f"new{number}"), partition=1))
                if stop.is_set():
                    return

        writing = asyncio.create_task(write_below())
        halves = await segment.divide(Division(2, 1, UPPER, epk(48), 3, 4))
        stop.set()
        await writing
        assert halves is not None
        assert [(half.items, half.size_bytes) for half in halves] == [(16, 160), (12, 120)]


async def test_a_delete_counts_for_the_range_it_happened_in(opened: Opened) -> None:
    async with opened() as store:
        source, target = store.segment("source"), store.segment("target")
        await source.commit(write(put(1, "a"), put(40, "b")))
        await source.track_deletes(True)
        for span in (LOWER, UPPER):
            after = 0
            while (last := await target.copy_from(source, span, after, 100)) is not None:
                after = last
        await source.commit(write(Mutation(Verb.DELETE, epk(40), "b")))
        lower = await target.catch_up(source, LOWER, 2, 0)
        upper = await target.catch_up(source, UPPER, 2, 0)
        assert (lower.items_change, upper.items_change) == (0, -1)
        assert [row.id for row in await all_rows(target)] == ["a"]


async def test_rows_and_versions_are_imported_as_they_were_also_twice(opened: Opened) -> None:
    number = 5 << 36 | 7
    rows = [
        WholeRow(Row(number, epk(1), "a\0", 40, 900, 30, 11, 3, b'{"n":1}'), (b"[1.0]",)),
        WholeRow(Row(number + 1, epk(1), "b", 41, 901, None, 12, 4, b'{"t":"\\u0000"}'), (b"[2.0]",)),
    ]
    versions = [
        Version(40, epk(1), 0, Verb.CREATE, False, 900, number, "a\0", 11, b'{"n":1}', 0, 0, b""),
        Version(42, epk(1), 1, Verb.DELETE, True, 902, number + 2, "c", 5, b"", 39, 800, b'{"n":3}'),
    ]
    state = PartitionState(5, 3, 42, 10, 2, 23)
    async with opened() as store:
        segment = store.segment("s")
        for _ in range(2):
            await segment.import_rows(WHOLE, rows, (), versions)
            await segment.import_rows(WHOLE, [])
        await segment.open_partition(state)
    async with opened() as store:
        segment = store.segment("s")
        assert await all_rows(segment) == [row for row, _ in rows]
        assert await segment.versions(WHOLE, 0, 100) == versions
        assert await segment.state(5) == state
        taken = put(1, "new", unique=(b"[2.0]",))
        assert await results(segment, write(taken, partition=5, epoch=3)) == [Result.UNIQUE_CONFLICT]
        (made,) = await segment.commit(write(put(1, "new"), partition=5, epoch=3))
        assert made.row is not None
        assert (made.row.lsn, made.row.number) == (43, 5 << 36 | 10)


async def test_who_has_the_data_alone_keeps_nobody_out_afterwards(opened: Opened) -> None:
    async with opened() as store:
        for _ in range(2):
            async with store.alone() as is_alone:
                assert is_alone
        assert await store.load_records() == []
