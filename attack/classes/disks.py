"""A full disk, and a server killed in the middle: what was acknowledged is there afterwards.

Part of the class `files`.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from attack.ground import key_header, make_container
from attack.report import Outcome
from attack.target import MASTER, Launch, Target, launch, serving
from attack.wire import Connection, NoAnswerError

FILE_BYTES = 3_000_000
LOG_LINES_MAX = 40
WRITERS = 4
BETWEEN_KILLS_SECONDS = 0.6
WRITES_MIN = 10
"""What each writer has written before a kill, however slow the machine is."""


def full(outcome: Outcome, directory: Path) -> None:
    """Writes until files cannot grow: a 503 each, no traceback, one warning; reads go on, and no write is half done."""
    data = directory / "full"
    acknowledged: list[str] = []
    refused = 0
    with serving(Launch(data=data, file_bytes=FILE_BYTES)) as target:
        connection = target.connect()
        container = make_container(connection, "c")
        for number in range(400):
            item = {"id": f"i{number}", "pk": "p", "text": "x" * 30_000}
            answer = connection.send(MASTER, "POST", [*container, "docs"], item, key_header("p"))
            outcome.answered(answer.status, f"a write on a full disk: {answer.body[:100]!r}")
            if answer.status == 201:
                acknowledged.append(item["id"])
            elif answer.status == 503:
                refused += 1
                if refused > 30:
                    break
            elif answer.status != 429:
                outcome.breaks(f"a write on a full disk -> {answer.status}")
        if not refused:
            outcome.breaks("the disk did not get full, so nothing was tried")
        _all_there(outcome, connection, container, acknowledged, "on a full disk")
        connection.close()
        outcome.took_tracebacks(target.tracebacks(), target.said())
        if "full" not in target.said().lower() and "no space" not in target.said().lower():
            outcome.breaks("a full disk is not said in the log")
        lines = len(target.said().splitlines())
        if lines > LOG_LINES_MAX:
            outcome.breaks(f"a full disk fills the log: {lines} lines for {refused} refused writes")
    with serving(Launch(data=data)) as target:
        connection = target.connect()
        _all_there(outcome, connection, container, acknowledged, "after a full disk")
        connection.close()


def _all_there(
    outcome: Outcome, connection: Connection, container: list[str], ids: list[str], when: str
) -> None:
    for id in ids:
        answer = connection.send(MASTER, "GET", [*container, "docs", id], headers=key_header("p"))
        outcome.answered(answer.status, f"a read {when}")
        if answer.status != 200:
            outcome.lose(f"{id} {when} -> {answer.status}")


class _Writer(threading.Thread):
    """Creates items one after the other and remembers those that were acknowledged."""

    def __init__(self, target: Target, container: list[str], prefix: str) -> None:
        super().__init__(daemon=True)
        self._target = target
        self._container = container
        self._prefix = prefix
        self.acknowledged: list[str] = []
        self.statuses: list[int] = []

    def run(self) -> None:
        connection = self._target.connect(seconds=5)
        number = 0
        while True:
            item = {"id": f"{self._prefix}-{number}", "pk": "p", "text": "x" * 300}
            number += 1
            try:
                answer = connection.send(MASTER, "POST", [*self._container, "docs"], item, key_header("p"))
            except (NoAnswerError, OSError):
                return
            self.statuses.append(answer.status)
            if answer.status == 201:
                self.acknowledged.append(item["id"])


def kills(outcome: Outcome, store: str, directory: Path, count: int) -> None:
    """Kills the server under load so many times; every acknowledged item is there at the end."""
    data = directory / "killed"
    acknowledged: list[str] = []
    container = ["dbs", "ground", "colls", "c"]
    for number in range(count):
        target = launch(Launch(data=data, store=store))
        if number == 0:
            connection = target.connect()
            make_container(connection, "c")
            connection.close()
        writers = [_Writer(target, container, f"{number}-{writer}") for writer in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(BETWEEN_KILLS_SECONDS)
        while any(writer.is_alive() and len(writer.acknowledged) < WRITES_MIN for writer in writers):
            time.sleep(0.01)
        target.kill()
        for writer in writers:
            writer.join()
            acknowledged += writer.acknowledged
            for status in writer.statuses:
                outcome.answered(status, "a write before a kill")
        outcome.took_tracebacks(target.tracebacks(), target.said())
    with serving(Launch(data=data, store=store)) as target:
        connection = target.connect()
        _all_there(outcome, connection, container, acknowledged, "after a kill")
        connection.close()
