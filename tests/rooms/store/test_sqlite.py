"""What is particular to the SQLite store: group commit, failing disks, locks, versions, open files, log."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from pleiad.errors import STORE_FULL, UNAVAILABLE, PleiadError
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.catalog import Record
from pleiad.store.rows import Mutation, PartitionWrite, Result, Verb
from pleiad.store.segments import Segment, SegmentDroppedError
from pleiad.store.sqlite import logical, schema
from pleiad.store.sqlite.directory import StoreLockedError
from pleiad.store.sqlite.schema import SchemaError
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.store import SqliteStore

EPK = bytes(16)


def put(id: str, body: bytes = b"{}", size_bytes: int = 10) -> PartitionWrite:
    return PartitionWrite(0, 1, 1_000, (Mutation(Verb.UPSERT, EPK, id, body, size_bytes),))


def unwritable(id: str) -> PartitionWrite:
    """A write that SQLite itself cannot take: an integer of more than 64 bits."""
    return put(id, size_bytes=2**70)


async def is_written(segment: Segment, write: PartitionWrite) -> bool:
    try:
        (outcome,) = await segment.commit(write)
    except PleiadError as error:
        if error.row not in (UNAVAILABLE, STORE_FULL):
            raise
        return False
    return outcome.result in (Result.CREATED, Result.REPLACED)


def commits_of(segment: SqliteSegment) -> list[int]:
    """Counts the transactions that change the segment's file from now on."""
    commits: list[int] = []
    writer = segment._open().writer

    def count() -> bool:
        commits.append(1)
        return False

    writer.set_commit_hook(count)
    return commits


async def test_writes_of_one_moment_share_one_transaction(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(put("first"))
    commits = commits_of(segment)
    await asyncio.gather(*(segment.commit(put(f"i{n}")) for n in range(100)))
    assert len(commits) == 1
    rounds = [segment.commit(put(f"{round}-{n}")) for round in range(3) for n in range(20)]
    running = [asyncio.ensure_future(write) for write in rounds[:20]]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running += [asyncio.ensure_future(write) for write in rounds[20:]]
    await asyncio.gather(*running)
    assert len(commits) <= 3, "what arrives while a commit waits for the disk shares the next one"
    assert (await segment.state(0)).items == 161
    await store.close()


async def test_of_a_group_that_fails_only_the_culprit_fails(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    writes = [put(f"i{n}") if n != 7 else unwritable("culprit") for n in range(20)]
    written = await asyncio.gather(*(is_written(segment, write) for write in writes))
    assert [n for n, done in enumerate(written) if not done] == [7]
    rows = await segment.scan(WHOLE, 0, 100)
    assert [row.id for row in rows] == [f"i{n}" for n in range(20) if n != 7]
    assert [row.lsn for row in rows] == list(range(1, 20)), "the failed write used no LSN"
    state = await segment.state(0)
    assert (state.items, state.size_bytes) == (19, 190)
    await store.close()


async def test_the_first_write_of_a_segment_may_fail_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    assert not await is_written(segment, unwritable("a"))
    assert (await segment.state(0)).lsn == 0
    assert await is_written(segment, put("b"))
    assert (await segment.state(0)).lsn == 1
    await store.close()


async def test_a_full_disk_is_unavailable_and_changes_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(put("small", b'{"v":1}'))
    writer = segment._open().writer
    writer.pragma("max_page_count", writer.pragma("page_count") + 10)
    big = b'{"text":"' + b"x" * 100_000 + b'"}'
    together = [put("fits", b'{"v":2}'), put("too big", big), put("small", b'{"v":3}')]
    written = await asyncio.gather(*(is_written(segment, write) for write in together))
    assert written == [True, False, True]
    assert await segment.read(EPK, "too big") is None
    small = await segment.read(EPK, "small")
    assert small is not None
    assert (small.body, small.lsn) == (b'{"v":3}', 3)
    writer.pragma("max_page_count", 1_000_000)
    assert await is_written(segment, put("too big", big)), "with room again the same write succeeds"
    await store.close()
    store = SqliteStore(tmp_path)
    state = await store.segment("s").state(0)
    assert (state.items, state.lsn) == (3, 4)
    await store.close()


async def test_a_commit_that_fails_in_the_end_is_rolled_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(put("a", b'{"v":1}'))
    writer = segment._open().writer
    writer.set_commit_hook(lambda: True)  # SQLite turns such a COMMIT into a rollback
    written = await asyncio.gather(*(is_written(segment, put(id, b'{"v":2}')) for id in ("a", "b", "c")))
    assert written == [False, False, False]
    writer.set_commit_hook(None)
    assert await is_written(segment, put("d"))
    rows = await segment.scan(WHOLE, 0, 10)
    assert [(row.id, row.lsn) for row in rows] == [("a", 1), ("d", 2)]
    assert (await segment.state(0)).items == 2
    await store.close()


async def test_a_segment_whose_connection_broke_opens_anew(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(put("a"))
    segment._open().writer.close()
    assert not await is_written(segment, put("b"))
    assert await is_written(segment, put("c"))
    assert [row.id for row in await segment.scan(WHOLE, 0, 10)] == ["a", "c"]
    await store.close()


async def test_a_catalog_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.save_records([Record("dbs", "r1", "", "db", {})], [])
    store._catalog.pragma("max_page_count", store._catalog.pragma("page_count"))
    with pytest.raises(PleiadError) as caught:
        await store.save_records([Record("dbs", "r2", "", "big", {"text": "x" * 100_000})], [])
    assert caught.value.row is UNAVAILABLE
    assert [record.rid for record in await store.load_records()] == ["r1"]
    await store.close()


async def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreLockedError, match=rf"process {os.getpid()}\) has the data directory"):
        SqliteStore(tmp_path)
    await store.close()
    await SqliteStore(tmp_path).close()


async def test_data_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    await SqliteStore(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "catalog.sqlite"))
    connection.pragma("user_version", schema.VERSION + 1)
    connection.close()
    for _ in range(2):
        with pytest.raises(
            SchemaError, match=r"catalog.sqlite was written by a newer Pleiad .* upgrade first"
        ):
            SqliteStore(tmp_path)
    connection = apsw.Connection(str(tmp_path / "catalog.sqlite"))
    connection.pragma("user_version", schema.VERSION)
    connection.close()
    await SqliteStore(tmp_path).close()


async def test_segments_beyond_the_limit_close_and_still_answer_right(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, open_segments_max=3)
    segments = [store.segment(f"s{n}") for n in range(10)]
    for round in range(3):
        for number, segment in enumerate(segments):
            await segment.commit(put("a", b'{"n":%d}' % (number * 100 + round)))
            assert sum(each.is_open for each in segments) <= 3
        for number, segment in enumerate(reversed(segments)):
            row = await segment.read(EPK, "a")
            assert row is not None
            assert row.body == b'{"n":%d}' % ((9 - number) * 100 + round)
            assert sum(each.is_open for each in segments) <= 3
    await asyncio.gather(*(segment.commit(put("b")) for segment in segments))
    states = [await segment.state(0) for segment in segments]
    assert {(state.items, state.lsn) for state in states} == {(2, 4)}
    await store.close()


@pytest.mark.skipif("unix-excl" not in apsw.vfs_names(), reason="SQLite has other locks here")
@pytest.mark.parametrize("durable", [True, False])
async def test_locks_are_shared_with_other_processes_only_where_something_is_kept(
    tmp_path: Path, durable: bool
) -> None:
    store = SqliteStore(tmp_path, durable=durable)
    segment = store.segment("s")
    await segment.commit(put("a"))
    assert await segment.read(EPK, "a") is not None
    assert bool(list(tmp_path.rglob("*-shm"))) is durable
    # A connection that knows nothing of it sees what is committed all the same, while another one writes.
    reader = schema.connect_reader(tmp_path / "segments" / "s.sqlite")
    await segment.commit(put("b"))
    assert reader.execute("SELECT count(*) FROM item").get == 2
    reader.close()
    await store.close()


async def test_the_log_stays_short_however_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "WAL_PAGES_CHECKPOINT", 50)
    monkeypatch.setattr(schema, "WAL_PAGES_TRUNCATE", 200)
    store = SqliteStore(tmp_path, durable=False)
    segment = store.segment("s")
    log = tmp_path / "segments" / "s.sqlite-wal"
    body = b'{"text":"' + b"x" * 8_000 + b'"}'
    largest = 0
    for number in range(400):
        await asyncio.gather(segment.commit(put(f"i{number}", body)), segment.read(EPK, "i0"))
        largest = max(largest, log.stat().st_size)
    assert largest < 2 * 200 * 4_200, "400 writes of two pages and more each, yet a log of some 200 pages"
    assert (await segment.state(0)).items == 400
    await store.close()
    assert not log.exists()


async def test_a_log_that_a_reader_holds_is_still_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "WAL_PAGES_CHECKPOINT", 20)
    monkeypatch.setattr(schema, "WAL_PAGES_TRUNCATE", 100)
    store = SqliteStore(tmp_path, durable=False)
    segment = store.segment("s")
    await segment.commit(put("hot"))
    stop = False

    async def read_all_the_time() -> None:
        while not stop:
            assert await segment.read(EPK, "hot") is not None
            await asyncio.sleep(0)

    reading = asyncio.ensure_future(read_all_the_time())
    log = tmp_path / "segments" / "s.sqlite-wal"
    for number in range(300):
        await segment.commit(put("hot", b'{"n":%d,"text":"%s"}' % (number, b"y" * 4_000)))
    assert log.stat().st_size < 4 * 100 * 4_200
    stop = True
    await reading
    await store.close()


async def test_a_write_to_a_dropped_segment_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    await segment.commit(put("first"))
    running = [asyncio.ensure_future(is_written(segment, put(f"i{n}"))) for n in range(5)]
    await asyncio.sleep(0)
    await store.drop_segments(["s"])
    assert await asyncio.gather(*running) == [True] * 5, "what was running when the drop began is answered"
    with pytest.raises(SegmentDroppedError):
        await segment.commit(put("late"))
    assert list((tmp_path / "segments").iterdir()) == []
    await store.close()


async def test_closing_waits_for_running_writes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    writing = [asyncio.ensure_future(store.segment("s").commit(put(f"i{n}"))) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*writing)
    store = SqliteStore(tmp_path)
    assert (await store.segment("s").state(0)).items == 50
    await store.close()


async def test_a_write_whose_caller_went_away_is_still_whole(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    writing = [asyncio.ensure_future(segment.commit(put(f"i{n}"))) for n in range(10)]
    await asyncio.sleep(0)
    writing[3].cancel()
    await asyncio.gather(*writing, return_exceptions=True)
    state = await segment.state(0)
    assert (state.items, state.lsn) == (10, 10)
    await store.close()


async def test_a_page_of_one_key_reads_only_that_key(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, durable=False)
    segment = store.segment("s")
    keys = [number.to_bytes(16, "big") for number in range(2_000)]
    many = tuple(Mutation(Verb.UPSERT, key, "i", b"{}", 2) for key in keys)
    await segment.commit(PartitionWrite(0, 1, 1_000, many))
    reader = segment._open().reader
    steps: list[int] = []

    def count() -> bool:
        steps.append(1)
        return False

    reader.set_progress_handler(count, 10)
    await segment.scan(EpkRange(keys[9], keys[9] + b"\x00"), 0, 100)
    of_one_key = len(steps)
    await segment.scan(EpkRange(keys[9], b"\xff"), 0, 100)
    of_a_page_of_a_wide_range = len(steps) - of_one_key
    await segment.scan(WHOLE, 0, 2_000)
    of_everything = len(steps) - of_one_key - of_a_page_of_a_wide_range
    reader.set_progress_handler(None)
    assert of_one_key < of_everything / 100
    assert of_a_page_of_a_wide_range < of_everything / 10, "a page costs its rows, not the whole range"
    await store.close()


@pytest.mark.parametrize("slice_rows", [1, 2, 3, 7, 100])
async def test_slices_of_any_size_find_the_same_largest_logical_partitions(
    tmp_path: Path, slice_rows: int
) -> None:
    store = SqliteStore(tmp_path / "data")
    segment = store.segment("s")
    for number in range(1, 6):
        epk = bytes([number]) + bytes(15)
        for index in range(number):
            mutation = Mutation(Verb.UPSERT, epk, f"i{index}", b"{}", number, 1)
            await segment.commit(PartitionWrite(0, 1, 1_000, (mutation,)))
    path = tmp_path / "data" / "segments" / "s.sqlite"
    found = logical.largest(path, WHOLE, 10, 0, slice_rows)
    assert [(each.items, each.size_bytes) for each in found] == [(n, n * n) for n in (5, 4, 3, 2, 1)]
    await store.close()
