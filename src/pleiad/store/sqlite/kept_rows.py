"""Rows that point reads and queries have found or writes have left, kept in memory until somebody changes them: the
next read needs no statement, and the next query none but that of its index.

Invariants
- What is kept is what is committed: before a group of writes changes a row, it is forgotten, and not kept again until
  the group has ended. While a call has the writer connection to itself nothing is kept at all.
- A row is kept only after its checksum was found right or after it was committed, as a read gives it, and not where a
  later write of that commit has removed it; a file that is closed keeps none.
- All files of a store together keep about `KEPT_BYTES_MAX`; then rows that were read first are forgotten first, in the
  file that keeps most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from pleiad.store.rows import Mutation, Outcome, Result, Row

KEPT_BYTES_MAX = 32 * 1024 * 1024
ROW_BYTES = 600
"""What a row takes in memory beside its body."""
_BODY_BYTES_MAX = 64 * 1024
"""Larger ones are not kept: a few of them would take the place of thousands."""
_FORGOTTEN_SHARE = 8

_Key = tuple[bytes, str]


class KeptBytes:
    """What the files of one store keep together."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._sum_bytes = 0
        self._files: dict[KeptRows, None] = {}
        """Those that keep something."""

    def add(self, rows: KeptRows, size_bytes: int) -> None:
        """A file keeps so much more."""
        self._files[rows] = None
        self._sum_bytes += size_bytes
        while self._sum_bytes > self._bytes_max:
            max(self._files, key=lambda each: each.size_bytes).forget_oldest()

    def take(self, rows: KeptRows, size_bytes: int) -> None:
        """A file keeps so much less."""
        self._sum_bytes -= size_bytes
        if not rows.found:
            self._files.pop(rows, None)


class KeptRows:
    """What one file keeps."""

    __slots__ = (
        "_bytes",
        "_changing",
        "_is_off",
        "_removed",
        "found",
        "is_changing",
        "numbered",
        "size_bytes",
    )

    def __init__(self, kept_bytes: KeptBytes) -> None:
        self._bytes = kept_bytes
        self.found: dict[_Key, Row] = {}
        """The rows by what names them, to be looked at by reads."""
        self.numbered: dict[int, Row] = {}
        """The same rows by their numbers, to be looked at by queries."""
        self.size_bytes = 0
        self.is_changing = False
        """Whether something is forgotten until `end`; an item that is new was never kept."""
        self._changing: set[_Key] = set()
        self._removed: set[int] = set()
        self._is_off = False

    def keep(self, key: _Key, row: Row) -> None:
        """Takes a row that was read just now, unless it is about to be changed."""
        if self._is_off or key in self._changing or key in self.found or len(row.body) > _BODY_BYTES_MAX:
            return
        size_bytes = len(row.body) + ROW_BYTES
        self.found[key] = self.numbered[row.number] = row
        self.size_bytes += size_bytes
        self._bytes.add(self, size_bytes)

    def forget(self, mutation: Mutation) -> Row | None:
        """A mutation is about to change what may be kept: a row that it finds, or another one.

        Gives the row that it finds, where that was kept: nothing has changed it before in this group.
        """
        if mutation.unique_values:
            # It may remove another item too, which has expired and holds one of the values.
            self.begin_alone()
            return None
        self.is_changing = True
        if mutation.new_id is not None:
            self._change((mutation.epk, mutation.new_id))
        return self._change((mutation.epk, mutation.id))

    def _change(self, key: _Key) -> Row | None:
        self._changing.add(key)
        row = self.found.get(key)
        if row is not None:
            self._forget(key)
        return row

    def note_removed(self, number: int) -> None:
        """A row that this group of writes may have left has been removed by it too: deleted, or expired meanwhile."""
        self._removed.add(number)

    def begin_alone(self) -> None:
        """Any row may be changed from now on."""
        self._is_off = self.is_changing = True
        self.clear()

    def end(self, answers: Iterable[Sequence[Outcome]] = ()) -> None:
        """What was begun has ended, and whoever reads from now on sees it.

        `answers` are those of a group of writes that is committed: rows that took the place of others are kept at once,
        since who changes an item often reads it next, or changes it again.
        """
        replaced = {} if self._is_off else _replaced(answers)
        self._is_off = self.is_changing = False
        self._changing.clear()
        for number, row in replaced.items():
            if row is not None and number not in self._removed:
                self.keep((row.epk, row.id), row)
        self._removed.clear()

    def clear(self) -> None:
        """Forgets all of them."""
        size_bytes, self.size_bytes = self.size_bytes, 0
        self.found.clear()
        self.numbered.clear()
        self._bytes.take(self, size_bytes)

    def forget_oldest(self) -> None:
        """Forgets a part of the rows."""
        for key in list(islice(self.found, len(self.found) // _FORGOTTEN_SHARE + 1)):
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        row = self.found.pop(key)
        del self.numbered[row.number]
        size_bytes = len(row.body) + ROW_BYTES
        self.size_bytes -= size_bytes
        self._bytes.take(self, size_bytes)


def _replaced(answers: Iterable[Sequence[Outcome]]) -> dict[int, Row | None]:
    """What a group of writes has left in the place of other rows, by their numbers; None where that is not to be kept.

    A text that is longer than the compact one has white space, which a read would not give.
    """
    rows: dict[int, Row | None] = {}
    for outcomes in answers:
        for result, _, row, _, _ in outcomes:
            if result is Result.REPLACED and row is not None:
                rows[row.number] = row if len(row.body) == row.size_bytes else None
    return rows
