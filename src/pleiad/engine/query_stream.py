"""Pages of a query whose results come item by item: no order, no groups, no DISTINCT.

The next page goes on where this one stopped in the walk over the container. An item that gives several rows (JOIN)
may be cut between them; the token then says how many of its rows were given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

from pleiad.engine import token as tokens
from pleiad.engine.functions import beside_the_loop
from pleiad.engine.query_job import SLICE_ROWS, QueryJob, looked_up
from pleiad.engine.scan import Scan
from pleiad.store.contract import Row

_State = dict[str, Any]


class StreamPage:
    """The results of one page as they are found, and what OFFSET, LIMIT and TOP still allow."""

    def __init__(self, job: QueryJob, state: _State) -> None:
        token = job.request.token
        execution = job.execution
        most = execution.limit if execution.limit is not None else execution.top
        self._job = job
        self.results: list[bytes] = []
        self.skip = tokens.whole_number(state, "o", token) if "o" in state else execution.offset or 0
        self.left = tokens.whole_number(state, "l", token) if "l" in state else most
        self.given = tokens.whole_number(state, "s", token)
        """Rows of the item at the start that an earlier page gave already."""
        self._room_bytes = job.container.limits.response_bytes

    @property
    def is_full(self) -> bool:
        return len(self.results) >= self._job.request.items_max or self._room_bytes <= 0 or self.left == 0

    def take_found(self, rows: Sequence[Row]) -> int:
        """Adds rows that are results as they are; how many of them are used up."""
        most = self._job.request.items_max - len(self.results)
        if self.left is not None:
            most = min(most, self.left)
        skipped = min(self.skip, len(rows))
        self.skip -= skipped
        for number, text in enumerate(self._job.container.render_all(rows[skipped : skipped + most])):
            if self._room_bytes <= 0:
                return skipped + number
            self.results.append(text)
            self._room_bytes -= len(text)
            if self.left is not None:
                self.left -= 1
        return min(skipped + most, len(rows))

    def take(self, row: Row) -> bool:
        """Adds the rows of an item; False when the page is full before all of them are in."""
        start, self.given = self.given, 0
        for number, value in enumerate(islice(self._values(row), start, None), start):
            if self.is_full:
                self.given = number
                return False
            if self.skip:
                self.skip -= 1
                continue
            self.results.append(value)
            self._room_bytes -= len(value)
            if self.left is not None:
                self.left -= 1
        return True

    def _values(self, row: Row) -> Iterator[bytes]:
        """The results of an item one by one: a JOIN may give more of them than a page, or a memory, can hold."""
        job = self._job
        if not job.query.gives_items:
            yield from map(orjson.dumps, job.execution.values((job.item_of(row),)))
        elif job.execution.matches(job.filtered_item_of(row)):
            yield from job.container.render_all((row,))

    def state(self, place: _State) -> _State:
        """What the next page needs to know."""
        state = {**place, "o": self.skip, "s": self.given}
        if self.left is not None:
            state["l"] = self.left
        return {name: value for name, value in state.items() if value or name in ("o", "l")}


async def page(job: QueryJob, state: _State) -> tuple[list[bytes], _State | None]:
    """The next results, and the state of the page after them."""
    stream = StreamPage(job, state)
    if stream.left == 0:
        return [], None
    if job.lookups is not None:
        return await _page_of_lookups(job, stream, state)
    begun = tokens.pieces_from_json(state["p"], job.request.token) if "p" in state else []
    lane = job.request.lane if job.first_rows is None else None
    scan = Scan(job.container, job.spans, begun, job.pushdown.predicates, "d" in state, lane)
    job.visits = scan.rows
    while not stream.is_full and not scan.is_done:
        rows = await scan.chunk(_chunk_rows(job), job.first_rows)
        job.first_rows = None
        taken = await beside_the_loop(job.functions, _take_all, job, stream, rows)
        if taken < len(rows):
            scan.stop_after(rows[taken - 1] if taken else None, rows)
        if scan.is_done or stream.is_full or job.is_out_of_time() or scan.is_held:
            break
        await asyncio.sleep(0)
    if job.pushdown.is_whole and stream.left != 0 and not stream.given:
        # Every row is a result here, so a look at the next one spares the client an empty last page.
        await scan.skip_to_next_row()
    job.tally.partitions = scan.partitions_visited
    if scan.is_done or stream.left == 0:
        return stream.results, None
    place = {"p": tokens.pieces_to_json(scan.position()), "d": scan.is_next_visited}
    return stream.results, stream.state(place)


async def _page_of_lookups(
    job: QueryJob, stream: StreamPage, state: _State
) -> tuple[list[bytes], _State | None]:
    after = tokens.whole_number(state, "n", job.request.token)
    rows = [row for row in await looked_up(job, first=not state) if row.number > after]
    taken = await beside_the_loop(job.functions, _take_all, job, stream, rows)
    if taken == len(rows) or stream.left == 0:
        return stream.results, None
    last = rows[taken - 1].number if taken else after
    return stream.results, stream.state({"n": last})


def _take_all(job: QueryJob, stream: StreamPage, rows: Sequence[Row]) -> int:
    """Adds rows until the page is full; how many of them are used up."""
    if job.gives_found_rows:
        taken = stream.take_found(rows)
        job.tally.items_loaded += taken
        job.tally.bytes_loaded += sum([row.size_bytes for row in rows[:taken]])
        return taken
    for number, row in enumerate(rows):
        if stream.is_full:
            return number
        whole = stream.take(row)
        if not whole:
            return number
        job.loaded(row)
    return len(rows)


def _chunk_rows(job: QueryJob) -> int:
    """Rows to ask for at once: no more than the page can use when every row is a result."""
    if job.pushdown.is_whole or job.query.block.where is None:
        return min(SLICE_ROWS, job.request.items_max)
    return SLICE_ROWS
