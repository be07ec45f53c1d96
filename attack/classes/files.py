"""Files that are missing, empty, old, cut, bent or foreign: no wrong item with status 200, and nothing deleted.

A good data directory is made once and copied for every damage. A server may refuse to start, with a sentence and not a
traceback, or start and answer 503 for what is damaged; every item it gives must be the one that was written. Whatever
it does, each segment is still there afterwards. On PostgreSQL schemas stand for files.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.classes import databases, disks
from attack.ground import CROSS, GroundError, key_header, make_container, put
from attack.report import Outcome
from attack.settings import Settings
from attack.target import MASTER, DidNotStartError, Launch, Target, launch, serving
from attack.wire import Connection, NoAnswerError

CONTAINERS, ITEMS = 5, 16
BRIEF_DAMAGES = ("catalog missing", "catalog halved", "segment missing")
"""What a short run tries; bits are flipped in any."""
Damage = Callable[[Path, random.Random], object]


def item_of(container: str, number: int) -> dict[str, Any]:
    """What was written, to be compared with what is read."""
    text = f"{container} {number} " * 20
    return {"id": f"i{number}", "pk": f"k{number % 5}", "n": number, "container": container, "text": text}


def fill(target: Target, names: list[str]) -> None:
    """Containers with items."""
    connection = target.connect()
    for name in names:
        container = make_container(connection, name)
        for number in range(ITEMS):
            put(connection, container, item_of(name, number))
    connection.close()


NAMES = [f"c{number}" for number in range(CONTAINERS)]
LATE = "late"
"""A container that an older catalog does not know."""


class Original:
    """The good directory, and an older copy of its catalog."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "original"
        self.older = directory / "older.sqlite"
        with serving(Launch(data=self.data)) as target:
            fill(target, NAMES)
        shutil.copy(self.data / "catalog.sqlite", self.older)
        with serving(Launch(data=self.data)) as target:
            fill(target, [LATE])
        self.segments = {path.stem for path in (self.data / "segments").glob("*.sqlite")}

    def copy(self, directory: Path) -> Path:
        """A directory to be damaged."""
        shutil.copytree(self.data, directory)
        return directory


def segments_of(data: Path) -> list[Path]:
    """The segment files, sorted by name."""
    return sorted((data / "segments").glob("*.sqlite"))


def flip(path: Path, dice: random.Random, bits: int = 1) -> None:
    """Turns single bits of a file."""
    content = bytearray(path.read_bytes())
    for _ in range(bits):
        place = dice.randrange(len(content))
        content[place] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def _newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.commit()
    connection.close()


def _foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE item(something TEXT)")
    connection.commit()
    connection.close()


def _halved(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


SINGLE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "halved": _halved,
    "cut to one page": lambda path: path.write_bytes(path.read_bytes()[:4096]),
    "of a newer version": _newer,
    "another database": _foreign,
    "no database": lambda path: path.write_bytes(b"this is not a database" * 1000),
    "a directory": _as_directory,
    "zeros": lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
}


def damages(original: Original) -> dict[str, Damage]:
    """Every damage by its name; one that is about a segment hits one of them, others all."""

    def catalog(change: Callable[[Path], object]) -> Damage:
        return lambda data, dice: change(data / "catalog.sqlite")

    def segment(change: Callable[[Path], object]) -> Damage:
        return lambda data, dice: change(dice.choice(segments_of(data)))

    def older(data: Path, dice: random.Random) -> None:
        shutil.copy(original.older, data / "catalog.sqlite")

    def exchanged(data: Path, dice: random.Random) -> None:
        one, other = dice.sample(segments_of(data), 2)
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)

    def no_segments(data: Path, dice: random.Random) -> None:
        for path in segments_of(data):
            path.unlink()

    def unknown(data: Path, dice: random.Random) -> None:
        shutil.copy(dice.choice(segments_of(data)), data / "segments" / "9999.sqlite")

    found: dict[str, Damage] = {f"catalog {name}": catalog(change) for name, change in SINGLE.items()}
    found |= {f"segment {name}": segment(change) for name, change in SINGLE.items()}
    found |= {
        "catalog older": older,
        "segments exchanged": exchanged,
        "all segments missing": no_segments,
        "a segment nobody knows": unknown,
    }
    return found


class Trial:
    """One damaged directory: what a server makes of it."""

    def __init__(self, outcome: Outcome, original: Original, data: Path, name: str) -> None:
        self._outcome = outcome
        self._original = original
        self._data = data
        self._name = name

    def judge(self) -> None:
        """Starts a server on it and holds every answer against what was written."""
        try:
            target = launch(Launch(data=self._data))
        except DidNotStartError as error:
            self._refused(str(error))
        else:
            try:
                self._served(target)
            finally:
                code = target.stop()
            if code != 0:
                self._outcome.breaks(f"{self._name}: the server ended with {code}")
            self._outcome.took_tracebacks(target.tracebacks(), target.said())
        self._nothing_is_gone()

    def _refused(self, said: str) -> None:
        if "Traceback" in said:
            self._outcome.tracebacks += 1
            self._outcome.breaks(
                f"{self._name}: the server ended with a traceback: {said.strip().splitlines()[-1][:200]}"
            )
        elif not said.strip():
            self._outcome.breaks(f"{self._name}: the server ended and said nothing")

    def _served(self, target: Target) -> None:
        connection = target.connect(seconds=20)
        for name in [*NAMES, LATE]:
            try:
                self._read(connection, name)
            except (NoAnswerError, GroundError) as error:
                self._outcome.breaks(f"{self._name}: {name}: {error}")
        connection.close()

    def _read(self, connection: Connection, name: str) -> None:
        container = ["dbs", "ground", "colls", name]
        answer = connection.send(MASTER, "GET", container)
        self._outcome.answered(answer.status, f"{self._name}: container {name}")
        if answer.status == 404:
            # A catalog that does not know a container may say so only if it is an older one or refused nothing else.
            if not (self._name == "catalog older" and name == LATE):
                self._outcome.lose(f"{self._name}: container {name} is gone with status 404")
            return
        for number in range(ITEMS):
            self._read_item(connection, container, name, number)
        self._query(connection, container, name, "SELECT * FROM c")
        self._query(connection, container, name, "SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n")

    def _read_item(self, connection: Connection, container: list[str], name: str, number: int) -> None:
        wanted = item_of(name, number)
        answer = connection.send(
            MASTER, "GET", [*container, "docs", wanted["id"]], headers=key_header(wanted["pk"])
        )
        told = f"{self._name}: {name}/{wanted['id']} -> {answer.status}"
        self._outcome.answered(answer.status, told)
        if answer.status == 200 and not _is_right(answer.body, wanted):
            self._outcome.lose(f"{told} with a wrong body")
        elif answer.status not in (200, 503):
            self._outcome.lose(told)

    def _query(self, connection: Connection, container: list[str], name: str, text: str) -> None:
        answer = connection.send(MASTER, "POST", [*container, "docs"], {"query": text}, CROSS)
        told = f"{self._name}: {name}: {text} -> {answer.status}"
        self._outcome.answered(answer.status, told)
        if answer.status == 503:
            return
        if answer.status != 200:
            self._outcome.lose(told)
            return
        found = {item.get("id"): item for item in answer.json["Documents"]}
        wrong = [
            number
            for number in range(ITEMS)
            if not _is_right(json.dumps(found.get(f"i{number}", {})).encode(), item_of(name, number))
        ]
        if (wrong and not answer.continuation) or len(found) > ITEMS:
            self._outcome.lose(f"{told} with {len(wrong)} items wrong or missing")

    def _nothing_is_gone(self) -> None:
        names = [
            str(path.relative_to(self._data))
            for path in self._data.rglob("*")
            if path.is_file() or path.is_dir()
        ]
        gone = [segment for segment in self._original.segments if not any(segment in name for name in names)]
        if gone and not self._name.endswith(("segment missing", "all segments missing")):
            self._outcome.lose(f"{self._name}: {len(gone)} segments were removed")


def _is_right(body: bytes, wanted: dict[str, Any]) -> bool:
    try:
        item = json.loads(body)
    except ValueError:
        return False
    return isinstance(item, dict) and all(item.get(name) == value for name, value in wanted.items())


def _bit_flips(outcome: Outcome, original: Original, directory: Path, settings: Settings) -> None:
    """Single bits, in all segments at once, so that one start tries as many seeds as there are containers."""
    rounds = max(1, settings.bit_flips // (CONTAINERS + 1))
    for number in range(rounds):
        seed = settings.seed * 1000 + number
        dice = random.Random(seed)
        data = original.copy(directory / f"flips{number}")
        for path in segments_of(data):
            flip(path, dice)
        Trial(outcome, original, data, f"bits flipped by seed {seed}").judge()
        shutil.rmtree(data)
    for number in range(0 if settings.brief else max(1, rounds // 2)):
        seed = settings.seed * 1000 + 500 + number
        data = original.copy(directory / f"catalogflips{number}")
        flip(data / "catalog.sqlite", random.Random(seed), bits=1)
        Trial(outcome, original, data, f"bits of the catalog flipped by seed {seed}").judge()
        shutil.rmtree(data)


def _modes(outcome: Outcome, directory: Path) -> None:
    """A directory that was open to all is not a way to the items, the catalog or the key of the certificate."""
    data = directory / "open"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    with serving(Launch(data=data)) as target:
        fill(target, ["c0"])
        closed = not stat.S_IMODE(data.stat().st_mode) & 0o077
        for path in data.rglob("*"):
            readable = stat.S_IMODE(path.stat().st_mode) & 0o077
            hidden = any(
                not stat.S_IMODE(parent.stat().st_mode) & 0o077 for parent in path.parents if parent != data
            )
            if readable and not closed and not hidden and path.name not in ("tls.crt", "lock"):
                outcome.trespass(f"{path.relative_to(data)} can be read by every user of the machine")


def run(settings: Settings, store: str, data: Path) -> Outcome:
    """Every damage; on PostgreSQL those that a database can have."""
    outcome = Outcome(name="files", store=store.partition(":")[0])
    directory = data / "files"
    directory.mkdir()
    if store != "sqlite":
        databases.attack(outcome, store, directory, settings.brief)
        disks.kills(outcome, store, directory, settings.kills)
        return outcome
    original = Original(directory)
    every = damages(original)
    for number, (name, damage) in enumerate(every.items()):
        if settings.brief and name not in BRIEF_DAMAGES:
            continue
        copy = original.copy(directory / f"trial{number}")
        damage(copy, random.Random(settings.seed))
        Trial(outcome, original, copy, name).judge()
        shutil.rmtree(copy, ignore_errors=True)
    _bit_flips(outcome, original, directory, settings)
    _modes(outcome, directory)
    disks.full(outcome, directory)
    disks.kills(outcome, store, directory, settings.kills)
    return outcome
