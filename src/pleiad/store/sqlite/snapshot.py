"""One moment of a segment, kept for as long as somebody needs it.

A snapshot is a read transaction on a connection of its own, so it neither waits for the writer nor lets it wait; only
the truncation of the log does. What is committed after its first read is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from pleiad.keys.range import EpkRange
from pleiad.store.rows import ItemKey, Row
from pleiad.store.sqlite import statements
from pleiad.store.sqlite.failure import READ_FAILURES
from pleiad.store.sqlite.rows import checked_row


class SqliteSnapshot:
    """The contract's Snapshot; without a connection it is the one of a segment that has no rows yet."""

    def __init__(
        self,
        connection: apsw.Connection | None,
        give_back: Callable[[apsw.Connection], None],
        failure: Callable[[BaseException], BaseException],
    ) -> None:
        self._connection = connection
        self._give_back = give_back
        self._failure = failure
        if connection is not None:
            try:
                connection.execute("BEGIN")
                # BEGIN alone waits for the first read to fix the moment.
                connection.execute(statements.FIX_MOMENT).fetchall()
            except READ_FAILURES as error:
                raise failure(error) from error

    async def read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        return [next(iter(self._rows(statements.READ, key)), None) for key in keys]

    async def find(self, number: int) -> Row | None:
        found = self._rows(statements.FIND, (number,))
        return found[0] if found else None

    async def scan(self, span: EpkRange, after: int, limit: int, bytes_max: int) -> Sequence[Row]:
        if self._connection is None:
            return []
        rows: list[Row] = []
        room_bytes = bytes_max
        try:
            found: Any = self._connection.execute(statements.scan(span), (after, span.min, span.max, limit))
            for each in found:
                rows.append(checked_row(each))
                room_bytes -= rows[-1].size_bytes
                if room_bytes <= 0:
                    found.close()
                    break
        except READ_FAILURES as error:
            raise self._failure(error) from error
        return rows

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.in_transaction:
            connection.execute("COMMIT")
        self._give_back(connection)

    def _rows(self, statement: str, parameters: tuple[Any, ...]) -> list[Row]:
        if self._connection is None:
            return []
        try:
            found: Any = self._connection.execute(statement, parameters).fetchall()
            return list(map(checked_row, found))
        except READ_FAILURES as error:
            raise self._failure(error) from error
