"""Pages of a query whose results come item by item: no order, no groups.

The next page goes on where this one stopped in the walk over the container. An item that gives several rows (JOIN)
may be cut between them; the token then says of which item how many rows were given. What DISTINCT has seen is kept
for the next page, and gathered again where it is gone.

A page ends where its physical partition does, as the service's do: its gateway asks one partition after the other. Only
one whose size nobody has asked for may be empty there. A client that knows no query plans and asks for a size gets
its pages filled, which spares requests.

Items that are given as they are, are sifted by the few properties that their filter looks at: only those that pass are
read whole, and one that was changed meanwhile passes or not as it is then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pleiad import charge
from pleiad.engine.pages.query import LookupPageState, QueryPageState, Remainder, StreamPageState
from pleiad.engine.query.gather import rows_read
from pleiad.engine.query.glances import places_found, row_of
from pleiad.engine.query.job import SLICE_ROWS, QueryJob, looked_up
from pleiad.engine.scan import GLANCES_MOST, Scan
from pleiad.partition.partition import Partition
from pleiad.query.measure import size_of
from pleiad.query.pace import Pace
from pleiad.query.route.keys import key_values
from pleiad.query.values import hash_key
from pleiad.store.glances import Glance, Glances
from pleiad.store.rows import Row

_KEYS_MET_MAX = 4_096
_KEY_MET_CHARS_MAX = 256
"""How many kinds of glances DISTINCT remembers to have met, and up to which length."""
_NO_KEY = object()
_SEEN_BYTES = 200
"""What one result that was met takes in memory, roughly."""


class Seen:
    """The results that DISTINCT has met."""

    __slots__ = ("_keys", "pace", "size_bytes")

    def __init__(self, pace: Pace) -> None:
        self._keys: set[Any] = set()
        self.pace = pace
        self.size_bytes = 0

    def is_new(self, value: Any) -> bool:
        """Whether a result was not met before; from now on it was."""
        key = hash_key(value)
        if key in self._keys:
            return False
        size_bytes = _SEEN_BYTES + size_of(value)
        self.size_bytes += size_bytes
        self.pace.hold(size_bytes)
        self._keys.add(key)
        return True

    def add_results(self, job: QueryJob, row: Row, count: int | None = None) -> None:
        """Meets the results of an item, or the first of them."""
        for value in islice(job.execution.values((job.item_of(row),)), count):
            self.is_new(value)


def is_distinct(job: QueryJob) -> bool:
    """Whether results may be equal and must not be; items as they are never are."""
    return job.query.distinct and not job.query.gives_items


class StreamPage:
    """The results of one page as they are found, and what OFFSET, LIMIT and TOP still allow."""

    def __init__(self, job: QueryJob, begun_with: Remainder | None) -> None:
        execution = job.execution
        most = execution.limit if execution.limit is not None else execution.top
        self._job = job
        self.results: list[bytes] = []
        rest = begun_with or Remainder(execution.offset or 0, most)
        self.skip = rest.skip
        self.left = most if rest.left is None else rest.left
        self.cuts = dict(rest.cuts)
        self.paid = dict(rest.paid_steps)
        self.seen = Seen(job.pace) if is_distinct(job) else None
        self.keys_met: set[Any] = set()
        """Keys of glances that come to nothing new for DISTINCT, and to no steps beyond those of loading them."""
        self._room_bytes = job.container.limits.response_bytes
        self.is_skimmed = job.pushdown.is_whole and job.query.plain.gives_each
        """Whether results that are skipped need not be looked at."""
        self._lsns = (
            {each: each.lsn for each in job.partitions} if job.names and job.query.gives_items else {}
        )

    @property
    def is_full(self) -> bool:
        return self.has_all or self._room_bytes <= 0 or self.left == 0

    @property
    def has_all(self) -> bool:
        """Whether the page has as many results as were asked for; then there is a next one, be it empty."""
        return len(self.results) >= self._job.request.items_max

    @property
    def results_most(self) -> int:
        """How many results have room at most."""
        most = self._job.request.items_max - len(self.results)
        return most if self.left is None else min(most, self.left)

    def count_with_room(self, sizes: Sequence[int]) -> int:
        """How many of the next results to read: what the page has no room for is not read for it."""
        most, room_bytes = self.results_most, self._room_bytes
        count = 0
        for size_bytes in sizes[:most]:
            if room_bytes <= 0:
                break
            room_bytes -= size_bytes
            count += 1
        return count

    def give(self, text: bytes) -> None:
        """Adds a result."""
        self.results.append(text)
        self._room_bytes -= len(text)
        if self.left is not None:
            self.left -= 1

    def skip_all(self, glances: Glances) -> int:
        """Skips rows that are results each; how many."""
        self.skip -= len(glances)
        self._job.tally.items_loaded += len(glances)
        self._job.tally.bytes_loaded += glances.size_bytes()
        return len(glances)

    def is_unchanged(self, row: Row) -> bool:
        """Whether a row is as it was when the page began."""
        return row.lsn <= self._lsns.get(self._job.container.map.find(row.epk), 0)

    def passes(self, row: Row) -> bool:
        """Whether a row passes the filter as it is now."""
        job = self._job
        return not job.container.is_expired(row, job.now) and job.execution.matches(job.filtered_item_of(row))

    def take_found(self, rows: Sequence[Row]) -> int:
        """Adds rows that are results as they are; how many of them are used up."""
        most = self.results_most
        skipped = min(self.skip, len(rows))
        self.skip -= skipped
        for number, text in enumerate(self._job.container.render_all(rows[skipped : skipped + most])):
            if self._room_bytes <= 0:
                return skipped + number
            self.give(text)
        return min(skipped + most, len(rows))

    def take(self, row: Row, key: Any = _NO_KEY) -> bool:
        """Adds the rows of an item; False when the page is full before all of them are in.

        `key` is that of a glance, if it is one. An item that is cut is evaluated from its beginning by the next page,
        and pays there for what is new.
        """
        tally, pace = self._job.tally, self._job.pace
        before = pace.steps
        is_whole = self._take(row)
        steps = charge.steps_beyond(pace.steps - before, 1, row.size_bytes)
        tally.steps_beyond += max(0, steps - self.paid.pop(row.number, 0))
        if steps and not is_whole:
            self.paid[row.number] = steps
        if key is not _NO_KEY and is_whole and pace.steps - before <= charge.STEPS_FREE:
            is_short = len(row.body) <= _KEY_MET_CHARS_MAX
            if is_short and len(self.keys_met) < _KEYS_MET_MAX:
                self.keys_met.add(key)
        return is_whole

    def _take(self, row: Row) -> bool:
        start = self.cuts.pop(row.number, 0)
        render = self._job.execution.renderer(row.size_bytes)
        for number, value in enumerate(self._values(row)):
            if number < start:
                if self.seen is not None:
                    self.seen.is_new(value)
                continue
            if self.is_full:
                self.cuts[row.number] = number
                return False
            if self.seen is not None and not self.seen.is_new(value):
                continue
            if self.skip:
                self.skip -= 1
                continue
            self.give(value if isinstance(value, bytes) else render(value))
        return True

    def _values(self, row: Row) -> Iterator[Any]:
        """The results of an item one by one: a JOIN may give more of them than a page, or a memory, can hold.

        An item as it is comes as its text.
        """
        job = self._job
        if not job.query.gives_items:
            yield from job.execution.values((job.item_of(row),))
        elif job.execution.matches(job.filtered_item_of(row)):
            yield from job.container.render_all((row,))

    def remainder(self) -> Remainder:
        """What the page leaves to the next one."""
        return Remainder(self.skip, self.left, tuple(self.cuts.items()), tuple(self.paid.items()))


async def page(job: QueryJob, state: QueryPageState | None) -> tuple[list[bytes], QueryPageState | None]:
    """The next results, and the state of the page after them."""
    if job.lookups is not None:
        if state is not None and not isinstance(state, LookupPageState):
            raise job.bad_token()
        return await _page_of_lookups(job, state)
    if state is not None and not isinstance(state, StreamPageState):
        raise job.bad_token()
    return await _page_of_walk(job, state)


async def _page_of_walk(
    job: QueryJob, state: StreamPageState | None
) -> tuple[list[bytes], StreamPageState | None]:
    stream = StreamPage(job, state.remainder if state is not None else None)
    if stream.left == 0:
        return [], None
    if stream.seen is not None and state is not None:
        stream.seen = await _seen_before(job, state)
    lane = job.request.lane if job.first_rows is None else None
    begun, is_visited = (state.begun, state.is_visited) if state is not None else ((), False)
    predicates = job.pushdown.predicates
    scan = Scan(job.container, job.spans, begun, predicates, is_visited, lane, job.keys, job.pace, job.names)
    job.visits = scan.rows
    last: Row | Glance | None = None
    # Of what the service's gateway does not answer over partitions at all, no more pages are made than need be.
    is_plain = stream.left is None and not stream.skip and stream.seen is None
    ends_with_partition = job.request.ends_with_partition and is_plain
    tells_end = _tells_end(job)
    while not stream.is_full and not scan.is_done:
        rows, taken = await _taken_next(job, stream, scan, tells_end, ends_with_partition)
        last = rows[-1] if rows else None
        job.first_rows = None
        if taken < len(rows):
            scan.stop_after(rows[taken - 1] if taken else None, rows)
        if scan.is_done or stream.is_full or job.is_out_of_time() or scan.is_held:
            break
        if ends_with_partition and not scan.is_next_visited and (stream.results or not job.request.is_sized):
            break
        await job.pace.rest()
    if stream.has_all and last is not None and not tells_end:
        scan.stay_behind(last)
    job.tally.partitions = scan.partitions_visited
    if scan.is_done or stream.left == 0:
        return stream.results, None
    name: str | None = None
    if stream.seen is not None:
        name = job.container.kept.keep(job.kept_mark, stream.seen, stream.seen.size_bytes)
    position = tuple(scan.position())
    return stream.results, StreamPageState(position, scan.is_next_visited, stream.remainder(), name)


async def _taken_next(
    job: QueryJob, stream: StreamPage, scan: Scan, tells_end: bool, is_by_partition: bool
) -> tuple[Sequence[Row] | Glances, int]:
    """The next rows of the walk, or glances at them, and how many of them the page has used up."""
    rows: Sequence[Row]
    glances: Glances
    if stream.skip and stream.is_skimmed and job.first_rows is None:
        scan.look_at(())
        glances = await scan.glances(min(GLANCES_MOST, stream.skip), is_by_partition)
        return glances, stream.skip_all(glances)
    if job.names:
        scan.look_at(job.names)
        glances = await scan.glances(_chunk_rows(job, tells_end, GLANCES_MOST), is_by_partition)
        if not glances:
            return glances, 0
        if not job.query.gives_items:
            return glances, await job.pace.run(_take_glances, job, stream, glances)
        if (taken := await _take_sifted(job, stream, scan.partition, glances)) is not None:
            return glances, taken
        job.names = ()
        scan.stop_after(None, glances)
    scan.look_at(None)
    rows = await scan.chunk(_chunk_rows(job, tells_end), job.first_rows, is_by_partition)
    return rows, await job.pace.run(_take_all, job, stream, rows)


async def _seen_before(job: QueryJob, state: StreamPageState) -> Seen:
    """What DISTINCT met on the pages before this one."""
    seen: Seen | None = job.container.kept.take(state.kept, job.kept_mark)
    if seen is not None:
        seen.pace = job.pace
        job.pace.hold(seen.size_bytes)
        return seen
    seen = Seen(job.pace)
    async for row in rows_read(job, state.begun, job.pushdown.predicates):
        await job.pace.run(seen.add_results, job, row)
    for number, count in state.remainder.cuts:
        for partition in job.partitions:
            found = await partition.find(number)
            # A token of a wider range may name an item that this request has no part in.
            if found is not None and any(span.contains(found.epk) for span in job.spans):
                await job.pace.run(seen.add_results, job, found, count)
    return seen


async def _page_of_lookups(
    job: QueryJob, state: LookupPageState | None
) -> tuple[list[bytes], LookupPageState | None]:
    stream = StreamPage(job, state.remainder if state is not None else None)
    if stream.left == 0:
        return [], None
    after = state.after if state is not None else 0
    found = await looked_up(job, first=state is None)
    rows = [row for row in found if row.number > after]
    if stream.seen is not None:
        for row in found[: len(found) - len(rows)]:
            await job.pace.run(stream.seen.add_results, job, row)
    taken = await job.pace.run(_take_all, job, stream, rows)
    if taken == len(rows) or stream.left == 0:
        return stream.results, None
    last = rows[taken - 1].number if taken else after
    return stream.results, LookupPageState(last, stream.remainder())


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
        if not stream.take(row):
            return number
        job.loaded(row.size_bytes)
        if job.pace.pauses and job.is_out_of_time():
            return number + 1
    return len(rows)


def _take_glances(job: QueryJob, stream: StreamPage, looked: Glances) -> int:
    """The same for glances, of which those are left out that come to nothing."""
    taken = len(looked)
    wanted: Iterable[int] = range(taken)
    keys = looked.keys if stream.seen is not None else None
    if stream.cuts:
        keys = None
    elif keys is not None:
        new = set(keys) - stream.keys_met
        wanted = [number for number, key in enumerate(keys) if key in new] if new else ()
    elif (found := places_found(job, looked)) is not None:
        wanted = [number for number, place in enumerate(looked.numbers) if place in found]
    for number in wanted:
        key = _NO_KEY if keys is None else keys[number]
        if key in stream.keys_met:
            continue
        if not stream.take(row_of(looked[number], job.names), key):
            taken = number
            break
        if stream.is_full or (job.pace.pauses and job.is_out_of_time()):
            taken = number + 1
            break
    job.tally.items_loaded += taken
    job.tally.bytes_loaded += looked.size_bytes(count=taken)
    return taken


async def _take_sifted(
    job: QueryJob, stream: StreamPage, partition: Partition, looked: Glances
) -> int | None:
    """Adds the items that pass the filter, which alone are read whole, until the page is full.

    How many glances are used up; None, and nothing is added, where items are to be looked at one by one.
    """
    found = await job.pace.run(places_found, job, looked)
    if found is None:
        return None
    passing = [place for place, number in enumerate(looked.numbers) if number in found]
    skipped = min(stream.skip, len(passing))
    stream.skip -= skipped
    passing = passing[skipped:]
    wanted = passing[: stream.count_with_room([looked.sizes[place] for place in passing])]
    rows = {row.number: row for row in await partition.find_many([looked.numbers[place] for place in wanted])}
    taken = await job.pace.run(
        _take_read, job, stream, [(place, looked.numbers[place]) for place in wanted], rows
    )
    if taken is None:
        # What is beyond was not read; it may be wanted where some of it is gone.
        taken = passing[len(wanted)] if len(wanted) < len(passing) else len(looked)
    job.tally.items_loaded += taken
    job.tally.bytes_loaded += looked.size_bytes(count=taken)
    return taken


def _take_read(
    job: QueryJob, stream: StreamPage, wanted: Sequence[tuple[int, int]], rows: Mapping[int, Row]
) -> int | None:
    """Adds items; how many glances are used up where the page ends before them all."""
    before = job.pace.steps
    try:
        for place, number in wanted:
            row = rows.get(number)
            if row is None:
                continue
            if stream.is_unchanged(row) or stream.passes(row):
                stream.give(job.container.render(row))
            if stream.is_full or (job.pace.pauses and job.is_out_of_time()):
                return place + 1
        return None
    finally:
        job.pace.steps = before  # they were evaluated before


def _tells_end(job: QueryJob) -> bool:
    """Whether a full page says that it is the last one: what a filter names, a key or ids, is known to be all there."""
    if job.query.block.where is None:
        return False
    names = job.query.filter_names
    is_one_key = len(job.spans) == 1 and job.spans[0].is_one_hash
    if job.keys.named or (is_one_key and names and not job.container.key_names.isdisjoint(names)):
        return True
    # What a filter reads of items tells quickly of most that they name no ids.
    if names is not None and "id" not in names:
        return False
    return key_values(job.query.plan, job.request.parameters, (("id",),)) is not None


def _chunk_rows(job: QueryJob, tells_end: bool, rows_most: int = SLICE_ROWS) -> int:
    """Rows to ask for at once: no more than the page can use when every row is a result, and one to see the end by."""
    if (job.pushdown.is_whole or job.query.block.where is None) and not is_distinct(job):
        return min(rows_most, job.request.items_max + tells_end)
    return rows_most
