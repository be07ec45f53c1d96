"""Path indexes come with the queries, are built while writes go on, outlive crashes and go when unused."""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import apsw
import pytest

from pleiad.keys.range import WHOLE
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.rows import Mutation, PartitionWrite, Row, Verb
from pleiad.store.segments import Segment
from pleiad.store.selection import Bound, IndexedPath, OrderPosition, PathOrder, Predicate, Selection
from pleiad.store.sqlite import path_index_sql, select
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.store import SqliteStore
from tests.stores import OpenStore, built
from tests.waiting import SECONDS_MAX, turns, until

A = IndexedPath(("a",))
ORDER = PathOrder(("a",))


def item(number: int, **properties: Any) -> Mutation:
    body = json.dumps({"id": f"i{number}", **properties}).encode()
    return Mutation(Verb.UPSERT, number.to_bytes(16, "big"), f"i{number}", body, 100)


async def put(segment: Segment, mutations: Sequence[Mutation]) -> None:
    for start in range(0, len(mutations), 1_000):
        await segment.commit(PartitionWrite(0, 1, 1_000, tuple(mutations[start : start + 1_000])))


async def dropped(segment: SqliteSegment, path: Path) -> None:
    assert await until(lambda: not tables(path)), "the index is still there"


def tables(path: Path) -> list[str]:
    """The tables and triggers of path indexes in a segment's file."""
    connection = apsw.Connection(str(path))
    names = "SELECT name FROM sqlite_schema WHERE name GLOB 'path_[0-9]*' AND type IN ('table', 'trigger')"
    found: Any = connection.execute(names).fetchall()
    connection.close()
    return sorted(name for (name,) in found)


def file_of(data: Path) -> Path:
    return data / "segments" / "s.sqlite"


async def has_index(segment: Segment) -> bool:
    return await segment.ordered(Selection(WHOLE), ORDER, None, 1) is not None


def equals(value: Any, *path: str) -> Selection:
    return Selection(WHOLE, (Predicate(path or ("a",), one_of=(value,)),))


def ids(rows: Sequence[Row]) -> list[str]:
    return [row.id for row in rows]


async def check_index(segment: Segment) -> None:
    """The index of `a` has the rows a scan has, in the order of their values."""
    assert await has_index(segment)
    rows = await segment.scan(WHOLE, 0, 1_000_000)
    expected = sorted((json.loads(row.body)["a"], row.number) for row in rows)
    found = await segment.ordered(Selection(WHOLE), ORDER, None, len(rows) + 1)
    assert found is not None
    assert [(json.loads(row.body)["a"], row.number) for row, _ in found] == expected
    assert await segment.count(Selection(WHOLE, (Predicate(("a",), is_defined=True),)), True) == (
        len(rows),
        0,
    )


async def test_the_second_use_of_a_path_builds_its_index(open_store: OpenStore, data: Path) -> None:
    store = await open_store(data)
    segment = store.segment("s")
    await put(segment, [item(n, a=n % 7) for n in range(600)])
    segment.note_use([A])
    await turns(20)
    assert segment.index_progress() == 1
    assert not await has_index(segment)
    segment.note_use([A])
    assert segment.index_progress() < 1
    await built(segment)
    await check_index(segment)
    await store.close()


async def test_a_small_segment_needs_no_index(open_store: OpenStore, data: Path) -> None:
    store = await open_store(data)
    segment = store.segment("s")
    await put(segment, [item(n, a=n) for n in range(500)])
    for _ in range(5):
        segment.note_use([A])
    assert segment.index_progress() == 1
    await put(segment, [item(500, a=500)])
    segment.note_use([A])
    assert segment.index_progress() < 1, "it has grown"
    await built(segment)
    await check_index(segment)
    await store.close()


async def test_a_segment_has_at_most_as_many_indexes_as_allowed(data: Path) -> None:
    store = SqliteStore(
        data, durable=False, index_settings=IndexSettings(items_min=0, uses_min=1, indexes_max=3)
    )
    segment = store.segment("s")
    await put(segment, [item(0, a=1)])
    segment.note_use([IndexedPath((name,)) for name in "abcdefgh"])
    await built(segment)
    assert len([name for name in tables(file_of(data)) if name.count("_") == 1]) == 3
    await store.close()


async def test_an_index_nobody_uses_is_dropped_and_others_are_kept(data: Path) -> None:
    now = 1_000_000.0
    settings = IndexSettings(items_min=0, uses_min=1, check_seconds=10, unused_seconds=100, clock=lambda: now)
    store = SqliteStore(data, durable=False, index_settings=settings)
    segment = store.segment("s")
    await put(segment, [item(n, a=n, b=n) for n in range(10)])
    segment.note_use([A, IndexedPath(("b",))])
    await built(segment)
    now += 90
    segment.note_use([A])
    now += 20
    await put(segment, [item(1, a=2, b=3)])
    assert await until(lambda: len(tables(file_of(data))) == 4)
    assert await has_index(segment)
    assert await segment.ordered(Selection(WHOLE), PathOrder(("b",)), None, 1) is None
    await store.close()
    now += 200
    store = SqliteStore(data, durable=False, index_settings=settings)
    segment = store.segment("s")
    assert not await has_index(segment), "unused while the server was down counts too"
    await dropped(segment, file_of(data))
    assert ids(await segment.select(equals(5), 0, 10)) == ["i5"]
    await store.close()


async def test_indexes_a_policy_refuses_are_dropped_at_once_even_while_they_are_built(
    data: Path, eager: IndexSettings
) -> None:
    store = SqliteStore(data, durable=False, index_settings=eager)
    segment = store.segment("s")
    await put(segment, [item(n, a=n % 3) for n in range(60)])
    segment.note_use([A])
    for count in range(12):
        await turns(5 * count)
        segment.drop_indexes(lambda path: path != A)
        assert not await has_index(segment)
        assert len(await segment.select(equals(1), 0, 100)) == 20
        await dropped(segment, file_of(data))
        segment.note_use([A])

    async def is_wanted() -> bool:
        segment.note_use([A])  # one that meets an index on its way out is not remembered
        return segment.index_progress() < 1 or await has_index(segment)

    assert await until(is_wanted)
    await built(segment)
    await check_index(segment)
    await store.close()


async def test_an_index_that_is_dropped_twice_while_it_is_made_leaves_nothing(
    data: Path, eager: IndexSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_made, may_end = Event(), Event()
    make = path_index_sql.make

    def make_late(*asked: Any) -> tuple[int, int]:
        made = make(*asked)
        is_made.set()
        assert may_end.wait(SECONDS_MAX)
        return made

    monkeypatch.setattr(path_index_sql, "make", make_late)
    store = SqliteStore(data, durable=False, index_settings=eager)
    segment = store.segment("s")
    await put(segment, [item(n, a=n % 3) for n in range(60)])
    segment.note_use([A])
    assert await until(is_made.is_set)
    for _ in range(2):
        segment.drop_indexes(lambda path: path != A)
    may_end.set()
    await segment.settle()
    await put(segment, [item(60, a=0)])
    await dropped(segment, file_of(data))
    await store.close()


@pytest.mark.parametrize("is_timed", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_writes_go_on_during_a_build_and_none_waits_longer_than_a_chunk(
    data: Path, is_timed: bool
) -> None:
    store = SqliteStore(data, index_settings=IndexSettings(uses_min=1))
    segment = store.segment("s")
    count = 20_000
    await put(segment, [item(n, a=n * 7_919 % count, text="x" * 200) for n in range(count)])
    segment.note_use([A])
    built_meanwhile, waits_seconds = [], []
    number = 0
    while (before := segment.index_progress()) < 1:
        began = time.perf_counter()
        changes = [item(count + number, a=-number), item(number, a=number / 2), item(number + 5_000, a=1)]
        await segment.commit(PartitionWrite(0, 1, 1_000, tuple(changes)))
        waits_seconds.append(time.perf_counter() - began)
        built_meanwhile.append(count * (segment.index_progress() - before))
        number += 1
    assert len(built_meanwhile) > 5, "the build takes turns with the writes"
    # The last one saw the end, which counts for half of the build.
    assert max(built_meanwhile[:-1]) <= DEFAULT_INDEX_SETTINGS.chunk_items
    if is_timed:  # by `make truth`, on a machine that has nothing else to do
        assert statistics.median(waits_seconds) < 0.1
        assert max(waits_seconds) < 0.6
    await check_index(segment)
    await store.close()


async def test_a_build_goes_on_after_the_store_was_closed_in_the_middle(
    data: Path, eager: IndexSettings
) -> None:
    store = SqliteStore(data, durable=False, index_settings=eager)
    segment = store.segment("s")
    await put(segment, [item(n, a=n * 31 % 100) for n in range(100)])
    segment.note_use([A])
    assert await until(lambda: segment.index_progress() > 0)
    await store.close()
    for _ in range(3):
        store = SqliteStore(data, durable=False, index_settings=eager)
        segment = store.segment("s")
        await put(segment, [item(3, a=50), item(99, a=51)])
        await store.close()
    store = SqliteStore(data, durable=False, index_settings=eager)
    segment = store.segment("s")
    assert len(await segment.select(equals(51), 0, 10)) == 2
    await built(segment)
    await check_index(segment)
    await store.close()


BUILDER = """
import asyncio, os, signal, sys
from pathlib import Path
from threading import Event
sys.path[:0] = {path!r}
from pleiad.store.rows import Mutation, PartitionWrite, Verb
from pleiad.store.selection import IndexedPath
from pleiad.store.index_use import IndexSettings
from pleiad.store.sqlite.store import SqliteStore
from tests.stores import OpenStore, built

async def main():
    settings = IndexSettings(items_min=0, uses_min=1, chunk_items=20, run_items=150)
    segment = SqliteStore(Path({data!r}), index_settings=settings).segment("s")
    segment.note_use([IndexedPath(("a",))])
    number = 0
    while True:
        number += 1
        if number == {kill_at}:  # while the commit is under way
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGKILL)
        body = b'{{"a": %d}}' % (number * 37 % 3000)
        id = number * 11 % 3000
        mutation = Mutation(Verb.UPSERT, id.to_bytes(16, "big"), f"i{{id}}", body, 100)
        await segment.commit(PartitionWrite(0, 1, 1000, (mutation,)))

asyncio.run(main())
"""


async def test_a_kill_in_the_middle_of_a_build_leaves_right_answers_and_a_build_that_goes_on(
    data: Path,
) -> None:
    store = SqliteStore(data)
    await put(store.segment("s"), [item(n, a=n * 37 % 3_000) for n in range(3_000)])
    await store.close()
    unfinished = 0
    for kill_at in (2, 9, 30, 90):
        program = BUILDER.format(path=sys.path, data=str(data), kill_at=kill_at)
        child = subprocess.run([sys.executable, "-c", program], check=False)
        assert child.returncode == -signal.SIGKILL
        store = SqliteStore(data)
        segment = store.segment("s")
        rows = await segment.scan(WHOLE, 0, 10_000)
        wanted = Selection(WHOLE, (Predicate(("a",), low=Bound(1_000, True), high=Bound(1_500, False)),))
        expected = [row for row in rows if 1_000 <= json.loads(row.body)["a"] < 1_500]
        unfinished += segment.index_progress() < 1
        assert await segment.select(wanted, 0, 10_000) == expected
        await store.close()
    assert unfinished > 0, "no kill came in the middle of the build"
    store = SqliteStore(data)
    segment = store.segment("s")
    segment.note_use([A, A])
    await built(segment)
    await check_index(segment)
    await store.close()


async def test_a_failing_build_leaves_writes_and_answers_alone(
    data: Path, eager: IndexSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise apsw.FullError("no space left")

    store = SqliteStore(data, durable=False, index_settings=eager)
    segment = store.segment("s")
    await put(segment, [item(n, a=n) for n in range(30)])
    with monkeypatch.context() as patch:
        patch.setattr("pleiad.store.sqlite.path_index_sql.enter", refuse)
        segment.note_use([A])
        await built(segment)
        await put(segment, [item(30, a=30)])
        assert not await has_index(segment)
        assert ids(await segment.select(equals(30), 0, 10)) == ["i30"]
    await store.close()
    store = SqliteStore(data, durable=False, index_settings=eager)
    segment = store.segment("s")
    await segment.state(0)
    await built(segment)
    await check_index(segment)
    await store.close()


async def test_a_renamed_item_is_found_by_its_new_id_only(
    open_store: OpenStore, data: Path, eager: IndexSettings
) -> None:
    store = await open_store(data, eager)
    segment = store.segment("s")
    await put(segment, [item(n) for n in range(5)])
    segment.note_use([IndexedPath(("id",))])
    await built(segment)
    rename = item(3)._replace(verb=Verb.REPLACE, new_id="other")
    await put(segment, [rename])
    assert ids(await segment.select(equals("other", "id"), 0, 10)) == ["other"]
    assert await segment.count(equals("i3", "id")) == (0, 0)
    await store.close()


async def test_every_page_of_a_long_order_goes_on_where_the_last_one_ended(
    open_store: OpenStore, data: Path
) -> None:
    store = await open_store(data, IndexSettings(uses_min=1))
    segment = store.segment("s")
    await put(segment, [item(n, a=n % 50, b=n % 3) for n in range(5_000)])
    segment.note_use([A, IndexedPath(("b",))])
    await built(segment)
    range_and_part = (Predicate(("a",), low=Bound(10, True)), Predicate(("b",), one_of=(1,)))
    for predicates in ((), range_and_part[:1], range_and_part):
        selection = Selection(WHOLE, predicates)
        expected = sorted(
            (json.loads(row.body)["a"], row.number) for row in await segment.select(selection, 0, 10_000)
        )
        for descending in (False, True):
            found: list[tuple[int, int]] = []
            after: OrderPosition | None = None
            while page := await segment.ordered(selection, PathOrder(("a",), descending), after, 700):
                found += [(json.loads(row.body)["a"], row.number) for row, _ in page]
                after = page[-1][1]
            assert found == (expected[::-1] if descending else expected)
        assert await segment.count(selection, count_only=True) == (len(expected), 0)
        assert await segment.count(selection) == (len(expected), 100 * len(expected))
    await store.close()


async def turns_during(work: Awaitable[object]) -> int:
    """How often others have their turn while something is done."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(others())
    await work
    other.cancel()
    return turns


async def test_a_long_scan_lets_other_work_run(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(data, durable=False)
    segment = store.segment("s")
    await put(segment, [item(n, a=n) for n in range(20_000)])
    nothing = equals("nothing")
    assert await segment.select(nothing, 0, 10) == []
    assert await turns_during(segment.select(nothing, 0, 10)) >= 4
    assert await turns_during(segment.count(nothing)) >= 4
    # Items so large that every piece takes too long are read fewer and fewer at a time.
    monkeypatch.setattr(select, "_PIECE_SECONDS", 0.0)
    assert await turns_during(segment.select(nothing, 0, 10)) > 10_000
    await store.close()


@pytest.mark.parametrize(
    "value", [[1, 2], [True, 0, 1], {"rank": 1}, [2**70, 0, 1], [4, "a", 2**70], [3, [], 1], None]
)
def test_what_is_no_position_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="position"):
        OrderPosition.from_json(value)
