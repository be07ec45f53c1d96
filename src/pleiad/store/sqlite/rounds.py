"""Commit rounds: the segments of a store that have something to commit do it together, one round after the other.

Segments that ask while a round waits for the disk take part in the next one, so one call in a disk thread serves all of
them, and as many writes share a round over many segments as in one. A store that does not sync needs no thread: it
commits at once. So does one that syncs, where nobody else asks for anything and that is the quicker way.

A round of one or two files has each of them synced by its own COMMIT. In a round of more, the COMMITs may sync nothing
and one call syncs the file system, where that is known to sync as `fsync` does. That call waits also for what others
wrote to the file system, so what both ways took lately decides between them.

Invariants
- A member is told of the end of its commit after everything is on disk that the round had to put there.
- Each member of a round is told once, of its own failure or of that of the sync that all of them share.
- What a member raises is its own affair: the others are committed, and the next round begins.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from pleiad.store.sqlite.file_system import FileSystem, UnsyncedError
from pleiad.store.sqlite.threads import DiskThreads

_log = logging.getLogger(__name__)

SHARED_FILES_MIN = 3
"""From this many files on, one sync of the file system may be cheaper than one for each of them."""
_DEARER_WAY_ROUNDS = 32
"""So often the way that was dearer is gone again, to see whether it still is."""
_LOOP_TRIAL_COMMITS = 256
"""The same of a commit on the loop or in a thread, where the dearer way may take many times as long."""
_NEWEST_SHARE = 1 / 8
_TRIAL_SHARE = 1 / 2
"""What a trial of the dearer way counts: what is known of it is old, and may have been the work of others."""
LOOP_SECONDS_MAX = 0.002
"""How long the loop may wait for the disk: less than anybody notices who comes meanwhile."""


class Commit(NamedTuple):
    """The end of a transaction that is open on the connection of a member."""

    run: Callable[[], object]
    ended: Callable[[BaseException | None], None]
    is_synced: bool
    """Whether it is on disk when `run` returns."""


class Member(ABC):
    """Somebody who commits in rounds."""

    @abstractmethod
    def begin_commit(self, may_share: bool) -> Commit | None:
        """Runs the statements of its next transaction; None when there is none. Only where it may share a sync with
        others may the commit leave that to the round."""


class SyncCosts:
    """What commits took lately: a file that is synced alone, and all files together; one file on the loop, and by way
    of a thread. On a machine with other work the scheduler lets a thread that only waits for the disk go on sooner than
    the loop, which has used its time; on one without it a thread is two switches more."""

    def __init__(self) -> None:
        self._thread_seconds: float | None = None
        self._loop_seconds: float | None = None
        self._loop_choices = 0
        self._alone_seconds: float | None = None
        self._together_seconds: float | None = None
        self._choices = 0

    def loop_pays(self) -> bool:
        """Whether one file should be committed on the loop, which has nothing else to do, and not in a thread."""
        thread, loop = self._thread_seconds, self._loop_seconds
        if thread is None or thread > LOOP_SECONDS_MAX:
            return False
        if loop is None:
            return True
        self._loop_choices += 1
        is_trial = self._loop_choices % _LOOP_TRIAL_COMMITS == 0
        return (loop < thread) != is_trial

    def note_loop(self, seconds: float) -> None:
        """Takes how long the loop waited for a commit of one file."""
        self._loop_seconds = _average(self._loop_seconds, seconds)

    def note_thread(self, seconds: float) -> None:
        """Takes how long it was until the loop heard of the end of such a commit in a thread."""
        self._thread_seconds = _average(self._thread_seconds, seconds)

    def together_pays(self, files: int) -> bool:
        """Whether a round of so many files should sync them together."""
        if files < SHARED_FILES_MIN:
            return False
        alone, together = self._alone_seconds, self._together_seconds
        if alone is None or together is None:
            return together is None
        self._choices += 1
        is_cheaper = together < files * alone
        return is_cheaper != (self._choices % _DEARER_WAY_ROUNDS == 0)

    def note(self, files: int, is_together: bool, seconds: float) -> None:
        """Takes what a round took."""
        alone, together = self._alone_seconds, self._together_seconds
        is_trial = alone is not None and together is not None and (together >= files * alone) == is_together
        share = _TRIAL_SHARE if is_trial else _NEWEST_SHARE
        if is_together:
            self._together_seconds = _average(together, seconds, share)
        else:
            self._alone_seconds = _average(alone, seconds / files, share)


def _average(before: float | None, newest: float, share: float = _NEWEST_SHARE) -> float:
    return newest if before is None else before + share * (newest - before)


def _begun(member: Member, may_share: bool) -> Commit | None:
    """The commit that a member begins; one that fails beyond what it foresees costs the others nothing."""
    try:
        return member.begin_commit(may_share)
    except Exception:
        _log.exception("a segment could not begin its commit")
        return None


def _failure_of(commit: Commit) -> BaseException | None:
    """Ends a transaction; what it failed with."""
    try:
        commit.run()
    except Exception as error:
        return error
    return None


def _tell(commit: Commit, failure: BaseException | None) -> None:
    try:
        commit.ended(failure)
    except Exception:
        _log.exception("what a segment committed could not be told")


class CommitRounds:
    """The rounds of one store; without a file system that can be synced as a whole, every commit syncs itself."""

    def __init__(self, threads: DiskThreads, durable: bool, file_system: FileSystem | None) -> None:
        self._threads = threads
        self._durable = durable
        self._file_system = file_system
        self._costs = SyncCosts()
        self._joined: list[Member] = []
        self._is_running = False

    def join(self, member: Member, is_alone: bool = False) -> None:
        """Has a member asked for its transaction when the next round begins; at once, where it keeps nobody waiting."""
        if is_alone and not self._is_running and (not self._durable or self._costs.loop_pays()):
            self._commit_on_loop(member)
            return
        self._joined.append(member)
        if not self._is_running:
            self._schedule()

    def _commit_on_loop(self, member: Member) -> None:
        """A round of one member that is over when this returns."""
        self._is_running = True
        commit = _begun(member, False)
        if commit is not None:
            began = time.perf_counter()
            failure = _failure_of(commit)
            self._costs.note_loop(time.perf_counter() - began)
            _tell(commit, failure)
        self._go_on()

    def _schedule(self) -> None:
        # One loop turn later, so that every request read in this turn shares the commit.
        self._is_running = True
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        members, self._joined = self._joined, []
        may_share = self._file_system is not None and self._costs.together_pays(len(members))
        commits = [commit for member in members if (commit := _begun(member, may_share)) is not None]
        failures: list[BaseException | None] = []
        if commits and self._durable:
            began = time.perf_counter()
            self._threads.run(
                lambda: self._commit(commits, failures), lambda _: self._heard(began, commits, failures)
            )
            return
        self._commit(commits, failures)
        self._end(commits, failures)

    def _commit(self, commits: list[Commit], failures: list[BaseException | None]) -> None:
        """Ends the transactions, and syncs what they left to that."""
        began = time.perf_counter()
        self._end_transactions(commits, failures)
        if commits:
            is_together = not all(commit.is_synced for commit in commits)
            self._costs.note(len(commits), is_together, time.perf_counter() - began)

    def _end_transactions(self, commits: list[Commit], failures: list[BaseException | None]) -> None:
        failures += map(_failure_of, commits)
        if self._file_system is None or all(commit.is_synced for commit in commits):
            return
        try:
            self._file_system.sync()
        except OSError as error:
            # What it may have lost nobody can say, so no later round relies on it.
            self._file_system = None
            for index, commit in enumerate(commits):
                if not commit.is_synced and failures[index] is None:
                    failures[index] = UnsyncedError(str(error))

    def _heard(self, began: float, commits: list[Commit], failures: list[BaseException | None]) -> None:
        """The loop hears of the end of a round in a thread."""
        if len(commits) == 1:
            self._costs.note_thread(time.perf_counter() - began)
        self._end(commits, failures)

    def _end(self, commits: list[Commit], failures: list[BaseException | None]) -> None:
        for commit, failure in zip(commits, failures, strict=True):
            _tell(commit, failure)
        self._go_on()

    def _go_on(self) -> None:
        """The next round begins where somebody waits for it."""
        self._is_running = False
        if self._joined:
            self._schedule()
