"""The values at one path of many items, as numbers: each distinct value has a code, and each code its real hash.

Invariants
- Two rows have one code exactly when their values are one partition key value: 1 and 1.0 are, 1 and true are not.
- A hash is the first eight bytes of the value's epk (`pleiad.keys`), which are 62 bits of it. It also stands for the
  value once more than ``NAMES_MAX`` distinct ones are there: of so many, no text is kept, but of those that repeat.
- Memory is four bytes a row, beside the texts that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.sketch import DistinctSketch, new_sketch
from pleiad.keys.hash import epk_heads
from pleiad.keys.value import KeyValue
from pleiad.values.undefined import UNDEFINED

Codes = NDArray[np.int32]
Hashes = NDArray[np.uint64]

NAMES_MAX = 100_000
_WIDE_VALUES = 20_000
_REPEATED_NAMES = 16
"""Of values that come late, so many of the most frequent of each batch are named."""
_EXACT_INTEGER_MAX = 2**53
_TEXT = {str}
_NUMBERS = {int, float}
_NO_SCALARS = (dict, list)


@dataclass(slots=True)
class Kinds:
    """How many rows have which kind of value."""

    missing: int = 0
    """Undefined, an object or an array."""
    null: int = 0
    boolean: int = 0
    number: int = 0
    text: int = 0
    unsafe: int = 0
    """Numbers, counted above as well, that a double cannot tell from their neighbours."""


@dataclass(frozen=True, slots=True)
class Column:
    """The values at one path."""

    name: str
    codes: Codes
    hashes: Hashes
    """By code."""
    kinds: Kinds
    bytes_max: int
    """Of the longest string."""
    names: dict[int, KeyValue] = field(repr=False)
    """Values by their hash, as far as they are kept."""
    distinct_of_all: int | None = None
    """With rows that are a sample: how many values all items have, nearly; None where that was not counted."""

    @property
    def is_amount(self) -> bool:
        """Whether the values are amounts, such as prices: numbers mostly, and some of them with a fraction."""
        others = self.kinds.text + self.kinds.boolean
        return self.kinds.number > others and any(
            isinstance(value, float) and not value.is_integer() for value in self.names.values()
        )

    @property
    def distinct(self) -> int:
        return len(self.hashes)

    def value_of(self, code: int) -> KeyValue | None:
        """The value of a code; None where it is not kept (a null is kept as None as well)."""
        return self.names.get(int(self.hashes[code]))

    def has_name(self, code: int) -> bool:
        return int(self.hashes[code]) in self.names


def hashes_of(values: Sequence[KeyValue]) -> Hashes:
    """The hashes of values as columns have them."""
    return np.array(epk_heads(values), dtype=np.uint64)


def mapped(column: Column, name: str, change: Callable[[KeyValue], KeyValue]) -> Column:
    """The column of values made of the values of another; those that are not kept stay as they are."""
    hashes = column.hashes.copy()
    named = [code for code in range(column.distinct) if column.has_name(code)]
    values = [change(column.value_of(code)) for code in named]
    made = hashes_of(values)
    hashes[named] = made
    distinct, inverse = np.unique(hashes, return_inverse=True)
    codes = inverse.astype(np.int32)[column.codes] if column.distinct else column.codes
    names = dict(zip(made.tolist(), values, strict=True))
    return Column(name, codes, distinct, column.kinds, column.bytes_max, names)


class ColumnBuilder:
    """Takes in the values of a path, a batch of rows at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._index: dict[Any, int] = {}
        """Codes by value; true and false stand apart from the numbers that they equal."""
        self._values: list[KeyValue] = []
        self._hashes: list[Hashes] = []
        self._chunks: list[Codes] = []
        self._late: list[Hashes] = []
        """The hashes of rows whose code is -1, in their order."""
        self._late_names: dict[int, KeyValue] = {}
        self._sketch: DistinctSketch | None = None
        self._is_wide = False
        """Whether nearly every row has a value of its own, so that looking for known ones is lost time."""
        self._rows = 0
        self._kinds = Kinds()
        self._bytes_max = 0

    def add(self, values: list[Any]) -> None:
        """The next rows; a value that is missing is UNDEFINED."""
        keys = self._keys(values)
        if self._is_wide:
            self._add_late(values)
            self._chunks.append(np.full(len(values), -1, np.int32))
            return
        found = list(map(self._index.get, keys))
        if None in found:
            self._add_new(keys, values, found)
        self._chunks.append(np.array(found, dtype=np.int32))

    def begin_sketch(self) -> None:
        """From now on the rows are a sample; the values of all items go through `sketch`."""
        self._sketch = new_sketch()
        if self._sketch is not None:
            for hashes in (*self._hashes, *self._late):
                self._sketch.add(hashes)

    def sketch(self, values: list[Any]) -> None:
        """Counts the values of items of which some become rows."""
        if self._sketch is not None:
            plain = [UNDEFINED if value.__class__ in _NO_SCALARS else value for value in values]
            self._sketch.add(hashes_of(plain))

    def thin(self, keep: Sequence[NDArray[np.bool_]]) -> None:
        """Drops rows of all chunks so far; each chunk has its mask."""
        late, self._late = (np.concatenate(self._late), []) if self._late else (None, [])
        at = 0
        for number, mask in enumerate(keep):
            chunk = self._chunks[number]
            if late is not None:
                is_late = chunk < 0
                count = int(is_late.sum())
                self._late.append(late[at : at + count][mask[is_late]])
                at += count
            self._chunks[number] = chunk[mask]

    def finish(self) -> Column:
        """The column of all rows."""
        codes = np.concatenate(self._chunks) if self._chunks else np.empty(0, np.int32)
        hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        names = dict(zip(hashes.tolist(), self._values, strict=True)) | self._late_names
        if self._late or len(np.unique(codes)) < len(hashes):
            row_hashes = np.empty(len(codes), np.uint64)
            is_late = codes < 0
            row_hashes[~is_late] = hashes[codes[~is_late]]
            if self._late:
                row_hashes[is_late] = np.concatenate(self._late)
            hashes, inverse = np.unique(row_hashes, return_inverse=True)
            codes = inverse.astype(np.int32)
        counted = None if self._sketch is None else max(len(hashes), self._sketch.count)
        return Column(self._name, codes, hashes, self._kinds, self._bytes_max, names, counted)

    def _keys(self, values: list[Any]) -> list[Any]:
        """What values stand under in the index, counted by their kinds on the way."""
        kinds = self._kinds
        types = set(map(type, values))
        if types == _TEXT:
            kinds.text += len(values)
            return values
        if types <= _NUMBERS:
            self._count_numbers(values)
            return values
        keys: list[Any] = []
        for number, value in enumerate(values):
            if value.__class__ is dict or value.__class__ is list:
                values[number] = value = UNDEFINED
            kinds.text += value.__class__ is str
            kinds.missing += value is UNDEFINED
            kinds.null += value is None
            kinds.boolean += value.__class__ is bool
            keys.append((value,) if value.__class__ is bool else value)
        self._count_numbers([value for value in values if value.__class__ in _NUMBERS])
        return keys

    def _count_numbers(self, values: list[Any]) -> None:
        self._kinds.number += len(values)
        if values and (max(values) > _EXACT_INTEGER_MAX or min(values) < -_EXACT_INTEGER_MAX):
            self._kinds.unsafe += sum(abs(value) > _EXACT_INTEGER_MAX for value in values)

    def _add_new(self, keys: list[Any], values: list[Any], found: list[Any]) -> None:
        """Gives codes to values that have none; those beyond the names that are kept have their hash only."""
        index = self._index
        room = NAMES_MAX - len(index)
        fresh: dict[Any, KeyValue] = {}
        late: list[int] = []
        for number, code in enumerate(found):
            if code is not None:
                continue
            key = keys[number]
            code = index.get(key)
            if code is None and room > 0:
                room -= 1
                code = index[key] = len(index)
                fresh[key] = values[number]
            if code is None:
                code = -1
                late.append(number)
            found[number] = code
        self._values += fresh.values()
        if fresh:
            self._hashes.append(hashes_of(list(fresh.values())))
            self._note_length(list(fresh.values()))
        if late:
            self._add_late([values[number] for number in late])
        self._rows += len(found)
        self._is_wide = len(self._values) > _WIDE_VALUES and len(self._values) + len(late) > self._rows // 2

    def _add_late(self, values: list[KeyValue]) -> None:
        hashes = hashes_of(values)
        self._late.append(hashes)
        self._note_length(values)
        distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        often = np.argsort(counts)[-_REPEATED_NAMES:]
        for place in compress(often, counts[often] > 1):
            self._late_names[int(distinct[place])] = values[first[place]]

    def _note_length(self, values: list[KeyValue]) -> None:
        texts = [value for value in values if value.__class__ is str]
        if "".join(texts).isascii():
            longest = max(map(len, texts), default=0)
        else:
            longest = max(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        self._bytes_max = max(self._bytes_max, longest)
