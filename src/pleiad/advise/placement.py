"""Where a key puts items: the logical partition of every row, and the physical partition of every logical one.

A container that is created with several physical partitions has even ranges of hashes, and so has a candidate here. One
with a hierarchical key is laid out as it grows: the largest physical partition is split in the middle of its logical
partitions, again and again, since that is what divides a large value of the first level.

Invariants: a logical partition is on exactly one physical partition; places are decided by the real hash. The logical
partitions of paths and of hierarchical keys are in the order of their hashes, as the codes of columns are. Only for
keys that are put together of more than ``TEXTS_MAX`` different values, the hashes of the parts are mixed instead: they
spread in the same way, and no text has to be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from pleiad.advise.column import Column, Hashes, hashes_of
from pleiad.advise.key import Key, Kind
from pleiad.advise.table import Table
from pleiad.keys.range import even_ranges
from pleiad.keys.value import KeyValue
from pleiad.values.undefined import UNDEFINED

TEXTS_MAX = 200_000
_HEAD_BYTES = 8
_RANK_BITS_MAX = 32
_HASH_MASK = np.uint64(2**62 - 1)

Rows = NDArray[np.int64]
Amounts = NDArray[np.float64]


@dataclass(frozen=True)
class Placement:
    """The logical partitions of a key."""

    key: Key
    rows: Rows
    """The logical partition of each row of the table."""
    count: int
    levels: tuple[Rows, ...]
    """For each column of the key its code, by logical partition."""
    columns: tuple[Column, ...]
    hashes: tuple[Hashes, ...]
    """By logical partition: one hash, or one of each level."""
    suffixes: Rows | None = None

    def values_of(self, partition: int) -> tuple[KeyValue, ...] | None:
        """The key values of a logical partition; None where they are not kept."""
        codes = [int(level[partition]) for level in self.levels]
        if not all(column.has_name(code) for column, code in zip(self.columns, codes, strict=True)):
            return None
        values = [column.value_of(code) for column, code in zip(self.columns, codes, strict=True)]
        if self.key.kind in (Kind.PATH, Kind.HIERARCHY, Kind.ROLL_UP):
            return tuple(values)
        suffix = None if self.suffixes is None else int(self.suffixes[partition])
        return (made_text(self.key, values, suffix),)

    def label(self, partition: int) -> str:
        """The key value as a person reads it."""
        values = self.values_of(partition)
        if values is None:
            return f"hash {int(self.hashes[0][partition]):016X}"
        return " / ".join(shown_value(value) for value in values)

    def physical(self, count: int, weights: Amounts) -> Rows:
        """The physical partition of each logical one, of so many; ``weights`` are what logical ones hold."""
        if self.key.kind is Kind.HIERARCHY:
            return self._grown(count, weights)
        bounds = even_bounds(count)
        return np.searchsorted(bounds, self.hashes[0], side="right").astype(np.int64, copy=False)

    def _grown(self, count: int, weights: Amounts) -> Rows:
        held = np.concatenate(([0.0], np.cumsum(weights)))
        pieces = [(0, self.count)]
        while len(pieces) < count:
            divisible = [piece for piece in pieces if piece[1] - piece[0] > 1]
            if not divisible:
                break
            low, high = max(divisible, key=lambda piece: held[piece[1]] - held[piece[0]])
            middle = (low + high) // 2
            pieces.remove((low, high))
            pieces += [(low, middle), (middle, high)]
        return np.repeat(np.arange(len(pieces)), [high - low for low, high in sorted(pieces)])


def even_bounds(count: int) -> Hashes:
    """The first hashes of the second and later of so many even ranges."""
    ranges = even_ranges(count, Key(Kind.PATH, ("/id",)).definition())
    return np.array([int.from_bytes(each.min[:_HEAD_BYTES], "big") for each in ranges[1:]], dtype=np.uint64)


def place(key: Key, table: Table) -> Placement:
    """The logical partitions that the rows of a table have under a key."""
    columns = tuple(table.columns[name] for name in key.column_names)
    if key.kind in (Kind.PATH, Kind.ROLL_UP):
        codes = np.arange(columns[0].distinct, dtype=np.int64)
        rows = columns[0].codes.astype(np.int64)
        return Placement(key, rows, columns[0].distinct, (codes,), columns, (columns[0].hashes,))
    parts = [column.codes.astype(np.int64) for column in columns]
    suffixes_of_rows: Rows | None = None
    if key.kind is Kind.RANDOM:
        suffixes_of_rows = default_rng(1).integers(0, key.count, table.rows)
    elif key.kind is Kind.SUFFIX:
        suffixes_of_rows = suffix_codes(columns[1].hashes, key.count)[columns[1].codes]
        parts, columns = parts[:1], columns[:1]
    first, rows = _logical([*parts, *([] if suffixes_of_rows is None else [suffixes_of_rows])])
    levels = tuple(part[first] for part in parts)
    suffixes = None if suffixes_of_rows is None else suffixes_of_rows[first]
    hashes: tuple[Hashes, ...]
    if key.kind is Kind.HIERARCHY:
        hashes = tuple(column.hashes[level] for column, level in zip(columns, levels, strict=True))
    else:
        hashes = (_made_hashes(key, columns, levels, suffixes),)
    return Placement(key, rows.astype(np.int64), len(first), levels, columns, hashes, suffixes)


def _logical(parts: Sequence[Rows]) -> tuple[Rows, Rows]:
    """The first row of each combination of codes, in the order of these, and the combination of each row."""
    count = len(parts[0])
    combined = _combined(parts)
    width = int(combined.max(initial=0)) + 1
    if width > 4 * count:
        _, first, rows = np.unique(combined, return_index=True, return_inverse=True)
        return first.astype(np.int64), rows.astype(np.int64)
    first = np.full(width, -1, np.int64)
    first[combined[::-1]] = np.arange(count)[::-1]
    numbers = np.cumsum(first >= 0) - 1
    return first[first >= 0], numbers[combined]


def _combined(parts: Sequence[Rows]) -> Rows:
    """One number for each row that is equal exactly where all parts are."""
    found = parts[0]
    for part in parts[1:]:
        width = int(part.max(initial=0)) + 1
        if int(found.max(initial=0)) > (2**62) // width:
            found = np.unique(found, return_inverse=True)[1].astype(np.int64)
        found = found * width + part
    return found


def suffix_codes(hashes: Hashes, count: int) -> Rows:
    """The suffix, from 0, that is computed from a value."""
    return (hashes % np.uint64(count)).astype(np.int64)


def _made_hashes(
    key: Key, columns: Sequence[Column], levels: Sequence[Rows], suffixes: Rows | None
) -> Hashes:
    count = len(levels[0])
    if count <= TEXTS_MAX and all(column.has_all_names for column in columns):
        values = [
            [column.value_of(int(code)) for code in level]
            for column, level in zip(columns, levels, strict=True)
        ]
        numbers = [None] * count if suffixes is None else suffixes.tolist()
        return hashes_of(
            [
                made_text(key, parts, suffix)
                for parts, suffix in zip(zip(*values, strict=True), numbers, strict=True)
            ]
        )
    mixed = np.zeros(count, np.uint64)
    for column, level in zip(columns, levels, strict=True):
        mixed = _mix(mixed ^ column.hashes[level])
    return (mixed if suffixes is None else _mix(mixed ^ suffixes.astype(np.uint64))) & _HASH_MASK


def _mix(values: Hashes) -> Hashes:
    """Numbers that look random and differ wherever the given ones do."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def made_text(key: Key, values: Sequence[Any], suffix: int | None) -> str:
    """The value that clients write for a key that is put together."""
    texts = [shown_value(value) for value in values]
    if key.kind is Kind.CONCAT:
        return "-".join(texts)
    return f"{texts[0]}.{(suffix or 0) + 1}"


def shown_value(value: Any) -> str:
    """A key value as text."""
    if value is UNDEFINED:
        return "(missing)"
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
