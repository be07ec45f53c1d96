"""Reading a container's items in pages."""

from __future__ import annotations

from dataclasses import dataclass

from pleiad import charge
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.feed.backward import BackwardScan
from pleiad.engine.pages.feed import ListingPageState, opened
from pleiad.engine.scan import Scan
from pleiad.engine.seal import fingerprint
from pleiad.engine.steady import over_moves
from pleiad.keys.range import EpkRange
from pleiad.partition.governor import NORMAL, Lane, spend_all
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.rows import Row

_CHUNK_ROWS = 100


@dataclass(frozen=True, slots=True)
class FeedPage:
    """One page of rows, the partition it ended in, its charge, and the token of the next page."""

    rows: list[Row]
    partition: Partition
    charge: Charge
    token: str | None


@over_moves
async def page(
    container: Container,
    span: EpkRange,
    token: str,
    items_max: int,
    multiplier: int = 1,
    lane: Lane = NORMAL,
    is_backward: bool = False,
) -> FeedPage:
    """The next page of the items in a range of hashes; it ends before a partition that admits nobody now."""
    mark = fingerprint(container.resource.rid, "feed back" if is_backward else "feed", span.to_hex())
    state = opened(container.seal, token, mark, ListingPageState) if token else ListingPageState((), False)
    scan: Scan | BackwardScan
    if is_backward:
        scan = BackwardScan(container, span, state.begun, state.is_visited, lane)
    else:
        scan = Scan(container, [span], state.begun, is_visited=state.is_visited, lane=lane)
    rows: list[Row] = []
    room_bytes = container.limits.response_bytes
    with Pace.of_request(container.limits) as pace:
        await pace.seat(container.row_bytes_seen * items_max)
        while len(rows) < items_max and room_bytes > 0:
            chunk = await scan.chunk(min(items_max - len(rows), _CHUNK_ROWS))
            if not chunk:
                break
            last = None
            for row in chunk:
                if rows and row.size_bytes > room_bytes:
                    scan.stop_after(last, chunk)
                    room_bytes = 0
                    break
                rows.append(row)
                last = row
                room_bytes -= row.size_bytes
            await pace.seat(container.row_bytes_seen * items_max)
            await pace.rest()
    cost = charge.feed_page([row.size_bytes for row in rows], max(scan.partitions_visited, 1), multiplier)
    visits = scan.rows or {scan.partition: 0}
    spend_all([(each.governor, count) for each, count in visits.items()], cost.ru, 0.0, lane)
    next_token = None
    if not scan.is_done:
        next_state = ListingPageState(tuple(scan.position()), scan.is_next_visited)
        next_token = container.seal.encode(mark, next_state.to_state())
    return FeedPage(rows, scan.partition, cost, next_token)
