"""Queries for paths that no item has must not take the physical indexes away from paths that items have.

Part of the class `stall`: a read-only caller who could do that would make every query of the others a scan. What has an
index is looked up in the segment's file, so this is about SQLite.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from attack.ground import CROSS, key_header, make_container
from attack.report import Outcome
from attack.target import MASTER, READ_ONLY, Target

JUNK_PATHS = 50
ASKED = 5
BATCHES = 10
INDEX_SECONDS = 15.0


def attack(outcome: Outcome, target: Target) -> None:
    """Asks for many paths that do not exist, and then for one that does."""
    connection = target.connect()
    container = make_container(connection, "slots")
    flags = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    for batch in range(BATCHES):
        items = [
            {"id": f"{batch}-{number}", "pk": f"p{batch}", "real": batch * 100 + number}
            for number in range(100)
        ]
        operations = [{"operationType": "Upsert", "resourceBody": item} for item in items]
        answer = connection.send(
            MASTER, "POST", [*container, "docs"], operations, {**flags, **key_header(f"p{batch}")}
        )
        outcome.answered(answer.status, "a batch")
    for turn in range(ASKED):
        for number in range(JUNK_PATHS):
            text = f"SELECT * FROM c WHERE c.junk{number} = {turn}"
            answer = connection.send(READ_ONLY, "POST", [*container, "docs"], {"query": text}, CROSS)
            outcome.answered(answer.status, text)
    deadline = time.monotonic() + INDEX_SECONDS
    while time.monotonic() < deadline:
        text = "SELECT * FROM c WHERE c.real = 7"
        answer = connection.send(MASTER, "POST", [*container, "docs"], {"query": text}, CROSS)
        outcome.answered(answer.status, text)
        if any("real" in path for path in _indexed(target.data)):
            break
        time.sleep(0.2)
    else:
        outcome.breaks(
            f"{JUNK_PATHS} paths that no item has took all indexes: a path that items have gets none"
        )
    connection.close()


def _indexed(data: Path) -> list[str]:
    """The paths with a physical index, in all segments."""
    found: list[str] = []
    for path in (data / "segments").glob("*.sqlite"):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            found += [str(row) for row in connection.execute("SELECT * FROM path_index").fetchall()]
        except sqlite3.Error:
            continue
        finally:
            connection.close()
    return found
