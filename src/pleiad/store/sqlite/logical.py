"""Finding the largest logical partitions of a segment, on a connection and a thread of its own.

All items of the range are counted in slices, each its own short snapshot: a long one would keep the log from being
truncated, and writers waiting for that.
"""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

import apsw

from pleiad.keys.range import EpkRange
from pleiad.store.rows import LogicalPartition
from pleiad.store.sqlite import schema

SLICE_ROWS = 20_000
_SLICE = (
    "SELECT epk, count(*), sum(size_bytes), max(id) FROM (SELECT epk, id, size_bytes FROM item INDEXED BY item_key "
    "WHERE (epk, id) > (?1, ?2) AND epk >= ?3 AND epk < ?4 ORDER BY epk, id LIMIT ?5) GROUP BY epk ORDER BY epk"
)
_SAMPLE = "SELECT CAST(json(body) AS BLOB) FROM item WHERE epk = ?1 LIMIT 1"


def largest(
    path: Path, span: EpkRange, count: int, bytes_min: int, slice_rows: int = SLICE_ROWS
) -> list[LogicalPartition]:
    """The largest logical partitions of a range, largest first; none when the file is gone meanwhile."""
    try:
        connection = schema.connect_reader(path)
    except apsw.CantOpenError:
        return []
    try:
        top: list[tuple[int, int, bytes]] = []
        epk, items, size_bytes, last_id = span.min, 0, 0, ""
        while True:
            rows: Any = connection.execute(_SLICE, (epk, last_id, span.min, span.max, slice_rows)).fetchall()
            for found, found_items, found_bytes, found_id in rows:
                if found != epk:
                    _keep(top, (size_bytes, items, epk), count, bytes_min)
                    epk, items, size_bytes = found, 0, 0
                items += found_items
                size_bytes += found_bytes
                last_id = found_id
            if sum(row[1] for row in rows) < slice_rows:
                break
        _keep(top, (size_bytes, items, epk), count, bytes_min)
        result = []
        for size_bytes, items, epk in sorted(top, reverse=True):
            sample: Any = connection.execute(_SAMPLE, (epk,)).fetchone()
            if sample is not None:  # it may have been deleted meanwhile
                result.append(LogicalPartition(epk, items, size_bytes, sample[0]))
        return result
    finally:
        connection.close()


def _keep(
    top: list[tuple[int, int, bytes]], found: tuple[int, int, bytes], count: int, bytes_min: int
) -> None:
    """Puts a finished logical partition among the largest, if it is one of them."""
    if found[1] == 0 or found[0] < bytes_min:
        return
    heapq.heappush(top, found)
    if len(top) > count:
        heapq.heappop(top)
