"""Commit rounds over the segments of a SQLite store: one sync for all, nothing seen or answered before it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from pleiad.errors import REQUEST_TIMEOUT, PleiadError
from pleiad.store.rows import Mutation, PartitionWrite, Result, Verb
from pleiad.store.sqlite.file_system import FileSystem, file_system_of
from pleiad.store.sqlite.rounds import (
    LOOP_SECONDS_MAX,
    SHARED_FILES_MIN,
    Commit,
    CommitRounds,
    Member,
    SyncCosts,
)
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.sqlite.threads import DiskThreads
from tests.waiting import until

EPK = bytes(16)
NAMES = ("a", "b", "c", "d")


class Syncs:
    """The syncs of a file system, counted; they wait while the gate is closed, and fail while `failure` is set."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = threading.Event()
        self.gate.set()
        self.failure: OSError | None = None


@pytest.fixture
def syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Syncs]:
    """For tests that need a file system which is synced as a whole."""
    # What both ways take depends on the machine: here files are always synced together where they may be.
    monkeypatch.setattr(SyncCosts, "together_pays", lambda _, files: files >= SHARED_FILES_MIN)
    found = file_system_of(tmp_path)
    if found is None:
        monkeypatch.setattr(
            "pleiad.store.sqlite.store.file_system_of", lambda path: FileSystem(path, _sync_all)
        )
    else:
        found.close()
    noted, sync = Syncs(), FileSystem.sync

    def counted(self: FileSystem) -> None:
        noted.count += 1
        noted.gate.wait()
        if noted.failure is not None:
            raise noted.failure
        sync(self)

    monkeypatch.setattr(FileSystem, "sync", counted)
    yield noted
    noted.gate.set()


def _sync_all(descriptor: int) -> int:
    """What does the same where the file system of this machine is none that is known."""
    if hasattr(os, "sync"):
        os.sync()
    return 0


def put(id: str) -> PartitionWrite:
    return PartitionWrite(0, 1, 1_000, (Mutation(Verb.UPSERT, EPK, id, b"{}", 10),))


async def commit_to_all(segments: list[SqliteSegment], id: str) -> list[Result]:
    answers = await asyncio.gather(*(segment.commit(put(id)) for segment in segments))
    return [outcome.result for (outcome,) in answers]


async def test_segments_that_commit_together_share_one_sync(tmp_path: Path, syncs: Syncs) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    assert await commit_to_all(segments, "one") == [Result.CREATED] * 4
    assert syncs.count == 1
    assert await commit_to_all(segments[:2], "two") == [Result.CREATED] * 2
    assert syncs.count == 1, "two files are synced by their own commits"
    modes = [segment._open().writer.pragma("synchronous") for segment in segments]
    assert modes == [2, 2, 1, 1], "FULL where the last commit had to sync itself"
    await store.close()


async def test_writes_that_come_meanwhile_share_the_next_round(tmp_path: Path, syncs: Syncs) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    await commit_to_all(segments, "first")
    syncs.gate.clear()
    running = asyncio.create_task(commit_to_all(segments, "second"))
    await until(lambda: syncs.count == 2)
    later = [asyncio.create_task(commit_to_all(segments, f"later {number}")) for number in range(5)]
    await asyncio.sleep(0)
    syncs.gate.set()
    await asyncio.gather(running, *later)
    assert syncs.count == 3
    assert (store.commits.commits, store.commits.writes) == (12, 28)
    await store.close()


async def test_what_is_not_on_disk_yet_is_neither_answered_nor_seen(tmp_path: Path, syncs: Syncs) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    await commit_to_all(segments, "old")
    syncs.gate.clear()
    running = asyncio.create_task(commit_to_all(segments, "new"))
    await until(lambda: syncs.count == 2)
    for _ in range(3):
        for segment in segments:
            assert segment.read_at_once(EPK, "old") is not None
            assert segment.read_at_once(EPK, "new") is None
            assert (await segment.state(0)).lsn == 1
        await asyncio.sleep(0)
    assert not running.done()
    syncs.gate.set()
    await running
    for segment in segments:
        assert segment.read_at_once(EPK, "new") is not None
        assert (await segment.state(0)).lsn == 2
    await store.close()


async def test_a_segment_that_is_copied_syncs_itself(tmp_path: Path, syncs: Syncs) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    await commit_to_all(segments, "one")
    await segments[0].track_deletes(True)
    await commit_to_all(segments, "two")
    modes = [segment._open().writer.pragma("synchronous") for segment in segments]
    assert modes == [2, 1, 1, 1]
    await segments[0].track_deletes(False)
    await store.close()


async def test_steps_between_the_rounds_sync_themselves(tmp_path: Path, syncs: Syncs) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    await commit_to_all(segments, "one")
    modes = [
        await segment._alone_on_writer(lambda file: file.writer.pragma("synchronous")) for segment in segments
    ]
    assert modes == [2] * 4
    await store.close()


async def test_after_a_sync_that_failed_nobody_knows_and_everything_goes_on(
    tmp_path: Path, syncs: Syncs
) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    await commit_to_all(segments, "one")
    syncs.failure = OSError(5, "Input/output error")
    answers = await asyncio.gather(
        *(segment.commit(put("two")) for segment in segments), return_exceptions=True
    )
    assert all(isinstance(each, PleiadError) and each.row is REQUEST_TIMEOUT for each in answers)
    assert store.problems.is_troubled
    assert await commit_to_all(segments, "three") == [Result.CREATED] * 4
    assert not store.problems.is_troubled
    assert syncs.count == 2, "no later round relies on what failed"
    await store.close()
    again = SqliteStore(tmp_path)
    for name in NAMES:
        assert again.segment(name).read_at_once(EPK, "three") is not None
    await again.close()


async def test_of_a_round_only_the_member_fails_whose_commit_does(tmp_path: Path, syncs: Syncs) -> None:
    store = SqliteStore(tmp_path)
    segments = [store.segment(name) for name in NAMES]
    await commit_to_all(segments, "one")
    writer: apsw.Connection = segments[1]._open().writer
    writer.set_commit_hook(lambda: True)
    answers = await asyncio.gather(
        *(segment.commit(put("two")) for segment in segments), return_exceptions=True
    )
    assert [isinstance(each, PleiadError) for each in answers] == [False, True, False, False]
    writer.set_commit_hook(None)
    assert segments[1].read_at_once(EPK, "two") is None
    await store.close()


async def test_a_store_that_does_not_sync_commits_without_a_thread(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, durable=False)
    segment = store.segment("a")
    seen: list[int] = []
    writer = segment._open().writer

    def note() -> bool:
        seen.append(threading.get_ident())
        return False

    writer.set_commit_hook(note)
    await segment.commit(put("one"))
    assert seen == [threading.get_ident()]
    await store.close()


def test_files_are_synced_together_only_while_that_is_the_cheaper_way() -> None:
    costs = SyncCosts()
    assert not costs.together_pays(2)
    assert costs.together_pays(4), "nothing is known, so it is tried"
    costs.note(4, True, 0.010)
    assert not costs.together_pays(4), "and so is the other way"
    costs.note(4, False, 0.004)
    assert not costs.together_pays(4)
    assert costs.together_pays(12)
    for _ in range(100):
        costs.note(4, True, 0.002)
    chosen = [costs.together_pays(4) for _ in range(64)]
    assert chosen.count(False) == 2, "now and then the dearer way is gone, to see whether it still is"


def test_a_sync_that_waited_for_the_work_of_others_is_soon_forgotten() -> None:
    costs = SyncCosts()
    costs.note(4, True, 0.100)
    costs.note(4, False, 0.004)
    for _ in range(250):
        is_together = costs.together_pays(4)
        costs.note(4, is_together, 0.002 if is_together else 0.004)
    chosen = [costs.together_pays(4) for _ in range(32)]
    assert chosen.count(True) == 31


class _Good(Member):
    """Commits nothing, and knows how often it was told of it."""

    def __init__(self) -> None:
        self._told = 0

    def begin_commit(self, may_share: bool) -> Commit | None:
        return Commit(lambda: None, self._ended, True)

    def _ended(self, failure: BaseException | None) -> None:
        assert failure is None
        self._told += 1

    def was_told(self, times: int) -> bool:
        return self._told == times


class _FailsToBegin(Member):
    def begin_commit(self, may_share: bool) -> Commit | None:
        raise RuntimeError("nobody foresaw this")


class _FailsToEnd(Member):
    def begin_commit(self, may_share: bool) -> Commit | None:
        return Commit(lambda: None, self._ended, True)

    def _ended(self, failure: BaseException | None) -> None:
        raise RuntimeError("nobody foresaw this")


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("bad", [_FailsToBegin, _FailsToEnd])
async def test_a_member_that_fails_in_an_unforeseen_way_stops_neither_the_others_nor_the_next_round(
    bad: type[Member], durable: bool
) -> None:
    threads = DiskThreads(1)
    rounds, good = CommitRounds(threads, durable, None), _Good()
    for told in (1, 2):
        rounds.join(bad())
        rounds.join(good)
        assert await until(partial(good.was_told, told))
    threads.stop()


@pytest.mark.parametrize("durable", [True, False])
async def test_a_write_that_is_alone_is_committed_when_the_call_returns(
    tmp_path: Path, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SyncCosts, "loop_pays", lambda _: True)
    store = SqliteStore(tmp_path, durable=durable)
    segment = store.segment("s")
    alone = _alone("first")
    written = asyncio.ensure_future(segment.commit(alone))
    assert written.done()
    with apsw.Connection(str(tmp_path / "segments" / "s.sqlite"), flags=apsw.SQLITE_OPEN_READONLY) as other:
        assert other.execute("SELECT id FROM item").fetchall() == [("first",)]
    assert [outcome.result for outcome in await segment.commit(alone)] == [Result.EXISTS]
    assert [outcome.result for outcome in await segment.commit(_alone("second"))] == [Result.CREATED]
    assert (store.commits.commits, store.commits.writes) == (3, 3)
    await store.close()


async def test_a_write_that_is_alone_joins_the_next_round_while_one_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SyncCosts, "loop_pays", lambda _: True)
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    first = asyncio.ensure_future(segment.commit(_alone("first")._replace(is_alone=False)))
    second = asyncio.ensure_future(segment.commit(_alone("second")))
    assert not second.done(), "its transaction is the first one's"
    assert [outcome.result for outcome in (*await first, *await second)] == [Result.CREATED] * 2
    assert (store.commits.commits, store.commits.writes) == (1, 2)
    await store.close()


async def test_a_write_that_is_alone_waits_in_a_thread_until_the_disk_is_known_to_be_quick(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path)
    written = asyncio.ensure_future(store.segment("s").commit(_alone("first")))
    assert not written.done()
    assert [outcome.result for outcome in await written] == [Result.CREATED]
    await store.close()


def test_the_loop_commits_by_itself_only_where_that_takes_no_longer_than_a_thread() -> None:
    costs = SyncCosts()
    assert not costs.loop_pays(), "nothing is known"
    costs.note_thread(2 * LOOP_SECONDS_MAX)
    assert not costs.loop_pays(), "the disk is slow"
    quick = SyncCosts()
    quick.note_thread(LOOP_SECONDS_MAX / 2)
    assert quick.loop_pays(), "to be tried"
    quick.note_loop(LOOP_SECONDS_MAX / 4)
    choices = [quick.loop_pays() for _ in range(512)]
    assert choices.count(False) == 2, "the thread is tried now and then"
    quick.note_loop(8 * LOOP_SECONDS_MAX)
    choices = [quick.loop_pays() for _ in range(512)]
    assert choices.count(True) == 2, "the loop is tried now and then"


def _alone(id: str) -> PartitionWrite:
    return PartitionWrite(0, 0, 1, (Mutation(Verb.CREATE, EPK, id, b"{}", 2, 1),), is_alone=True)
