"""The backups of a running server: one at a time, in a thread of its own, into the folder that its operator named."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from pleiad.job.backup.make import BackupProgress, BackupStage, make_backup
from pleiad.job.backup.manifest import BackupError, Manifest, name_of
from pleiad.job.backup.shelf import Shelf
from pleiad.job.backup.source import RunningAccount
from pleiad.store.sqlite.store import SqliteStore

_log = logging.getLogger(__name__)
_NOTHING_YET = BackupProgress(BackupStage.COPYING, 0, 0)


@dataclass(slots=True)
class BackupRun:
    """One backup that was asked for."""

    name: str
    keep: int | None
    began_at: float = field(default_factory=time.time)
    progress: BackupProgress = _NOTHING_YET
    made: Manifest | None = None
    removed: list[str] = field(default_factory=list)
    failure: str = ""

    @property
    def is_over(self) -> bool:
        return self.made is not None or bool(self.failure)


class BackupRefusedError(Exception):
    """Another backup is under way."""


class Backups:
    """Takes backups of a store that is being served, and knows those there are."""

    def __init__(self, store: SqliteStore, directory: Path) -> None:
        self._store = store
        self.shelf = Shelf(directory)
        self.run: BackupRun | None = None
        """The one under way, or else the last one of this server."""
        self._task: asyncio.Task[None] | None = None
        self._stops = threading.Event()
        self.last_success_at = 0.0

    async def open(self) -> None:
        """Looks at what is there; OSError when the folder cannot be used."""
        await asyncio.to_thread(self._look)

    def _look(self) -> None:
        self.shelf.prepare()
        found = self.shelf.of(self._store.registry.account)
        self.last_success_at = found[-1].taken_at if found else 0.0

    async def all(self) -> list[Manifest]:
        """The whole backups of this account, the oldest first."""
        return await asyncio.to_thread(self.shelf.of, self._store.registry.account)

    def start(self, keep: int | None) -> BackupRun:
        """Begins a backup; BackupRefusedError while there is one under way."""
        if self._stops.is_set() or (self._task is not None and not self._task.done()):
            raise BackupRefusedError
        run = BackupRun(self.shelf.new_name(name_of(time.time())), keep)
        self.run = run
        self._task = asyncio.get_running_loop().create_task(self._take(run))
        return run

    async def _take(self, run: BackupRun) -> None:
        source = RunningAccount(self._store, asyncio.get_running_loop())
        try:
            await asyncio.to_thread(self._work, source, run)
        except BackupError as error:
            run.failure = str(error)
            _log.error("the backup %s failed: %s", run.name, error)
        except Exception as error:
            run.failure = f"{type(error).__name__}: {error}"
            _log.exception("the backup %s failed", run.name)

    def _work(self, source: RunningAccount, run: BackupRun) -> None:
        def tell(progress: BackupProgress) -> None:
            run.progress = progress

        made = make_backup(source, self.shelf, run.name, tell, self._stops.is_set)
        self.last_success_at = made.taken_at
        if run.keep is not None:
            run.removed = self.shelf.thin_out(made, run.keep)
        run.made = made
        _log.info("the backup %s holds %d bytes, %d of them new", made.name, made.size_bytes, made.new_bytes)

    async def close(self) -> None:
        """Gives up the backup under way, and waits until nothing of it is left."""
        self._stops.set()
        if self._task is not None:
            await self._task
