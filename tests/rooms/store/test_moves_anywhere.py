"""Moves between segments anywhere: in all directions, under writes and deletes, the copy is what its source was."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from pleiad.errors import PleiadError
from pleiad.job.digest import digest_range
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.move import MoveAcross, MoveInside, move_between
from pleiad.store.moves import ExportMark, Totals
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import Mutation, PartitionState, PartitionWrite, Result, Row, Verb, WholeRow
from pleiad.store.segments import Segment
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store
from tests.postgres_server import PostgresServer
from tests.waiting import until

KEYS = 16
LOWER = EpkRange(WHOLE.min, bytes([KEYS // 2]))
LONG = "x" * 1_200
"""Long enough for a unique value that PostgreSQL keeps only the hash of."""

OpenOne = Callable[[str], Awaitable[Store]]


@pytest.fixture
def open_one(tmp_path: Path, postgres_server: PostgresServer) -> OpenOne:
    """Opens a new store of a kind, in a directory or a database of its own."""
    made = 0

    async def opened(kind: str) -> Store:
        nonlocal made
        made += 1
        if kind == "sqlite":
            return SqliteStore(tmp_path / f"data-{made}", durable=False)
        return await PostgresStore.open(postgres_server.new_database())

    return opened


def epk(key: int) -> bytes:
    return bytes([key]) * 16


def body_of(unique: int) -> bytes:
    return orjson.dumps({"u": unique, "text": LONG if unique % 3 == 0 else "short"})


def values_of(row: Row) -> tuple[bytes, ...]:
    item = orjson.loads(row.body)
    return (orjson.dumps([item["u"], item["text"]]),)


def put(key: int, id: str, unique: int, new_id: str | None = None) -> Mutation:
    body = body_of(unique)
    values = values_of(Row(0, b"", "", 0, 0, None, 0, 0, body))
    verb = Verb.UPSERT if new_id is None else Verb.REPLACE
    return Mutation(verb, epk(key), id, body, 10 + unique % 7, 1, None, values, new_id=new_id)


def write(*mutations: Mutation, epoch: int = 1) -> PartitionWrite:
    return PartitionWrite(0, epoch, 1_000, mutations, keep_versions=True)


class Writers:
    """Tasks that put, rename, delete and batch in a segment until they are told to stop."""

    def __init__(self, segment: Segment, seed: int) -> None:
        self._segment = segment
        self._random = random.Random(seed)
        self._is_over = False
        self._tasks = [asyncio.create_task(self._write()) for _ in range(4)]
        self.results: list[Result] = []

    async def stop(self) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def _write(self) -> None:
        while not self._is_over:
            key, id = self._random.randrange(KEYS), f"i{self._random.randrange(40)}"
            unique = self._random.randrange(60)
            change = self._random.choice(
                [
                    write(put(key, id, unique)),
                    write(put(key, id, unique, new_id=f"i{self._random.randrange(40)}x")),
                    write(Mutation(Verb.DELETE, epk(key), id)),
                    write(put(key, id, unique), put(key, f"{id}b", unique + 100))._replace(atomic=True),
                ]
            )
            self.results += [outcome.result for outcome in await self._segment.commit(change)]
            await asyncio.sleep(0)


@asynccontextmanager
async def two_stores(open_one: OpenOne, source: str, target: str) -> AsyncIterator[tuple[Store, Store]]:
    first, second = await open_one(source), await open_one(target)
    try:
        yield first, second
    finally:
        await first.close()
        await second.close()


async def filled(store: Store) -> Segment:
    segment = store.segment("source")
    for number in range(300):
        await segment.commit(write(put(number % KEYS, f"i{number // KEYS}", number)))
    return segment


async def digest(segment: Segment, span: EpkRange) -> object:
    return await digest_range(segment, span, lambda rows: None)


DIRECTIONS = [(a, b) for a in ("sqlite", "postgres") for b in ("sqlite", "postgres")]


@pytest.mark.parametrize("span", [WHOLE, LOWER], ids=["whole", "half"])
@pytest.mark.parametrize(("source_kind", "target_kind"), DIRECTIONS)
async def test_a_move_under_writes_leaves_nothing_behind(
    open_one: OpenOne, source_kind: str, target_kind: str, span: EpkRange
) -> None:
    async with two_stores(open_one, source_kind, target_kind) as (first, second):
        source, target = await filled(first), second.segment("target")
        await source.track_deletes(True)
        move = move_between(source, target, 0, span, values_of)
        assert isinstance(move, MoveAcross)
        writers = Writers(source, seed=7)
        while await move.copy_some():
            await asyncio.sleep(0)
        for _ in range(3):
            written = len(writers.results) + 5
            assert await until(lambda least=written: len(writers.results) >= least)
            await move.catch_up()
        await writers.stop()
        assert {Result.REPLACED, Result.CREATED, Result.DELETED} <= set(writers.results)
        fenced = await source.fence(0, 1)
        assert fenced is not None
        await move.catch_up()
        expected = await source.totals(span)
        assert await target.totals(WHOLE) == expected == Totals(move.items, move.size_bytes)
        assert await digest(target, WHOLE) == await digest(source, span)
        await goes_on(target, fenced, expected)


async def goes_on(target: Segment, fenced: PartitionState, totals: Totals) -> None:
    """The copy takes writes as its source would: unique values, long ones too, and LSNs behind the last one."""
    state = PartitionState(0, 2, fenced.lsn, fenced.next_sequence, totals.items, totals.size_bytes)
    await target.open_partition(state)
    rows = await target.scan(WHOLE, 0, 10_000)
    taken = next(row for row in rows if LONG.encode() in row.body)
    copy = Mutation(Verb.CREATE, taken.epk, "copy", taken.body, 1, 1, None, values_of(taken))
    made = Mutation(Verb.CREATE, taken.epk, "made", body_of(9_999), 1, 1)
    refused, done = await target.commit(write(copy, made, epoch=2))
    assert (refused.result, done.result, done.lsn) == (
        Result.UNIQUE_CONFLICT,
        Result.CREATED,
        fenced.lsn + 1,
    )
    assert done.row is not None
    assert done.row.number not in {row.number for row in rows}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_inside_one_store_rows_do_not_leave_the_database(open_one: OpenOne, kind: str) -> None:
    async with two_stores(open_one, kind, kind) as (first, second):
        source, target = await filled(first), first.segment("target")
        await source.track_deletes(True)
        move = move_between(source, target, 0, WHOLE, values_of)
        assert isinstance(move, MoveInside)
        while await move.copy_some():
            pass
        await source.commit(write(Mutation(Verb.DELETE, epk(0), "i0"), put(1, "i0", 500)))
        await move.catch_up()
        assert Totals(move.items, move.size_bytes) == await target.totals(WHOLE)
        assert await digest(target, WHOLE) == await digest(source, WHOLE)
        other = second.segment("target")
        assert not other.can_copy_from(source)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_piece_holds_changes_deletes_and_versions_behind_its_mark(
    open_one: OpenOne, kind: str
) -> None:
    async with two_stores(open_one, kind, kind) as (store, _):
        segment = store.segment("s")
        assert (await segment.export(WHOLE, ExportMark(delete=0), 10)).rows == ()
        made = await segment.commit(write(put(1, "a", 1), put(2, "b", 2), put(3, "c", 3)))
        with pytest.raises(PleiadError, match="not tracked"):
            await segment.export(WHOLE, ExportMark(delete=0), 10)
        await segment.track_deletes(True)
        first = await segment.export(WHOLE, ExportMark(delete=0), 2)
        assert [row.id for row in first.rows] == ["a", "b"]
        assert [version.lsn for version in first.versions] == [1, 2]
        assert (first.deletes, first.mark) == ([], ExportMark(2, 2, 0))
        await segment.commit(write(Mutation(Verb.DELETE, epk(1), "a"), put(2, "b", 5)))
        second = await segment.export(WHOLE, first.mark, 10)
        gone = made[0].row
        assert gone is not None
        assert [(row.id, row.lsn) for row in second.rows] == [("c", 3), ("b", 5)]
        assert list(second.deletes) == [gone.number]
        assert [(version.verb, version.lsn) for version in second.versions] == [
            (Verb.CREATE, 3),
            (Verb.DELETE, 4),
            (Verb.REPLACE, 5),
        ]
        last = await segment.export(WHOLE, second.mark, 10)
        assert (list(last.rows), list(last.deletes), list(last.versions)) == ([], [], [])
        assert last.mark == second.mark


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_what_stands_in_the_way_of_an_import_goes_and_is_counted(open_one: OpenOne, kind: str) -> None:
    def row(number: int, id: str, lsn: int, unique: int) -> WholeRow:
        made = Row(number, epk(1), id, lsn, 1_000, None, 10, 1, body_of(unique))
        return WholeRow(made, values_of(made))

    async with two_stores(open_one, kind, kind) as (store, _):
        segment = store.segment("s")
        change = await segment.import_rows(WHOLE, [row(1, "a", 1, 1), row(2, "b", 2, 2), row(3, "c", 3, 3)])
        assert (change.items, change.size_bytes) == (3, 30)
        # Row 4 has the id of row 1, row 5 the long unique value of row 3, and row 2 was deleted.
        change = await segment.import_rows(WHOLE, [row(4, "a", 4, 4), row(5, "d", 5, 3)], [2, 77])
        assert (change.items, change.size_bytes) == (-1, -10)
        assert [found.number for found in await segment.scan(WHOLE, 0, 10)] == [4, 5]
        outside = EpkRange(epk(2), WHOLE.max)
        assert (await segment.import_rows(outside, [], [4, 5])).items == 0
        assert await segment.totals(WHOLE) == Totals(2, 20)
