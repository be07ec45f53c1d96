"""What of a segment is certain from answers alone: which ids and unique values rows have, and how new a row must be."""

from __future__ import annotations

from collections.abc import Sequence

from pleiad.store.checked.breach import demand
from pleiad.store.rows import APPLIED, Outcome, PartitionWrite, Result, Row

_Key = tuple[bytes, str]
_Value = tuple[bytes, int, bytes]


class LiveRows:
    """The rows of one segment as far as this server alone has written them."""

    def __init__(self, is_shared: bool) -> None:
        self._is_certain = not is_shared
        self._numbers: dict[_Key, int] = {}
        self._holders: dict[_Value, int] = {}
        self._values: dict[int, list[_Value]] = {}
        self._lsns: dict[_Key, int] = {}

    def forget(self, is_certain: bool = True) -> None:
        """Knows nothing any more; not certain when rows may go or come unseen from now on."""
        self._is_certain = self._is_certain and is_certain
        self._numbers.clear()
        self._holders.clear()
        self._values.clear()
        self._lsns.clear()

    def newest(self, key: _Key) -> tuple[int, bool]:
        """The LSN that was last answered for a key, and whether a row must be there."""
        return self._lsns.get(key, 0), self._is_certain and key in self._numbers

    def check_read(self, row: Row | None, newest: tuple[int, bool], is_quiet: bool) -> None:
        """A row beside what was known when it was asked for."""
        lsn, must_be_there = newest
        demand(
            row is None or row.lsn >= lsn, "13", f"the row {row} is older than LSN {lsn}, which was answered"
        )
        demand(
            row is not None or not (must_be_there and is_quiet), "13", f"the row with LSN {lsn} is not there"
        )

    def note(self, write: PartitionWrite, outcomes: Sequence[Outcome], is_alone: bool) -> None:
        """Takes in the answer to a write, and tests it where nothing ran beside it."""
        if write.default_ttl is not None:
            # Rows may be removed on the way to others, and no answer tells which.
            self.forget(is_certain=False)
        for mutation, outcome in zip(write.mutations, outcomes, strict=True):
            if outcome.result not in APPLIED:
                continue
            before, after = (mutation.epk, mutation.id), (mutation.epk, mutation.id_after)
            for key in (before, after):
                self._lsns[key] = max(self._lsns.get(key, 0), outcome.lsn)
            if before != after or outcome.result is Result.DELETED:
                self._numbers.pop(before, None)
            number = outcome.old.number if outcome.row is None and outcome.old is not None else 0
            number = outcome.row.number if outcome.row is not None else number
            if outcome.result is Result.DELETED or mutation.unique_values:
                self._release(number)
            if outcome.row is None or not self._is_certain:
                continue
            if is_alone:
                self._check(after, number, mutation.unique_values)
            self._numbers[after] = number
            for index, value in enumerate(mutation.unique_values):
                self._holders[mutation.epk, index, value] = number
                self._values.setdefault(number, []).append((mutation.epk, index, value))

    def _check(self, key: _Key, number: int, values: Sequence[bytes]) -> None:
        holder = self._numbers.get(key, number)
        demand(holder == number, "4", f"the rows {holder} and {number} have the id {key}")
        for index, value in enumerate(values):
            holder = self._holders.get((key[0], index, value), number)
            demand(holder == number, "4", f"the rows {holder} and {number} have the unique value {value!r}")

    def _release(self, number: int) -> None:
        for value in self._values.pop(number, ()):
            if self._holders.get(value) == number:
                del self._holders[value]
