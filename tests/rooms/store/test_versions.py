"""What a store promises of changes: rows by LSN, versions of every change, and reads of one moment."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.rows import ItemKey, Mutation, Outcome, PartitionWrite, Precondition, Result, Verb, Version
from pleiad.store.segments import Segment
from pleiad.store.sqlite import changes as sqlite_changes
from pleiad.store.store import Store
from tests.stores import OpenStore

pytestmark = pytest.mark.every_store

Opened = Callable[[], AbstractAsyncContextManager[Store]]

LOW = bytes(16)
HIGH = b"\x20" * 16
NOW = 1_000
NUMBERS = itertools.count()


def put(
    id: str = "a", n: int = 0, verb: Verb = Verb.UPSERT, epk: bytes = LOW, ttl: int | None = None
) -> Mutation:
    return Mutation(verb, epk, id, b'{"n":%d}' % n, 10, 1, ttl)


def gone(id: str = "a", epk: bytes = LOW) -> Mutation:
    return Mutation(Verb.DELETE, epk, id)


async def commit(
    segment: Segment,
    *mutations: Mutation,
    now: int = NOW,
    default_ttl: int | None = None,
    atomic: bool = False,
    keep: bool = True,
) -> list[Outcome]:
    return list(await segment.commit(PartitionWrite(0, 1, now, mutations, default_ttl, 0, atomic, keep)))


async def all_versions(segment: Segment) -> list[Version]:
    return list(await segment.versions(WHOLE, 0, 10_000))


async def test_every_change_leaves_a_version_with_both_images(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put(n=1))
        await commit(segment, put(n=2), now=NOW + 1)
        await commit(segment, gone(), now=NOW + 2)
        await commit(segment, gone(), now=NOW + 3)
    async with opened() as store:
        created, replaced, deleted = await all_versions(store.segment("s"))
    number = created.number
    assert created == Version(1, LOW, 0, Verb.CREATE, False, NOW, number, "a", 10, b'{"n":1}', 0, 0, b"")
    assert replaced == Version(
        2, LOW, 0, Verb.REPLACE, False, NOW + 1, number, "a", 20, b'{"n":2}', 1, NOW, b'{"n":1}'
    )
    assert deleted == Version(
        3, LOW, 0, Verb.DELETE, False, NOW + 2, number, "a", 10, b"", 2, NOW + 1, b'{"n":2}'
    )


async def test_a_refused_or_undone_write_leaves_none(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put(), keep=False)
        await commit(segment, put(verb=Verb.CREATE))
        await commit(segment, put("b"), put("a", verb=Verb.CREATE), atomic=True)
        await commit(segment, put()._replace(precondition=Precondition(lsn=77)))
        assert await all_versions(segment) == []


async def test_expiry_is_a_change_of_its_own_however_it_is_found(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, put("a", 1, ttl=5), put("b", 1, ttl=5), put("c", 1, ttl=5), default_ttl=-1)
        late = NOW + 5
        (created,) = await commit(segment, put("a", 2, Verb.CREATE), now=late, default_ttl=-1)
        (swept,) = await commit(segment, gone("b"), now=late, default_ttl=-1)
        (whole,) = await commit(segment, put("c", 2, Verb.CREATE), now=late, default_ttl=-1, atomic=True)
        changes = [(v.lsn, v.position, v.id, v.verb.value, v.is_expiry) for v in await all_versions(segment)]
        assert changes[3:] == [
            (4, 0, "a", "delete", True),
            (5, 1, "a", "create", False),
            (6, 0, "b", "delete", True),
            (7, 0, "c", "delete", True),
            (7, 1, "c", "create", False),
        ]
        assert (created.lsn, swept.lsn, whole.lsn) == (5, 6, 7)
        assert swept.result is Result.MISSING
        assert (await segment.state(0)).lsn == 7


async def test_versions_of_one_write_stay_together_and_a_range_is_cut_out(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, *(put(str(n)) for n in range(5)), atomic=True)
        await commit(segment, put("x", epk=HIGH))
        await commit(segment, put("y"))
        assert len(await segment.versions(WHOLE, 0, 2)) == 5
        low, high = EpkRange(b"", HIGH), EpkRange(HIGH, b"\xff")
        assert [version.id for version in await segment.versions(high, 0, 10)] == ["x"]
        assert [version.id for version in await segment.versions(low, 1, 10)] == ["y"]


async def test_old_versions_are_forgotten_and_newer_ones_stay(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        assert await segment.forget_versions(NOW, 10) == 0
        for n in range(6):
            await commit(segment, put(n=n), now=NOW + n)
        assert await segment.forget_versions(NOW, 10) == 0
        assert await segment.forget_versions(NOW + 4, 3) == 3
        assert await segment.forget_versions(NOW + 4, 3) == 1
    async with opened() as store:
        assert [version.lsn for version in await all_versions(store.segment("s"))] == [5, 6]


async def test_versions_move_with_the_rows_of_a_range(opened: Opened) -> None:
    async with opened() as store:
        first, second, merged = (store.segment(name) for name in ("first", "second", "merged"))
        for segment, epk in ((first, LOW), (second, HIGH)):
            await commit(segment, put("early", epk=epk), put("kept", epk=epk))
            await commit(segment, gone("early", epk=epk))
            await segment.track_deletes(True)
            lsn = (await segment.state(0)).lsn
            assert await merged.copy_from(segment, WHOLE, 0, 100) is not None
            assert await merged.copy_from(segment, WHOLE, 1 << 40, 100) is None
            await commit(segment, put("kept", 2, epk=epk), put("late", epk=epk), gone("late", epk=epk))
            await merged.catch_up(segment, WHOLE, lsn, 0)
            await merged.catch_up(segment, WHOLE, lsn, 0)
        low, high = EpkRange(b"", HIGH), EpkRange(HIGH, b"\xff")
        assert list(await merged.versions(low, 0, 100)) == await all_versions(first)
        assert list(await merged.versions(high, 0, 100)) == await all_versions(second)
        assert len(await all_versions(merged)) == 12


async def test_changes_can_start_at_a_time_and_walk_far(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        await commit(segment, *(put(str(n)) for n in range(30)), keep=False)
        await commit(segment, put("late"), now=NOW + 10, keep=False)
        await commit(segment, put("far", epk=HIGH), now=NOW + 11, keep=False)
        window, sqlite_changes._WINDOW_LSNS = sqlite_changes._WINDOW_LSNS, 4
        try:
            rows = await segment.changes(WHOLE, 0, 10, NOW + 10)
            assert [row.id for row in rows] == ["late", "far"]
            assert [row.id for row in await segment.changes(EpkRange(HIGH, b"\xff"), 0, 10)] == ["far"]
            assert len(await segment.changes(WHOLE, 0, 100)) == 32
            assert len(await segment.changes(WHOLE, 0, 7)) == 7
        finally:
            sqlite_changes._WINDOW_LSNS = window


async def test_many_items_are_read_as_of_one_moment(opened: Opened) -> None:
    async with opened() as store:
        segment = store.segment("s")
        keys = [ItemKey(LOW, "a"), ItemKey(LOW, "missing"), ItemKey(HIGH, "a"), ItemKey(LOW, "b")]
        assert list(await segment.read_many(keys)) == [None] * 4
        running = True

        async def write() -> None:
            for n in range(200):
                await commit(segment, put("a", n), put("b", n), atomic=True, keep=False)

        async def look() -> int:
            seen = set()
            while running:
                first, missing, other, second = await segment.read_many(keys)
                assert missing is None
                assert other is None
                assert (first and first.body) == (second and second.body)
                seen.add(first and first.body)
                await asyncio.sleep(0)
            return len(seen)

        looking = asyncio.ensure_future(look())
        await write()
        running = False
        assert await looking > 10


MUTATIONS = st.builds(
    Mutation,
    verb=st.sampled_from(Verb),
    epk=st.sampled_from([LOW, HIGH]),
    id=st.sampled_from(["a", "b", "ç"]),
    body=st.integers(0, 99).map(lambda number: b'{"n":%d}' % number),
    size_bytes=st.integers(5, 45),
    terms=st.just(1),
    ttl=st.sampled_from([None, None, -1, 5]),
    unique_values=st.tuples(st.sampled_from([b"x", b"y", b"z"])),
    new_id=st.sampled_from([None, None, "a", "b", "ç"]),
).map(
    lambda drawn: (
        drawn if drawn.verb is Verb.REPLACE and drawn.new_id != drawn.id else drawn._replace(new_id=None)
    )
)
WRITES = st.lists(
    st.tuples(st.lists(MUTATIONS, min_size=1, max_size=4), st.booleans(), st.integers(0, 10)), max_size=12
)


IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@settings(IN_ONE_FOLDER, max_examples=40)
@given(writes=WRITES)
async def test_replayed_versions_give_the_rows(
    open_store: OpenStore, tmp_path: Path, writes: list[tuple[list[Mutation], bool, int]]
) -> None:
    await _replay(open_store, tmp_path, writes)


@pytest.mark.long
@settings(IN_ONE_FOLDER, max_examples=400)
@given(writes=WRITES)
async def test_replayed_versions_give_the_rows_of_many_more_writes(
    open_store: OpenStore, tmp_path: Path, writes: list[tuple[list[Mutation], bool, int]]
) -> None:
    await _replay(open_store, tmp_path, writes)


async def _replay(
    open_store: OpenStore, directory: Path, writes: list[tuple[list[Mutation], bool, int]]
) -> None:
    store = await open_store(directory)
    now = NOW
    try:
        segment = store.segment(f"s{next(NUMBERS)}")
        for mutations, atomic, seconds in writes:
            now += seconds
            await commit(segment, *mutations, now=now, default_ttl=20, atomic=atomic)
        images: dict[int, tuple[str, int, int, bytes]] = {}
        place = (0, b"", -1)
        for version in await all_versions(segment):
            assert place < (version.lsn, version.epk, version.position)
            place = (version.lsn, version.epk, version.position)
            before = images.pop(version.number, None)
            if version.verb is Verb.CREATE:
                assert before is None
                assert (version.previous_lsn, version.previous_body) == (0, b"")
            else:
                assert before is not None
                assert before[1:] == (version.previous_lsn, version.previous_ts, version.previous_body)
            if version.verb is not Verb.DELETE:
                images[version.number] = (version.id, version.lsn, version.ts, version.body)
        rows = await segment.scan(WHOLE, 0, 1_000)
        assert images == {row.number: (row.id, row.lsn, row.ts, row.body) for row in rows}
        assert (await segment.state(0)).lsn == place[0]
    finally:
        await store.close()
