"""Processes that exchange a container for a copy while they write to it, and are killed at one of its durable steps.

    python -m tests.proofs.crash.copy_victim

reads from standard input one case a line, as JSON, carries each out in a process of its own, and writes how that ended:
the signal that killed it, or 0. Each notes in a file, before and after, what it writes to the container.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pleiad.engine.engine import Engine
from pleiad.settings import SQLITE
from pleiad.store.checked.segment import CheckedSegment
from pleiad.store.checked.store import CheckedCatalogStore, CheckedSegmentStore, checked
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from tests.rooms.container_copy.conftest import Account
from tests.stores import PATIENT

ITEMS = 12
_DURABLE = {
    CheckedCatalogStore: ("save_records",),
    CheckedSegmentStore: ("drop_segments",),
    CheckedSegment: ("commit", "fence", "reopen", "open_partition", "track_deletes"),
}
"""The calls of a store that change what is on the disk."""

Call = Callable[..., Coroutine[Any, Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Where the data is, and at which moment the process is killed; each durable step has one before and one after."""

    store: str
    directory: str
    kill_at: int

    @property
    def notes(self) -> Path:
        """What it wrote and was told, a line each."""
        return Path(self.directory) / "notes"


class Fate:
    """Kills this process when it comes to a moment of the copy."""

    def __init__(self, kill_at: int) -> None:
        self._left = kill_at
        self.is_near = ContextVar("is_near", default=False)
        """Whether the moments of a task count."""

    def meet(self) -> None:
        if self.is_near.get():
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def rule(self, call: Call) -> Call:
        async def mortal(*arguments: Any, **named: Any) -> Any:
            self.meet()
            answer = await call(*arguments, **named)
            self.meet()
            return answer

        return mortal


async def carry_out(case: Case) -> None:
    fate = Fate(case.kill_at)
    for kind, names in _DURABLE.items():
        for name in names:
            setattr(kind, name, fate.rule(getattr(kind, name)))
    data = Path(case.directory) / "data"
    real = SqliteStore(data, durable=False) if case.store == SQLITE else await PostgresStore.open(case.store)
    engine = Engine(checked(real), PATIENT)
    await engine.open()
    account = Account(engine)
    source = await account.container("a")
    for number in range(ITEMS):
        await account.put(source, id=f"i{number}", pk=f"p{number % 3}", t=f"t{number % 5}", n=0)
    writing = asyncio.create_task(_write(account, case.notes))
    fate.is_near.set(True)
    account.copies.open()
    await account.ended(await account.start(partitionKey="/t", switch=True))
    writing.cancel()


async def _write(account: Account, path: Path) -> None:
    """Writes to the container whatever has its name, until the process ends."""
    notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for turn in itertools.count(1):
        number = turn % (ITEMS + 4)
        item = {"id": f"i{number}", "pk": f"p{number % 3}", "t": f"t{number % 5}", "n": turn}
        os.write(notes, f"i{number} {turn} begun\n".encode())
        await account.put(await account.engine.container("db", "a"), **item)
        os.write(notes, f"i{number} {turn} done\n".encode())
        await asyncio.sleep(0)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(carry_out(Case(**json.loads(line))))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
