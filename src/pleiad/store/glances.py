"""What readers look at of rows, by columns: numbers, sizes, and the JSON texts of some properties.

A store that finds many rows at once may give the texts of a property as the lines of one text, since a row that is
handed over by itself takes longer than all that is looked at of it. JSON texts have no line breaks, and none of them is
empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Glance = tuple[Any, ...]
"""What a reader looks at of a row: its number, its size in bytes, and the JSON text of each property that it asked for,
None where the item lacks it. A value may be written in several ways."""

_Texts = Sequence[str | None]


class Glances:
    """Glances at some rows, in their order."""

    __slots__ = ("_lines", "_size_bytes", "_texts", "is_cut", "numbers", "sizes")

    def __init__(
        self,
        numbers: Sequence[int] = (),
        sizes: Sequence[int] = (),
        texts: Sequence[_Texts] | None = None,
        lines: Sequence[str] = (),
    ) -> None:
        """Of the texts of each property one by one, or of their lines, which are empty for what is missing.

        Rows that stand for others may have no sizes.
        """
        self.numbers = numbers
        self.sizes = sizes
        self._texts = texts
        self._lines = lines
        self._size_bytes: int | None = None
        self.is_cut = False
        """Whether there may be more rows although these are fewer than were asked for: their texts were many bytes."""

    @classmethod
    def of(cls, glances: Sequence[Glance], names_count: int) -> Glances:
        """Of rows that come one by one."""
        if not glances:
            return cls((), (), [()] * names_count)
        numbers, sizes, *texts = zip(*glances, strict=True)
        return cls(numbers, sizes, texts)

    @classmethod
    def joined(cls, parts: Sequence[Glances], names_count: int) -> Glances:
        """Of the rows of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        whole = cls(
            [number for part in parts for number in part.numbers],
            [size_bytes for part in parts for size_bytes in part.sizes],
            [[text for part in parts for text in part.texts[at]] for at in range(names_count)],
        )
        whole.is_cut = any(part.is_cut for part in parts)
        return whole

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> Glance:
        return (self.numbers[place], self.sizes[place], *(column[place] for column in self.texts))

    def __iter__(self) -> Iterator[Glance]:
        return zip(self.numbers, self.sizes, *self.texts, strict=True)

    def size_bytes(self, start: int = 0, count: int | None = None) -> int:
        """The sizes of the rows together, of all or of some."""
        if start or not (count is None or count == len(self.sizes)):
            return sum(self.sizes[start:] if count is None else self.sizes[start : start + count])
        if self._size_bytes is None:
            self._size_bytes = sum(self.sizes)
        return self._size_bytes

    @property
    def chars(self) -> int:
        """How long the texts are together."""
        if self._texts is None:
            return sum(map(len, self._lines))
        return sum(len(text) for column in self._texts for text in column if text is not None)

    @property
    def texts(self) -> Sequence[_Texts]:
        """The texts of each property, None where an item lacks it."""
        if self._texts is None:
            self._texts = [
                [text or None for text in lines.split("\n")] if lacks_some(lines) else lines.split("\n")
                for lines in self._lines
            ]
        return self._texts

    def lines(self, at: int) -> str:
        """The texts of one property as lines, empty where an item lacks it."""
        if self._lines:
            return self._lines[at]
        return "\n".join([text or "" for text in self.texts[at]])

    @property
    def keys(self) -> Sequence[Any]:
        """What tells rows apart: rows with equal keys come to the same."""
        return self.texts[0] if len(self.texts) == 1 else list(zip(*self.texts, strict=True))

    def behind(self, count: int) -> Glances:
        """The rows without the first."""
        texts = [column[count:] for column in self.texts]
        return Glances(self.numbers[count:], self.sizes[count:], texts)

    def at(self, places: Sequence[int]) -> Glances:
        """The rows at some places."""
        numbers, sizes = self.numbers, self.sizes
        texts = [[column[place] for place in places] for column in self.texts]
        return Glances([numbers[place] for place in places], [sizes[place] for place in places], texts)


def lacks_some(lines: str) -> bool:
    """Whether one of some lines is empty."""
    return not lines or lines[0] == "\n" or lines[-1] == "\n" or "\n\n" in lines
