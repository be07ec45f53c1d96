"""The values at one path of many items, as numbers: each distinct value has a code, and each code its real hash.

Invariants
- Two rows have one code exactly when their values are one partition key value: 1 and 1.0 are, 1 and true are not.
- A hash is the first eight bytes of the value's epk (`pleiad.keys`), which are 62 bits of it, and stands for the value:
  of more than ``NAMES_MAX`` distinct ones no text is kept, but of some that repeat. Codes are in the order of hashes.
- Memory is eight bytes a row while items are read and four afterwards, beside the texts that are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.sketch import DistinctSketch, new_sketch
from pleiad.keys.hash import HEAD_MAX, hash_digests, hashed_forms
from pleiad.keys.value import KeyValue
from pleiad.values.undefined import UNDEFINED

Codes = NDArray[np.int32]
Hashes = NDArray[np.uint64]

NAMES_MAX = 100_000
_REPEATED_NAMES = 16
"""When there are more, so many of each batch that are there once more are kept as well."""
_FEW_VALUES = 10_000
_NEW_SHARE = 0.25
"""When more of a batch is new, all of it is hashed."""
_SEEN_SLOTS = 2**17
_SEEN_MASK = np.uint64(_SEEN_SLOTS - 1)
_FORM_BYTES = 2
"""What is around a text where it is hashed."""
_EXACT_INTEGER_MAX = 2**53
_TEXT = {str}
_NUMBERS = {int, float}
_NO_SCALARS = (dict, list)


@dataclass(slots=True)
class Kinds:
    """How many items have which kind of value: all that were read, whether they are rows or not."""

    missing: int = 0
    """Undefined, an object or an array."""
    null: int = 0
    boolean: int = 0
    number: int = 0
    text: int = 0
    unsafe: int = 0
    """Numbers, counted above as well, that a double cannot tell from their neighbours."""

    @property
    def total(self) -> int:
        return self.missing + self.null + self.boolean + self.number + self.text


@dataclass(frozen=True, slots=True)
class Column:
    """The values at one path."""

    name: str
    codes: Codes
    hashes: Hashes
    """By code, in their order."""
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

    @property
    def has_all_names(self) -> bool:
        return self.distinct <= len(self.names) and all(map(self.names.__contains__, self.hashes.tolist()))


def hashes_of(values: Sequence[KeyValue]) -> Hashes:
    """The hashes of values as columns have them."""
    return _heads(hashed_forms(values))


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
        self._chunks: list[Hashes] = []
        self._names: dict[int, KeyValue] = {}
        self._known: dict[Any, int] | None = {}
        """The hashes of texts, as long as those are few."""
        self._seen = np.zeros(_SEEN_SLOTS, np.uint64)
        """Hashes that were there, each in a slot of its own or of the last one that shares it."""
        self._sketch: DistinctSketch | None = None
        self._is_thinned = False
        self._kinds = Kinds()
        self._bytes_max = 0

    def add(self, values: list[Any], kept: NDArray[np.bool_] | None = None) -> None:
        """The next rows, all of them or those that are kept; a value that is missing is UNDEFINED."""
        hashes = self._known_hashes(values)
        if hashes is not None:
            self._kinds.text += len(values)
            self._chunks.append(hashes if kept is None else hashes[kept])
            return
        self._count_kinds(values)
        hashes = self._hashes(values)
        self._chunks.append(hashes if kept is None else hashes[kept])
        self._note_names(self._chunks[-1], values if kept is None else list(compress(values, kept)))

    def begin_sketch(self) -> None:
        """From now on the rows are a sample."""
        self._sketch = new_sketch()
        if self._sketch is not None:
            for hashes in self._chunks:
                self._sketch.add(hashes)

    def thin(self, keep: Sequence[NDArray[np.bool_]]) -> None:
        """Drops rows of all chunks so far; each chunk has its mask."""
        self._is_thinned = True
        self._chunks = [chunk[mask] for chunk, mask in zip(self._chunks, keep, strict=True)]

    def finish(self) -> Column:
        """The column of all rows."""
        of_rows = np.concatenate(self._chunks) if self._chunks else np.empty(0, np.uint64)
        self._chunks = []
        if len(self._names) <= _FEW_VALUES and not self._is_thinned:
            # All values have a name then, and looking them up is quicker than sorting all rows.
            hashes = np.sort(np.fromiter(self._names, np.uint64, len(self._names)))
            codes = np.searchsorted(hashes, of_rows)
        else:
            hashes, codes = np.unique(of_rows, return_inverse=True)
        counted = None if self._sketch is None else max(len(hashes), self._sketch.count)
        return Column(
            self._name, codes.astype(np.int32), hashes, self._kinds, self._bytes_max, self._names, counted
        )

    def _known_hashes(self, values: list[Any]) -> Hashes | None:
        """The hashes of values that were there before, if all are texts and no more than a few are new."""
        if not self._known:
            return None
        with suppress(KeyError, TypeError):  # what is new, or can be in no dict
            return self._looked_up(self._known, values)
        if set(map(type, values)) != _TEXT:
            return None
        new = list({value for value in values if value not in self._known})
        if len(new) > _NEW_SHARE * len(values):
            return None
        self._note_names(self._hashes(new), new)
        return None if self._known is None else self._looked_up(self._known, values)

    @staticmethod
    def _looked_up(known: dict[Any, int], values: list[Any]) -> Hashes:
        return np.fromiter(map(known.__getitem__, values), np.uint64, len(values))

    def _hashes(self, values: list[Any]) -> Hashes:
        """The hashes of values, which are known from now on."""
        forms = hashed_forms(values)
        hashes = _heads(forms)
        self._note_length(values, forms)
        self._note_known(hashes, values)
        if self._sketch is not None:
            self._sketch.add(hashes)
        return hashes

    def _note_known(self, hashes: Hashes, values: list[Any]) -> None:
        if self._known is not None:
            texts = zip(values, hashes.tolist(), strict=True)
            self._known.update((value, hash) for value, hash in texts if value.__class__ is str)
            if len(self._known) > _FEW_VALUES:
                self._known = None

    def _count_kinds(self, values: list[Any]) -> None:
        kinds = self._kinds
        types = set(map(type, values))
        if types == _TEXT:
            kinds.text += len(values)
            return
        if not types <= _NUMBERS:
            for number, value in enumerate(values):
                if value.__class__ in _NO_SCALARS:
                    values[number] = value = UNDEFINED
                kinds.text += value.__class__ is str
                kinds.missing += value is UNDEFINED
                kinds.null += value is None
                kinds.boolean += value.__class__ is bool
        numbers: list[Any] = [value for value in values if value.__class__ in _NUMBERS]
        kinds.number += len(numbers)
        if numbers and (max(numbers) > _EXACT_INTEGER_MAX or min(numbers) < -_EXACT_INTEGER_MAX):
            kinds.unsafe += sum(abs(value) > _EXACT_INTEGER_MAX for value in numbers)
            for number, value in enumerate(values):
                if value.__class__ is int and abs(value) > sys.float_info.max:
                    values[number] = UNDEFINED  # no database takes it as a number

    def _note_length(self, values: list[Any], forms: list[bytes]) -> None:
        if max(map(len, forms)) - _FORM_BYTES > self._bytes_max:
            texts = [len(form) for value, form in zip(values, forms, strict=True) if value.__class__ is str]
            self._bytes_max = max(self._bytes_max, max(texts, default=0) - _FORM_BYTES)

    def _note_names(self, hashes: Hashes, values: list[KeyValue]) -> None:
        """Keeps the values that are new, and when there are too many, some of those that come again."""
        slots = hashes & _SEEN_MASK
        is_known = self._seen[slots] == hashes
        self._seen[slots] = hashes
        room = NAMES_MAX - len(self._names)
        chosen = np.flatnonzero(~is_known)[:room] if room > 0 else np.flatnonzero(is_known)[:_REPEATED_NAMES]
        self._names.update(
            zip(hashes[chosen].tolist(), map(values.__getitem__, chosen.tolist()), strict=True)
        )


def _heads(forms: Sequence[bytes]) -> Hashes:
    return np.frombuffer(hash_digests(forms), dtype="<u8")[1::2] & np.uint64(HEAD_MAX)
