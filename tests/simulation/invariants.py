"""What must hold of the data of a server at rest, looked at in its files as well as through it."""

from __future__ import annotations

from pathlib import Path

import apsw

from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.keys.range import WHOLE
from tests.simulation.history import demand


async def check_partitions(engine: Engine, container: Container) -> None:
    """I3, I4 and I6: the ranges tile, and each partition counts what it holds and knows its LSN."""
    placements = sorted(engine.catalog.placements(container.resource.rid), key=lambda each: each.span.min)
    edges = [WHOLE.min, *(placement.span.max for placement in placements)]
    demand([each.span.min for each in placements] == edges[:-1], f"I3: the ranges are {placements}")
    demand(edges[-1] == WHOLE.max, f"I3: the ranges end at {edges[-1]!r}")
    known = {(placement.id, placement.epoch, placement.segment) for placement in placements}
    live = {(each.id, each.epoch, each.segment_name) for each in container.map.partitions}
    demand(known == live, f"I3: the catalog has {known}, at work are {live}")
    for partition in container.map.partitions:
        state = await partition.state()
        totals = await partition.segment.totals(partition.span)
        name = f"partition {partition.id}"
        demand(
            (state.items, state.size_bytes) == (totals.items, totals.size_bytes),
            f"I6: {name} counts {state.items} items of {state.size_bytes} bytes, it holds {totals}",
        )
        demand(
            state.epoch in (0, partition.epoch), f"I3: {name} is closed at rest: {state}, {partition.epoch}"
        )
        demand(partition.lsn <= state.lsn, f"I4: {name} knows LSN {partition.lsn} and has {state.lsn}")
        rows = await partition.segment.changes(partition.span, 0, 1_000_000)
        demand(not rows or rows[-1].lsn <= state.lsn, f"I4: {name} has a row above its LSN {state.lsn}")


def check_files(engine: Engine, container: Container, directory: Path) -> None:
    """I12: nothing is unfinished, and there is no file, row or unique value that belongs to nobody."""
    demand(not engine.catalog.is_unfinished(container.resource.rid), "I12: a change of the map has not ended")
    spans: dict[str, list[tuple[bytes, bytes]]] = {}
    for partition in container.map.partitions:
        spans.setdefault(partition.segment_name, []).append((partition.span.min, partition.span.max))
    files = {path.stem: path for path in (directory / "segments").glob("*.sqlite")}
    orphans = files.keys() - spans.keys()
    demand(not orphans, f"I12: the segments {sorted(orphans)} belong to nobody")
    for name, path in files.items():
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            _check_rows(connection, spans[name], name)
        finally:
            connection.close()


def _check_rows(connection: apsw.Connection, spans: list[tuple[bytes, bytes]], name: str) -> None:
    numbers = set()
    for number, epk in connection.execute("SELECT number, epk FROM item"):
        demand(any(low <= epk < high for low, high in spans), f"I12: {name} holds a row of another partition")
        numbers.add(number)
    claimed = {number for (number,) in connection.execute("SELECT number FROM unique_value")}
    demand(claimed == numbers, f"unique values of {name}: {len(claimed)} items claim one, {len(numbers)} do")
