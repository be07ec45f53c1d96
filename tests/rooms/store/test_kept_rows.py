"""Rows that are kept in memory between reads: never another answer than the file's, and no more than there is room."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pleiad.keys.range import WHOLE
from pleiad.store.index_use import IndexSettings
from pleiad.store.rows import Mutation, PartitionWrite, Result, Row, Verb, WholeRow
from pleiad.store.segments import Waiting
from pleiad.store.selection import IndexedPath, PathOrder, Predicate, Selection
from pleiad.store.sqlite import statements
from pleiad.store.sqlite.kept_rows import ROW_BYTES, KeptBytes, KeptRows
from pleiad.store.sqlite.rows import ROW, checked_row
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.store import SqliteStore
from tests.waiting import until

EPK = bytes(16)
NOW = 1_000


def row(number: int, body: bytes = b"{}") -> Row:
    return Row(number, EPK, f"i{number}", 1, NOW, None, len(body), 0, body)


def write(*mutations: Mutation, default_ttl: int | None = None, now: int = NOW) -> PartitionWrite:
    return PartitionWrite(0, 1, now, mutations, default_ttl)


def put(id: str, body: bytes = b"{}", **more: Any) -> Mutation:
    return Mutation(Verb.UPSERT, EPK, id, body, len(body), **more)


def in_file(segment: SqliteSegment, id: str) -> Row | None:
    """What the file says, on the connection of the writer."""
    found: Any = segment._open().writer.execute(statements.READ, (EPK, id)).fetchone()
    return None if found is None else checked_row(found)


def statements_of(segment: SqliteSegment) -> list[Any]:
    """The statements of point reads from now on."""
    file = segment._open()
    read, seen = file.read, []

    def counted(statement: str, parameters: Any) -> Any:
        seen.append(parameters[-1])
        return read(statement, parameters)

    file.read = counted
    return seen


ALL_ROWS = f"SELECT {ROW} FROM item ORDER BY number"
INDEXES = IndexSettings(items_min=0, uses_min=1)
ALL = Selection(WHOLE)
OF_ONE = Selection(WHOLE, (Predicate(("v",), (1,)),))


async def indexed(store: SqliteStore) -> SqliteSegment:
    """A segment of nine items with an index of the values 0, 1 and 2."""
    segment = store.segment("s")
    await segment.commit(write(*[put(f"i{number}", b'{"v":%d}' % (number % 3)) for number in range(9)]))
    segment.note_use([IndexedPath(("v",))])
    assert await until(lambda: not isinstance(segment.select_at_once(OF_ONE, 100), Waiting))
    segment._kept.clear()
    return segment


def in_snapshot(segment: SqliteSegment) -> list[Row]:
    """The rows that a reader sees now, none of them from memory."""
    reading = segment._reading()
    assert reading is not None
    return [checked_row(each) for each in reading.connection.execute(ALL_ROWS)]


def check_queries(segment: SqliteSegment, rows: list[Row]) -> None:
    """Queries by the index find these rows, each as it is."""
    by_value = sorted(rows, key=lambda each: (each.body, each.number))
    assert segment.select_at_once(OF_ONE, 100) == [each for each in rows if each.body == b'{"v":1}']
    placed = segment.ordered_at_once(ALL, PathOrder(("v",)), None, 100)
    assert not isinstance(placed, Waiting)
    assert [each for each, _ in placed] == by_value


async def test_a_row_that_was_read_or_changed_is_read_again_without_a_statement(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(write(put("a"), put("b")))
    seen = statements_of(segment)
    for _ in range(3):
        assert segment.read_at_once(EPK, "a") == in_file(segment, "a")
        assert segment.read_at_once(EPK, "b") == in_file(segment, "b")
    assert seen == ["a", "b"]
    await segment.commit(write(put("a", b'{"v":2}')))
    for _ in range(3):
        assert segment.read_at_once(EPK, "a") == in_file(segment, "a")
        assert segment.read_at_once(EPK, "b") == in_file(segment, "b")
    assert seen == ["a", "b"]
    spaced = put("b", b'{"v": 2}')._replace(size_bytes=len(b'{"v":2}'))
    await segment.commit(write(put("a", b'{"v":3}'), put("a", b'{"v":4}'), spaced))
    for _ in range(3):
        assert segment.read_at_once(EPK, "a") == in_file(segment, "a")
        assert segment.read_at_once(EPK, "b") == in_file(segment, "b")  # without the white space
    assert seen == ["a", "b", "b"]
    await segment.commit(write(put("a", b'{"v":5}'), Mutation(Verb.DELETE, EPK, "a")))
    assert segment.read_at_once(EPK, "a") is None
    await store.close()


async def test_while_a_row_is_being_changed_it_is_read_from_the_file_and_not_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(write(put("a")))
    before = segment.read_at_once(EPK, "a")
    changing = asyncio.ensure_future(segment.commit(write(put("a", b'{"v":2}'))))
    while not segment._busy:
        await asyncio.sleep(0)
    assert segment._kept.found == {}
    reads = set()
    while not changing.done():
        reads.add(segment.read_at_once(EPK, "a"))
        assert before not in segment._kept.found.values()
        await asyncio.sleep(0)
    after = segment.read_at_once(EPK, "a")
    assert after == in_file(segment, "a") != before
    assert reads <= {before, after}
    await store.close()


@pytest.mark.parametrize("seed", range(8))
async def test_reads_are_those_of_the_file_whatever_is_written_renamed_and_removed(
    tmp_path: Path, seed: int
) -> None:
    store = SqliteStore(tmp_path)
    store._kept_bytes = KeptBytes(6 * (ROW_BYTES + 16))
    segment = store.segment("s")
    order = Random(seed)
    ids = [f"i{number}" for number in range(10)]
    for step in range(150):
        mutations = []
        for id in order.sample(ids, order.randint(1, 3)):
            verb = order.choice([Verb.CREATE, Verb.UPSERT, Verb.REPLACE, Verb.DELETE])
            renamed = order.choice(ids) if verb is Verb.REPLACE and order.random() < 0.5 else None
            body = b'{"v":%d}' % step
            mutations.append(Mutation(verb, EPK, id, body, len(body), new_id=renamed))
        await asyncio.gather(*[segment.commit(write(mutation)) for mutation in mutations])
        for id in order.choices(ids, k=8):
            assert segment.read_at_once(EPK, id) == in_file(segment, id)
        assert segment._kept.size_bytes <= 6 * (ROW_BYTES + 16)
    await store.close()


@pytest.mark.parametrize("seed", range(8))
async def test_reads_are_those_of_the_file_whatever_expires_between_two_writes_of_one_commit(
    tmp_path: Path, seed: int
) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    order = Random(seed)
    ids = [f"i{number}" for number in range(4)]
    ends: set[Result] = set()
    for step in range(150):
        together = []
        # As writes are that come at the turn of a second and share a commit.
        for now in sorted(order.choices([step, step + 1], k=4)):
            mutations = []
            for id in order.choices(ids, k=order.choice((1, 1, 2))):
                verb = order.choice([Verb.CREATE, Verb.UPSERT, Verb.REPLACE, Verb.DELETE])
                renamed = order.choice(ids) if verb is Verb.REPLACE and order.random() < 0.3 else None
                body = b'{"v":%d}' % step
                ttl = order.choice((None, 1, 2))
                mutations.append(Mutation(verb, EPK, id, body, len(body), ttl=ttl, new_id=renamed))
            is_atomic = len(mutations) > 1 and order.random() < 0.7
            together.append(write(*mutations, default_ttl=-1, now=NOW + now)._replace(atomic=is_atomic))
        for outcomes in await asyncio.gather(*map(segment.commit, together)):
            ends.update(outcome.result for outcome in outcomes)
        for id in ids:
            assert segment.read_at_once(EPK, id) == in_file(segment, id)
        state = await segment.state(0)
        (counted,) = segment._open().writer.execute("SELECT count(*), sum(size_bytes) FROM item")
        assert (state.items, state.size_bytes) == (counted[0], counted[1] or 0)
    assert {Result.CREATED, Result.REPLACED, Result.DELETED, Result.MISSING, Result.ABANDONED} <= ends
    await store.close()


async def test_queries_that_find_rows_by_an_index_read_none_of_them_twice(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, index_settings=INDEXES)
    segment = await indexed(store)
    seen = statements_of(segment)
    for _ in range(3):
        found = segment.select_at_once(OF_ONE, 100)
        assert not isinstance(found, Waiting)
        assert [each.id for each in found] == ["i1", "i4", "i7"]
    placed = segment.ordered_at_once(ALL, PathOrder(("v",)), None, 100)
    assert not isinstance(placed, Waiting)
    assert [each.id for each, _ in placed] == ["i0", "i3", "i6", "i1", "i4", "i7", "i2", "i5", "i8"]
    assert seen.count(100) == 4  # the statements of the index
    assert sorted(number for number in seen if number != 100) == list(range(1, 10))
    assert segment.read_at_once(EPK, "i4") == in_file(segment, "i4")
    assert "i4" not in seen
    await store.close()


@pytest.mark.parametrize("seed", range(4))
async def test_queries_find_the_rows_of_the_file_whatever_is_written_meanwhile(
    tmp_path: Path, seed: int
) -> None:
    store = SqliteStore(tmp_path, index_settings=INDEXES)
    store._kept_bytes = KeptBytes(6 * (ROW_BYTES + 16))
    segment = await indexed(store)
    order = Random(seed)
    ids = [f"i{number}" for number in range(12)]
    for _ in range(60):
        mutations = []
        for id in order.sample(ids, 3):
            verb = order.choice([Verb.UPSERT, Verb.REPLACE, Verb.DELETE])
            renamed = order.choice(ids) if verb is Verb.REPLACE and order.random() < 0.5 else None
            body = b'{"v":%d}' % order.randrange(3)
            mutations.append(Mutation(verb, EPK, id, body, len(body), new_id=renamed))
        writing = asyncio.gather(*[segment.commit(write(mutation)) for mutation in mutations])
        while not writing.done():
            check_queries(segment, in_snapshot(segment))
            await asyncio.sleep(0)
        check_queries(segment, [checked_row(each) for each in segment._open().writer.execute(ALL_ROWS)])
    await store.close()


async def test_an_expired_item_that_gives_up_its_unique_value_is_forgotten_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(write(put("a", ttl=1, unique_values=(b"u",))))
    assert segment.read_at_once(EPK, "a") is not None
    (outcome,) = await segment.commit(write(put("b", unique_values=(b"u",)), default_ttl=-1, now=NOW + 100))
    assert outcome.result is Result.CREATED
    assert segment.read_at_once(EPK, "a") is None
    await store.close()


async def test_what_is_moved_in_takes_the_place_of_what_was_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(write(put("a")))
    kept = segment.read_at_once(EPK, "a")
    assert kept is not None
    moved = kept._replace(lsn=kept.lsn + 5, body=b'{"v":9}', size_bytes=7)
    await segment.import_rows(WHOLE, [WholeRow(moved)], [], [])
    assert segment.read_at_once(EPK, "a") == in_file(segment, "a") == moved
    await store.close()


async def test_a_closed_file_keeps_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(write(put("a")))
    segment.read_at_once(EPK, "a")
    segment.close_file()
    assert (segment._kept.found, segment._kept.size_bytes, store._kept_bytes._sum_bytes) == ({}, 0, 0)
    await store.close()


def test_files_together_keep_no_more_than_there_is_room_for_and_the_oldest_of_the_fullest_go_first() -> None:
    kept_bytes = KeptBytes(100 * (ROW_BYTES + 2))
    small, large = KeptRows(kept_bytes), KeptRows(kept_bytes)
    for number in range(10):
        small.keep((EPK, f"i{number}"), row(number))
    for number in range(1_000):
        large.keep((EPK, f"i{number}"), row(number))
        assert kept_bytes._sum_bytes == small.size_bytes + large.size_bytes <= 100 * (ROW_BYTES + 2)
    assert len(small.found) == 10
    assert (EPK, "i0") not in large.found
    assert (EPK, "i999") in large.found


def test_a_large_row_is_not_kept() -> None:
    rows = KeptRows(KeptBytes())
    rows.keep((EPK, "i1"), row(1, bytes(65 * 1024)))
    assert rows.found == {}
