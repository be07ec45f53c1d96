"""What is said between a store and those who split, merge and move its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pleiad.keys.range import EpkRange
from pleiad.store.rows import Row, Version


@dataclass(frozen=True, slots=True)
class Totals:
    """What a range of hashes holds."""

    items: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Division:
    """A physical partition to be divided in two: rows with an epk below `at` go to `left`, the others to `right`."""

    partition: int
    epoch: int
    span: EpkRange
    at: bytes
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What `catch_up` did: rows written anew, the last tracked delete it saw, and how it changed the totals."""

    rows: int
    last_delete: int
    items_change: int
    size_bytes_change: int


@dataclass(frozen=True, slots=True)
class ExportMark:
    """How far a range was exported: everything up to it, and nothing behind it, is in the pieces so far."""

    lsn: int = 0
    """Of the last row; rows come in the order of their LSNs, so a row that changes meanwhile comes once more."""
    version_lsn: int = 0
    """Of the last version."""
    delete: int | None = None
    """The last tracked delete; 0 before the first one, None where deletes are not asked for."""


@dataclass(frozen=True, slots=True)
class Export:
    """A piece of what a range holds and what happened to it behind a mark, all as of one moment."""

    rows: Sequence[Row]
    deletes: Sequence[int]
    """Document numbers of rows that are no more; some may be of other ranges, or of rows never exported."""
    versions: Sequence[Version]
    mark: ExportMark
    """Where the next piece begins."""


@dataclass(frozen=True, slots=True)
class TotalsChange:
    """How an import changed what a range holds."""

    items: int
    size_bytes: int
