"""What is said between a store and those who split, merge and move its partitions."""

from __future__ import annotations

from dataclasses import dataclass

from pleiad.keys.range import EpkRange


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
