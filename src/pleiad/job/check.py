"""Looking for damage in an account that no server has open: the catalog, every segment, and how they fit together.

Nothing is written where the account is: a database whose server died before it could put its log away is copied to a
temporary directory first, with its log, and looked through there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import orjson

from pleiad.catalog import placement as placements
from pleiad.catalog.placement import Placement
from pleiad.store import file_lock
from pleiad.store.catalog import Record
from pleiad.store.checksum import fields_checksum
from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.inspect import Seen, inspect_at_rest
from pleiad.store.sqlite.reconcile import fault_of


class CheckError(Exception):
    """Why an account cannot be looked through, with a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or with `is_note` something that an operator may want to know."""

    place: str
    message: str
    is_note: bool = False


@dataclass(slots=True)
class CheckReport:
    """What a check has met."""

    segments: int = 0
    items: int = 0
    versions: int = 0
    without_checksum: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return all(finding.is_note for finding in self.findings)

    def wrong(self, place: str, message: str) -> None:
        self.findings.append(Finding(place, message))

    def note(self, place: str, message: str) -> None:
        self.findings.append(Finding(place, message, is_note=True))

    def count(self, seen: Seen) -> None:
        self.segments += 1
        self.items += seen.items
        self.versions += seen.versions
        self.without_checksum += seen.without_checksum


Tell = Callable[[int, int, str], None]
"""Learns how many segments of how many are looked through, and the next one."""


@dataclass(frozen=True, slots=True)
class _Account:
    """What the catalog says, as far as it can be read."""

    id: str
    generation: int
    states: dict[str, str]
    live: dict[str, list[Placement]]
    """The live physical partitions of each segment."""
    in_use: set[str]


def check_directory(data: Path, tell: Tell) -> CheckReport:
    """Looks through a data directory."""
    if not data.is_dir():
        raise CheckError(f"there is no directory {data}")
    report = CheckReport()
    with unused(data):
        account = _check_catalog(data / files.CATALOG_FILE, report)
        segments = data / "segments"
        found = files.segment_names(segments) if segments.is_dir() else set()
        if account is None:
            if found:
                report.wrong(files.CATALOG_FILE, f"{len(found)} segments have no catalog that names them")
            return report
        _check_presence(segments, account, found, report)
        for index, name in enumerate(sorted(found & account.in_use)):
            tell(index, len(found & account.in_use), name)
            _check_segment(segments / f"{name}.sqlite", account, report)
    if report.without_checksum:
        report.note("items", f"items of an older version that carry no checksum: {report.without_checksum:,}")
    return report


@contextlib.contextmanager
def unused(data: Path) -> Iterator[None]:
    """Keeps servers from the directory for the length of a block, without a trace in it."""
    try:
        descriptor = os.open(data / "lock", os.O_RDONLY)
    except FileNotFoundError:
        yield
        return
    try:
        file_lock.lock(descriptor, shared=True)
    except OSError as error:
        raise CheckError(f"a server has {data} open: stop it first") from error
    else:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    """A connection that writes nothing beside the file."""
    log = Path(f"{path}-wal")
    if not log.exists() or log.stat().st_size == 0:
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        schema.prepare(connection)
        with contextlib.closing(connection):
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="pleiad-check-") as directory:
        copy = Path(directory) / path.name
        shutil.copy(path, copy)
        shutil.copy(log, f"{copy}-wal")
        with contextlib.closing(schema.connect_reader(copy)) as connection:
            yield connection


# -- the catalog ---------------------------------------------------------------------------------


def _check_catalog(path: Path, report: CheckReport) -> _Account | None:
    header = files.read_header(path)
    if header is None:
        report.wrong(path.name, "it is missing or empty")
        return None
    fault = fault_of(header)
    if fault is not None:
        report.wrong(path.name, fault)
        return None
    try:
        with opened(path) as connection:
            schema.check_version(path, connection.pragma("user_version"))
            for (line,) in connection.execute("PRAGMA integrity_check(3)").fetchall():
                if line != "ok":
                    report.wrong(path.name, f"SQLite finds: {line}")
            return _read_account(connection, path, report)
    except (apsw.Error, schema.SchemaError, ValueError, KeyError) as error:
        report.wrong(path.name, f"it cannot be read: {error}")
        return None


def _read_account(connection: apsw.Connection, path: Path, report: CheckReport) -> _Account | None:
    has_checksums = connection.pragma("user_version") >= schema.VERSION
    column = "checksum" if has_checksums else "NULL"
    rows: Any = connection.execute(f"SELECT kind, rid, parent, name, body, {column} FROM record").fetchall()
    live: dict[str, list[Placement]] = {}
    in_use: set[str] = set()
    for *fields, checksum in rows:
        if has_checksums and checksum != fields_checksum(*fields):
            report.wrong(path.name, f"the record {fields[0]}/{fields[1]} is not what was written")
            continue
        record = record_of(*fields)
        if record.kind == placements.KIND:
            placed = placements.from_record(record)
            if placed.is_live:
                live.setdefault(placed.segment, []).append(placed)
        elif record.kind == placements.OPERATION:
            in_use.update(placements.operation_from_record(record).segments)
    if not has_checksums:
        report.note(path.name, "it is of an older version, without checksums")
        return _Account("", 0, {}, live, in_use | set(live))
    account: Any = connection.execute("SELECT id, generation FROM account").fetchone()
    if account is None:
        report.wrong(path.name, "it has tables and no account")
        return None
    states: Any = connection.execute("SELECT name, state FROM segment").fetchall()
    return _Account(account[0], account[1], dict(states), live, in_use | set(live))


# -- the segments --------------------------------------------------------------------------------


def record_of(kind: str, rid: str, parent: str, name: str, body: str) -> Record:
    """The catalog record of its columns."""
    return Record(kind, rid, parent, name, orjson.loads(body))


def _check_presence(segments: Path, account: _Account, found: set[str], report: CheckReport) -> None:
    for name in sorted(account.in_use):
        if account.states.get(name) == "made" and files.read_header(segments / f"{name}.sqlite") is None:
            report.wrong(name, "it held items, and its file is gone or empty")
    for name in sorted(found - account.in_use):
        if account.states.get(name) == "dropping":
            report.note(name, "it is no longer needed; the next start removes it")
        else:
            report.note(name, "no container names it; the next start sets it aside")


def _check_segment(path: Path, account: _Account, report: CheckReport) -> None:
    header = files.read_header(path)
    fault = None if header is None else fault_of(header)
    if header is None or fault is not None:
        if fault is not None:
            report.wrong(path.stem, fault)
        return
    seen = Seen()
    try:
        with opened(path) as connection:
            version = connection.pragma("user_version")
            schema.check_version(path, version)
            if version < schema.VERSION:
                _check_old_segment(connection, path.stem, report)
                return
            before = len(report.findings)
            for fault in inspect_at_rest(connection, seen):
                report.wrong(path.stem, fault)
            if len(report.findings) == before:
                _check_identity(connection, path.stem, account, report)
                _check_counters(connection, account.live.get(path.stem, []), report)
    except (apsw.Error, schema.SchemaError) as error:
        report.wrong(path.stem, str(error))
    report.count(seen)


def _check_old_segment(connection: apsw.Connection, name: str, report: CheckReport) -> None:
    for (line,) in connection.execute("PRAGMA integrity_check(3)").fetchall():
        if line != "ok":
            report.wrong(name, f"SQLite finds: {line}")
    count: Any = connection.execute("SELECT count(*) FROM item").fetchone()
    report.count(Seen(items=count[0], without_checksum=count[0]))


def _check_identity(connection: apsw.Connection, name: str, account: _Account, report: CheckReport) -> None:
    identity: Any = connection.execute("SELECT account, segment, generation FROM identity").fetchone()
    if account.id and identity[:2] != (account.id, name):
        report.wrong(name, "its file is that of another segment or account")
    elif identity[2] > account.generation and account.id:
        report.wrong(
            name, "it knows of changes of the catalog that the catalog does not know: that one is older"
        )


def _check_counters(connection: apsw.Connection, live: list[Placement], report: CheckReport) -> None:
    for placed in live:
        counters: Any = connection.execute(
            "SELECT items, size_bytes, lsn FROM partition WHERE id = ?1", (placed.id,)
        ).fetchone()
        rows: Any = connection.execute(
            "SELECT count(*), coalesce(sum(size_bytes), 0), coalesce(max(lsn), 0) FROM item NOT INDEXED "
            "WHERE epk >= ?1 AND epk < ?2",
            (placed.span.min, placed.span.max),
        ).fetchone()
        items, size_bytes, lsn = counters or (0, 0, 0)
        if (items, size_bytes) != rows[:2]:
            report.wrong(
                placed.segment,
                f"physical partition {placed.id} counts {items:,} items of {size_bytes:,} bytes and holds {rows[0]:,} "
                f"of {rows[1]:,}",
            )
        if rows[2] > lsn:
            report.wrong(
                placed.segment, f"physical partition {placed.id} holds a row with an LSN it has not given"
            )
