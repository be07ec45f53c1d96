"""What the checksum of a row costs: reading and writing rows of 1 KB with it and without it.

Measured in this process, on the tables of a segment in memory and by the statements of the store, so that neither the
disk nor the rest of a request hides it. Bars, each a rate with the checksum over the rate without:
- ``checksum_point_read``: one row by its key.
- ``checksum_scan``: a thousand rows, one after the other.
- ``checksum_write``: one row inserted.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import apsw

from bench.items import items
from bench.load import LoadProcess
from bench.report import Bar, FamilyReport
from bench.scenarios.language import seconds_of
from bench.settings import Settings
from pleiad.store.rows import Row
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.rows import ROW, checked_row, checksum_of, stored_body

ROWS = 1_000
_BARE_ROW = "item.number, epk, id, lsn, ts, ttl, size_bytes, terms, CAST(json(body) AS BLOB)"
_ONE = "SELECT {} FROM item WHERE epk = ?1 AND id = ?2"
_ALL = "SELECT {} FROM item ORDER BY number"
_INSERT = "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
_BARE_INSERT = "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, jsonb(?9), NULL)"


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """The best of several rounds of each pair, taken in turns."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        schema.prepare(connection)
        schema.make_segment(connection, "bench", "bench", 1)
        execute = connection.execute
        rows = _rows()
        numbers = itertools.count(ROWS + 1)

        def write() -> None:
            row = rows[0]._replace(number=next(numbers), id=f"w{next(numbers)}")
            body = stored_body(execute, row.body)
            execute(_INSERT, (*row[:8], body, checksum_of(row, body)))

        def write_bare() -> None:
            row = rows[0]._replace(number=next(numbers), id=f"w{next(numbers)}")
            execute(_BARE_INSERT, (*row[:8], row.body.decode()))

        for row in rows:
            body = stored_body(execute, row.body)
            execute(_INSERT, (*row[:8], body, checksum_of(row, body)))
        key = (rows[500].epk, rows[500].id)

        def one(columns: str) -> tuple[Any, ...]:
            return execute(_ONE.format(columns), key).fetchone() or ()

        pairs: dict[str, tuple[str, Callable[[], object], Callable[[], object]]] = {
            "checksum_point_read": (
                "one row read by its key",
                lambda: checked_row(one(ROW)),
                lambda: Row._make(one(_BARE_ROW)),
            ),
            "checksum_scan": (
                "1,000 rows read in order",
                lambda: [checked_row(found) for found in execute(_ALL.format(ROW))],
                lambda: [Row._make(found) for found in execute(_ALL.format(_BARE_ROW))],
            ),
            "checksum_write": ("one row inserted", write, write_bare),
        }
        bars = [_bar(name, *pair, rounds=max(5, settings.rounds)) for name, pair in pairs.items()]
    return FamilyReport(lines=(), bars=tuple(bars))


_RATIOS_MIN = {"checksum_point_read": 0.7, "checksum_scan": 0.6, "checksum_write": 0.5}


def _bar(name: str, does: str, checked: Callable[[], object], bare: Callable[[], object], rounds: int) -> Bar:
    with_it, without = float("inf"), float("inf")
    for _ in range(rounds):
        with_it = min(with_it, seconds_of(checked))
        without = min(without, seconds_of(bare))
    cost = f"{without * 1e6:.1f} to {with_it * 1e6:.1f} µs"
    return Bar(
        name=name, ratio=without / with_it, bar=_RATIOS_MIN[name], meaning=f"{does} with its checksum: {cost}"
    )


def _rows() -> list[Row]:
    return [
        Row(
            number,
            number.to_bytes(16, "big"),
            item.id,
            number,
            1_700_000_000,
            None,
            len(item.body),
            20,
            item.body,
        )
        for number, item in enumerate(items("checksum", ROWS), 1)
    ]
