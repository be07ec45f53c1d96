"""Suffixes that spread the items of one value, such as a day, over many: `2018-08-09.1` to `2018-08-09.400`.

A random suffix spreads writes whatever they are; to find one item again all suffixes have to be asked. A computed
suffix follows from a property, so that whoever knows it computes the one key to read.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any

from pleiad.strategy.item_path import names_of, value_at
from pleiad.strategy.joined_key import JoinedKey
from pleiad.strategy.key_text import checked_key, text_of
from pleiad.strategy.synthetic_key import KEY_PATH, SyntheticKey

SUFFIXES = 400
"""How many suffixes there are unless told otherwise."""
_SUFFIXES_MAX = 100_000


class _Suffixed(SyntheticKey):
    def __init__(self, base: str | SyntheticKey, suffixes: int = SUFFIXES, separator: str = ".") -> None:
        if not 1 <= suffixes <= _SUFFIXES_MAX:
            raise ValueError(f"{suffixes} suffixes: there are 1 to {_SUFFIXES_MAX:,}")
        if len(separator) != 1 or separator.isalnum():
            raise ValueError(f"{separator!r} separates no suffix: one character, no letter and no digit")
        if isinstance(base, RandomSuffix | ComputedSuffix):
            raise ValueError("a key has one suffix: choose a larger number of suffixes instead")
        self.base = JoinedKey(base) if isinstance(base, str) else base
        self.suffixes = suffixes
        self.separator = separator

    def values_for(self, base_value: Any) -> tuple[str, ...]:
        """The key values that the items of one value of the base have, in the order of their suffixes."""
        base = text_of(base_value, "the value of the base")
        return tuple(self._joined(base, suffix) for suffix in range(1, self.suffixes + 1))

    def _joined(self, base: str, suffix: int) -> str:
        return checked_key(f"{base}{self.separator}{suffix}")


class RandomSuffix(_Suffixed):
    """A value with a random number after it: the writes of a day spread evenly and run in parallel."""

    def __init__(
        self,
        base: str | SyntheticKey,
        suffixes: int = SUFFIXES,
        separator: str = ".",
        draw: Callable[[int], int] = random.randrange,
    ) -> None:
        super().__init__(base, suffixes, separator)
        self._draw = draw

    def value_of(self, item: Mapping[str, Any]) -> str:
        """A value drawn anew on every call: for an item that was stored before, use `applied_to`."""
        return self._joined(self.base.value_of(item), 1 + self._draw(self.suffixes))

    def applied_to(self, item: Mapping[str, Any], path: str = KEY_PATH) -> dict[str, Any]:
        """The item with a key value in it; one that has a value of its base already keeps that.

        So an item that was read, changed and applied again is the same item, and not a second one elsewhere.
        """
        try:
            present = value_at(item, path)
        except ValueError:
            present = None
        if isinstance(present, str) and self._is_of(present, self.base.value_of(item)):
            return dict(item)
        return super().applied_to(item, path)

    def _is_of(self, key: str, base: str) -> bool:
        start, _, suffix = key.rpartition(self.separator)
        is_number = suffix.isascii() and suffix.isdecimal() and not suffix.startswith("0")
        return start == base and is_number and len(suffix) <= 6 and 1 <= int(suffix) <= self.suffixes


class ComputedSuffix(_Suffixed):
    """A value with a number after it that follows from a property: writes spread, and point reads stay possible.

    The number is 1 + (h mod `suffixes`), where h is made of the first eight bytes, most significant first, of the
    SHA-256 of the property's text in UTF-8; so every language computes the same.
    """

    def __init__(
        self, base: str | SyntheticKey, by: str, suffixes: int = SUFFIXES, separator: str = "."
    ) -> None:
        super().__init__(base, suffixes, separator)
        names_of(by)
        self.by = by

    def value_of(self, item: Mapping[str, Any]) -> str:
        return self._joined(self.base.value_of(item), self.suffix_of(value_at(item, self.by)))

    def value_from(self, base_value: Any, value: Any) -> str:
        """The one key value for a value of the base and a value of the property: what a point read needs."""
        return self._joined(text_of(base_value, "the value of the base"), self.suffix_of(value))

    def suffix_of(self, value: Any) -> int:
        """The suffix for a value of the property."""
        digest = hashlib.sha256(text_of(value, self.by).encode()).digest()
        return 1 + int.from_bytes(digest[:8], "big") % self.suffixes
