"""What must hold of the data of a server at rest, looked at in its store as well as through it."""

from __future__ import annotations

from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.keys.range import WHOLE
from pleiad.partition.partition import Partition
from pleiad.store.moves import Totals
from pleiad.store.rows import PartitionState
from tests.proofs.simulation.ground import Rows
from tests.proofs.simulation.history import demand


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
        state, totals = await _of_one_moment(partition)
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


async def _of_one_moment(partition: Partition) -> tuple[PartitionState, Totals]:
    """What a partition counts and what it holds; the sweeper may come between two looks."""
    while True:
        before = await partition.state()
        totals = await partition.segment.totals(partition.span)
        if before == await partition.state():
            return before, totals


def check_segments(engine: Engine, container: Container, segments: dict[str, Rows]) -> None:
    """I12: nothing is unfinished, and there is no segment, row or unique value that belongs to nobody."""
    demand(not engine.catalog.is_unfinished(container.resource.rid), "I12: a change of the map has not ended")
    spans: dict[str, list[tuple[bytes, bytes]]] = {}
    for partition in container.map.partitions:
        spans.setdefault(partition.segment_name, []).append((partition.span.min, partition.span.max))
    orphans = segments.keys() - spans.keys()
    demand(not orphans, f"I12: the segments {sorted(orphans)} belong to nobody")
    for name, rows in segments.items():
        for _, epk in rows.items:
            is_home = any(low <= epk < high for low, high in spans[name])
            demand(is_home, f"I12: {name} holds a row of another partition")
        numbers = {number for number, _ in rows.items}
        claimed = len(rows.claims)
        demand(
            rows.claims == numbers,
            f"unique values of {name}: {claimed} items claim one, {len(numbers)} do",
        )
