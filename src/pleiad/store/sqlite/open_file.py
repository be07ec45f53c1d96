"""Opening the file of a segment: making a new one, and making sure that an old one is the one that belongs here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from pleiad.store.sqlite import directory, schema, statements
from pleiad.store.sqlite.failure import ForeignFileError
from pleiad.store.sqlite.kept_rows import KeptRows
from pleiad.store.sqlite.mutate import Applier, Counters
from pleiad.store.sqlite.path_index import PathIndexes
from pleiad.store.sqlite.registry import Registry
from pleiad.store.sqlite.rows import checked_state
from pleiad.store.sqlite.threads import DiskThreads
from pleiad.store.sqlite.wal import Log


@dataclass(slots=True)
class OpenFile:
    """The connections of an open segment; the checkpointer's is made when first needed."""

    writer: apsw.Connection
    reader: apsw.Connection
    applier: Applier
    counters: dict[int, Counters]
    indexes: PathIndexes
    read: Callable[..., apsw.Cursor]
    """Runs a statement on a cursor kept for point reads; whoever calls it takes all rows at once."""
    log: Log
    generation: int
    """The newest change of the catalog that the file knows of."""
    is_noted: bool
    """Whether the registry knows of the file, and that it tells whose it is."""
    spare: list[apsw.Connection] = field(default_factory=list)
    """Connections of snapshots that are over, for the next ones."""
    is_synced_by_commit: bool = True
    """Whether a COMMIT of the writer is on disk when it returns, where the store is durable at all."""

    def sync_by_commit(self, is_on: bool) -> None:
        """Has the next COMMITs of the writer sync the log, or leave that to others; no transaction is open."""
        if is_on is not self.is_synced_by_commit:
            # It takes effect when it is compiled, so it must be compiled each time.
            self.writer.execute(f"PRAGMA synchronous={'FULL' if is_on else 'NORMAL'}", can_cache=False)
            self.is_synced_by_commit = is_on

    def note_generation(self, generation: int) -> None:
        """Keeps in the open transaction which change of the catalog the file knows of."""
        self.generation = generation
        self.writer.execute(statements.SAVE_GENERATION, (generation,))


def open_file(
    path: Path,
    registry: Registry,
    durable: bool,
    threads: DiskThreads,
    indexes_of: Callable[[apsw.Connection], PathIndexes],
    kept: KeptRows,
) -> OpenFile:
    """Opens the file of a segment; ForeignFileError or SchemaError when it is not what was there, or not for us."""
    if registry.is_made(path.stem) and directory.read_header(path) is None:
        raise ForeignFileError("its file is gone or empty, although it held items")
    writer = schema.connect(path, durable)
    try:
        generation = _identified(writer, path, registry, durable)
        reader = schema.connect_reader(path)
        log = Log(path, writer, threads, durable)
        return OpenFile(
            writer,
            reader,
            Applier(writer, kept),
            load_counters(writer),
            indexes_of(writer),
            reader.cursor().execute,
            log,
            generation,
            registry.is_stamped(path.stem),
        )
    except BaseException:
        writer.close(True)
        raise


def load_counters(writer: apsw.Connection) -> dict[int, Counters]:
    """The counters of all partitions, by their ids."""
    rows: Any = writer.execute(statements.STATES).fetchall()
    return {row[0]: Counters.of(checked_state(row)) for row in rows}


def _identified(writer: apsw.Connection, path: Path, registry: Registry, durable: bool) -> int:
    """Makes a new file what it shall be, and compares an old one; the newest change of the catalog it knows of."""
    name = path.stem
    if registry.is_stamped(name) and writer.pragma("user_version") < schema.VERSION:
        raise ForeignFileError("its file is an older one than the file that was there")
    schema.make_segment(writer, registry.account, name, registry.generation)
    if durable:
        schema.sync_directory(path.parent)
    identity: Any = writer.execute(statements.IDENTITY).fetchone()
    if identity is None or tuple(identity[:2]) != (registry.account, name):
        raise ForeignFileError("its file is that of another segment or account")
    lsns: Any = writer.execute(statements.LSNS).fetchone()
    if lsns[0] < registry.reached(name):
        raise ForeignFileError("its file is older than it was: it lacks writes that were acknowledged")
    return int(identity[2])
