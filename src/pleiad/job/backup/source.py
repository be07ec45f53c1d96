"""What a backup is taken of: the account of a running server, or a data directory that no server has open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pleiad.job.backup.manifest import BackupError
from pleiad.job.check import CheckError, unused
from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite.store import SqliteStore

Answer = TypeVar("Answer")
_AGAIN_SECONDS = 0.01


class Source(Protocol):
    """An account in SQLite, seen from the thread that backs it up."""

    @property
    def directory(self) -> Path: ...

    @property
    def is_running(self) -> bool: ...

    def at_one_moment(self, call: Callable[[], Answer]) -> Answer:
        """Runs a short call while no write is acknowledged."""

    def hold_log(self, name: str, is_held: bool) -> None:
        """Lets the log of a segment grow, or no longer."""


@dataclass(frozen=True, slots=True)
class RunningAccount:
    """The account of a server in this process; its thread is not the one that backs it up."""

    store: SqliteStore
    loop: asyncio.AbstractEventLoop

    @property
    def directory(self) -> Path:
        return self.store.directory

    @property
    def is_running(self) -> bool:
        return True

    def at_one_moment(self, call: Callable[[], Answer]) -> Answer:
        async def run() -> Answer:
            while self.store.is_emptying_log:
                await asyncio.sleep(_AGAIN_SECONDS)
            return call()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result()

    def hold_log(self, name: str, is_held: bool) -> None:
        self.loop.call_soon_threadsafe(self.store.hold_log, name, is_held)


@dataclass(frozen=True, slots=True)
class RestingAccount:
    """A data directory that is kept from servers."""

    directory: Path
    is_running = False

    def at_one_moment(self, call: Callable[[], Answer]) -> Answer:
        return call()

    def hold_log(self, name: str, is_held: bool) -> None:
        """Nobody writes."""


@contextlib.contextmanager
def at_rest(directory: Path) -> Iterator[RestingAccount]:
    """A data directory, kept from servers for the length of a block."""
    if not (directory / files.CATALOG_FILE).is_file():
        raise BackupError(f"there is no data of Pleiad in {directory}")
    files.check_serves(directory)
    try:
        with unused(directory):
            yield RestingAccount(directory)
    except CheckError:
        raise BackupError(
            f"a server has {directory} open: have that server back it up, by `pleiad backup --endpoint`; it needs "
            "`pleiad serve --backup-dir`"
        ) from None
