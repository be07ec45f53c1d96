"""Keys of several properties joined: device "abc-123" and year 2018 are "abc-123-2018".

Promises
- Different parts never make the same key. The first part stands as it is; in the others the separator is escaped, so
  that a key is taken apart from its end. Parts of a fixed width need neither.
- Where every part is padded, keys sort as the tuples of their parts do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pleiad.strategy.item_path import names_of, value_at
from pleiad.strategy.key_text import BadKeyPart, checked_key, text_of, whole_number
from pleiad.strategy.synthetic_key import SyntheticKey

_ESCAPE = "%"
_FILL = " "


@dataclass(frozen=True, slots=True)
class Part:
    """A property in a key, as its text."""

    path: str

    def __post_init__(self) -> None:
        names_of(self.path)

    @property
    def width(self) -> int | None:
        """How many characters it always has; None where that follows from the value."""
        return None

    def text(self, value: Any) -> str:
        """What stands for a value in a key."""
        return text_of(value, self.path)

    def bare(self, text: str) -> str:
        """What stands in a key, without its padding."""
        return text

    def value(self, bare: str) -> Any:
        """A value that is written like this."""
        return bare


@dataclass(frozen=True, slots=True)
class _Padded(Part):
    characters: int

    def __post_init__(self) -> None:
        names_of(self.path)
        if self.characters < 1:
            raise ValueError(f"{self.path} is to be padded to {self.characters} characters: at least one")

    @property
    def width(self) -> int | None:
        return self.characters

    def _fitting(self, text: str) -> str:
        if len(text) > self.characters:
            raise BadKeyPart(
                f"{self.path} is {text[:60]!r}, which does not fit into {self.characters} characters"
            )
        return text


@dataclass(frozen=True, slots=True)
class PaddedNumber(_Padded):
    """A whole number with zeros before it: 7 in three characters is "007"."""

    def text(self, value: Any) -> str:
        return self._fitting(str(whole_number(value, self.path))).zfill(self.characters)

    def bare(self, text: str) -> str:
        return text.lstrip("0") or "0"

    def value(self, bare: str) -> Any:
        return int(bare) if bare.isascii() and bare.isdecimal() else bare


@dataclass(frozen=True, slots=True)
class PaddedText(_Padded):
    """A text with spaces after it: "no" in three characters is "no ". The text itself ends with no space."""

    def text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise BadKeyPart(f"{self.path} is no text, so it cannot be padded as one")
        if value.endswith(_FILL) or any(character < _FILL for character in value):
            raise BadKeyPart(f"{self.path} is {value[:60]!r}: padded, it would be taken for another text")
        return self._fitting(text_of(value, self.path)).ljust(self.characters, _FILL)

    def bare(self, text: str) -> str:
        return text.rstrip(_FILL)


class JoinedKey(SyntheticKey):
    """Properties of an item joined by a separator, by their paths or as parts of a fixed width."""

    def __init__(self, *parts: str | Part, separator: str = "-") -> None:
        self.parts = tuple(Part(part) if isinstance(part, str) else part for part in parts)
        self.separator = separator
        if not self.parts:
            raise ValueError("a key is joined of one property at least")
        if len(separator) > 1 or separator.isalnum() or separator == _ESCAPE:
            raise ValueError(
                f"{separator!r} separates nothing safely: one character, no letter, digit or {_ESCAPE}"
            )
        if not separator and any(part.width is None for part in self.parts[1:]):
            raise ValueError("without a separator every part but the first has to be padded")

    def __repr__(self) -> str:
        return f"JoinedKey({', '.join(map(repr, self.parts))}, separator={self.separator!r})"

    def value_of(self, item: Mapping[str, Any]) -> str:
        return self.value_from(*(value_at(item, part.path) for part in self.parts))

    def value_from(self, *values: Any) -> str:
        """The key of values in the order of the parts: what an item is looked up by."""
        if len(values) != len(self.parts):
            raise ValueError(f"the key has {len(self.parts)} parts, and {len(values)} values are given")
        texts = [
            part.text(value) if place == 0 or part.width is not None else self._escaped(part.text(value))
            for place, (part, value) in enumerate(zip(self.parts, values, strict=True))
        ]
        return checked_key(self.separator.join(texts))

    def texts_of(self, key: str) -> tuple[str, ...]:
        """The texts that a key was joined of, without their padding; ValueError when it is no such key."""
        texts: list[str] = []
        rest = key
        for part in reversed(self.parts[1:]):
            if part.width is not None:
                rest, text = rest[: -part.width].removesuffix(self.separator), rest[-part.width :]
            else:
                rest, _, text = rest.rpartition(self.separator)
                text = self._unescaped(text)
            texts.append(text)
        texts.append(rest)
        bare = tuple(part.bare(text) for part, text in zip(self.parts, reversed(texts), strict=True))
        try:
            is_such_a_key = (
                self.value_from(*(part.value(text) for part, text in zip(self.parts, bare, strict=True)))
                == key
            )
        except ValueError:
            is_such_a_key = False
        if not is_such_a_key:
            raise ValueError(f"{key[:60]!r} is no key of these parts")
        return bare

    def _escaped(self, text: str) -> str:
        return text.replace(_ESCAPE, f"{_ESCAPE}{ord(_ESCAPE):02X}").replace(self.separator, self._mark)

    def _unescaped(self, text: str) -> str:
        return text.replace(self._mark, self.separator).replace(f"{_ESCAPE}{ord(_ESCAPE):02X}", _ESCAPE)

    @property
    def _mark(self) -> str:
        # Of ASCII separators this is percent-encoding; a longer code ends with a character that no code has.
        code = ord(self.separator)
        return f"{_ESCAPE}{code:02X}" if code < 256 else f"{_ESCAPE}u{code:X};"
