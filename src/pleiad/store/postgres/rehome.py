"""Split, merge and move in PostgreSQL: fencing and dividing partitions, copying rows between two segments.

Copies stay inside the server: no row passes through this process. What is copied is read in one snapshot.
"""

from __future__ import annotations

from typing import Any

from pleiad.keys.range import EpkRange
from pleiad.store.moves import CaughtUp, Division
from pleiad.store.postgres import statements
from pleiad.store.postgres.connections import Connection
from pleiad.store.postgres.schema import sql
from pleiad.store.rows import PartitionState

SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_NUMBER_MAX = 2**63 - 1


async def _rows(connection: Connection, text: str, params: Any = ()) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(sql(text), params)
    return await cursor.fetchall() if cursor.description is not None else []


async def fence(connection: Connection, schema: str, partition: int, epoch: int) -> PartitionState | None:
    """Raises the epoch of a partition unless it has another one."""
    text = statements.FENCE.format(s=schema)
    rows = await _rows(connection, text, {"partition": partition, "epoch": epoch})
    return PartitionState(*rows[0]) if rows else None


async def divide(
    connection: Connection, schema: str, division: Division
) -> tuple[PartitionState, PartitionState] | None:
    """Fences a partition and puts two in its place, in one transaction."""
    async with connection.transaction():
        fenced = await fence(connection, schema, division.partition, division.epoch)
        if fenced is None:
            return None
        halves = []
        for id, low, high in (
            (division.left, division.span.min, division.at),
            (division.right, division.at, division.span.max),
        ):
            counts = await _rows(connection, statements.TOTALS.format(s=schema), (low, high))
            half = PartitionState(id, 1, fenced.lsn, 1, *counts[0])
            await save_partition(connection, schema, half)
            halves.append(half)
    return halves[0], halves[1]


async def reopen(connection: Connection, schema: str, partition: int, epoch: int) -> PartitionState:
    """Raises the epoch of a partition unless it has a later one; what it holds then."""
    rows = await _rows(connection, statements.REOPEN.format(s=schema), (partition, epoch))
    return PartitionState(*rows[0])


async def save_partition(connection: Connection, schema: str, state: PartitionState) -> None:
    """Sets the counters and the epoch of a partition."""
    params = (state.partition, state.epoch, state.lsn, state.next_sequence, state.items, state.size_bytes)
    await _rows(connection, statements.SAVE_PARTITION.format(s=schema), params)


async def track_deletes(connection: Connection, schema: str, on: bool) -> None:
    """Begins or ends to remember deletes, between two writes."""
    async with connection.transaction():
        await _rows(connection, statements.STOP_WRITES.format(s=schema))
        await _rows(connection, statements.TRACK.format(s=schema), (on,))
        await _rows(connection, statements.FORGET_DELETES.format(s=schema))


async def copy_chunk(
    connection: Connection, source: str, target: str, span: EpkRange, after: int, limit: int
) -> int | None:
    """Copies the next rows of a range; the last number, or None at the end."""
    async with connection.transaction():
        await _rows(connection, SNAPSHOT)
        bounds = (after, span.min, span.max, limit)
        ((upto,),) = await _rows(connection, statements.CHUNK_END.format(s=source), bounds)
        # Rows that were deleted have left versions, also with numbers behind the last row.
        chunk = (after, _NUMBER_MAX if upto is None else upto, span.min, span.max)
        await _rows(connection, statements.COPY_VERSIONS.format(s=source, t=target), chunk)
        if upto is None:
            return None
        rows = await _rows(connection, statements.CHUNK.format(s=source), chunk)
        await _put(connection, source, target, [number for (number,) in rows])
    return int(upto)


async def catch_up(
    connection: Connection, source: str, target: str, span: EpkRange, after_lsn: int, after_delete: int
) -> CaughtUp:
    """Repeats deletes and changes of a range.

    All rows concerned go before any comes: an id or a unique value may have passed from one to another.
    """
    async with connection.transaction():
        await _rows(connection, SNAPSHOT)
        bounds = (span.min, span.max)
        deleted = await _rows(connection, statements.DELETED.format(s=source), (after_delete, *bounds))
        gone = await _remove(connection, target, [number for _, number in deleted])
        changed = await _rows(connection, statements.CHANGED.format(s=source), (after_lsn, *bounds))
        gone += await _put(connection, source, target, [number for number, _ in changed])
        text = statements.REPEAT_VERSIONS.format(s=source, t=target)
        await _rows(connection, text, (after_lsn, *bounds))
    return CaughtUp(
        len(changed),
        max((sequence for sequence, _ in deleted), default=after_delete),
        len(changed) - len(gone),
        sum(size_bytes for _, size_bytes in changed) - sum(gone),
    )


async def _put(connection: Connection, source: str, target: str, numbers: list[int]) -> list[int]:
    """Copies rows with what belongs to them in place of those that stand in their way, whose sizes it gives."""
    if not numbers:
        return []
    in_the_way = await _rows(
        connection, statements.IN_THE_WAY.format(s=source, t=target), {"numbers": numbers}
    )
    gone = await _remove(connection, target, [number for (number,) in in_the_way])
    for text in (statements.COPY_ITEMS, statements.COPY_UNIQUE_VALUES, statements.ENTER):
        await _rows(connection, text.format(s=source, t=target), (numbers,))
    return gone


async def _remove(connection: Connection, target: str, numbers: list[int]) -> list[int]:
    """Removes those of the rows that are there; their sizes."""
    if not numbers:
        return []
    rows = await _rows(connection, statements.REMOVE.format(t=target), (numbers,))
    return [row[0] for row in rows]
