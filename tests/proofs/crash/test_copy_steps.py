"""Kills a server before and after every durable step of a copy that takes its source's name.

Whatever the moment, the copy goes on when the data is opened again, the name has the new partition key, every item is
there once and as it was written last, and the source is kept under the other name; or the copy had not begun, and
nothing has changed.

Where PLEIAD_CRASH_KILLS asks for many kills, the server dies at each of these moments, else at some of them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from pleiad.catalog.copy_marks import Closing, closed_of
from pleiad.engine.engine import Engine
from pleiad.job.copy.job import CopyState
from tests.project import ROOT
from tests.proofs.crash.copy_victim import ITEMS, Case
from tests.rooms.container_copy.conftest import Account
from tests.stores import PATIENT, OpenStore, StoreOf
from tests.waiting import until

STRIDE = 1 if int(os.environ.get("PLEIAD_CRASH_KILLS", "2")) > 2 else 25
STEPS_MIN = 20
"""What a copy takes at least; fewer would mean that nothing was killed."""


@contextlib.contextmanager
def _victims() -> Iterator[Callable[[Case], bool]]:
    """Carries out cases; whether the process was killed, or came to its end before."""
    command = [sys.executable, "-m", "tests.proofs.crash.copy_victim"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def is_killed(case: Case) -> bool:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(asdict(case)) + "\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            assert code in (0, -signal.SIGKILL)
            return code != 0

        yield is_killed


def _allowed(notes: Path) -> dict[str, set[int]]:
    """What each item may be by now: as it was acknowledged last, or as the write says that nobody answered."""
    allowed: defaultdict[str, set[int]] = defaultdict(set)
    for number in range(ITEMS):
        allowed[f"i{number}"] = {0}
    for line in notes.read_text().splitlines() if notes.exists() else ():
        id, turn, word = line.split()
        if word == "done":
            allowed[id] = {int(turn)}
        else:
            allowed[id].add(int(turn))
    return allowed


async def _check(account: Account, allowed: dict[str, set[int]]) -> None:
    """Waits for the end of the copy, where it had begun, and looks at what is there."""
    account.copies.open()
    jobs = account.copies.all()
    if jobs:
        (job,) = jobs
        assert await until(lambda: account.look(job.job).job.is_over)
        ended = account.look(job.job).job
        assert ended.state is CopyState.DONE, (ended.problem, ended.items)
    container = await account.engine.container("db", "a")
    assert [str(path) for path in container.key.paths] == ["/t" if jobs else "/pk"]
    found = await account.all_of("a")
    assert len({item["id"] for item in found}) == len(found)
    for item in found:
        assert item["n"] in allowed.pop(item["id"])
    # What is not there may be a write that was not answered.
    assert all(len(turns) == 1 and int(id[1:]) >= ITEMS for id, turns in allowed.items()), allowed
    if jobs:
        mark = closed_of((await account.engine.container("db", "b")).resource.properties)
        assert mark is not None
        assert mark.why is Closing.REPLACED


@pytest.mark.every_store
async def test_a_server_that_is_killed_at_any_step_of_an_exchange_comes_to_its_end(
    tmp_path: Path, open_store: OpenStore, store_of: StoreOf, remove_data: Callable[[Path], None]
) -> None:
    with _victims() as is_killed:
        for moment in itertools.count(1, STRIDE):
            directory = tmp_path / str(moment)
            data = directory / "data"
            data.mkdir(parents=True, mode=0o700)
            case = Case(store=store_of(data), directory=str(directory), kill_at=moment)
            killed = is_killed(case)
            engine = Engine(await open_store(data), PATIENT)
            await engine.open()
            account = Account(engine)
            try:
                await _check(account, _allowed(case.notes))
            finally:
                await account.copies.close()
                await engine.close()
            remove_data(data)
            if not killed:
                break
    assert moment > 2 * STEPS_MIN
