"""Results with their places in an order, and the best of them among all candidates.

Where nothing has to be evaluated to tell the place of an item, many are looked at together, and only those that may be
among the best are looked at closely. Items that are given as they are, are read whole at the end, the best alone. Where
one of them was changed meanwhile, few candidates of one partition are all read again, whole and as of one moment; of
many it is given as it is then, if it still has a place on the page.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pleiad.engine.query.glances import evaluated, row_of, values_at
from pleiad.engine.query.job import SLICE_ROWS, QueryJob
from pleiad.engine.scan import Scan
from pleiad.partition.partition import Partition
from pleiad.query.facts import sort_names
from pleiad.query.measure import text_of
from pleiad.query.pace import STEPS_OF_A_LOOK
from pleiad.query.sorting import Descending, paced_sort
from pleiad.query.values import EXACT_INT, order_key, type_rank
from pleiad.store.glances import Glances
from pleiad.store.rows import Row
from pleiad.values.ranks import BOOLEAN_RANK, NULL_RANK, NUMBER_RANK, STRING_RANK, UNDEFINED_RANK
from pleiad.values.undefined import UNDEFINED

_FOUND_BYTES = 600
"""What a result that waits for its place takes beside its text, roughly."""
_RANK_OF: Final[Mapping[type, int]] = {
    type(UNDEFINED): UNDEFINED_RANK,
    type(None): NULL_RANK,
    bool: BOOLEAN_RANK,
    int: NUMBER_RANK,
    float: NUMBER_RANK,
    str: STRING_RANK,
}
"""The types of values whose place is found without a step."""
_PLACED_AT_ONCE: Final = 64
"""Results that are placed before the last of the best is looked at again, beside as many as are asked for."""
_FIRST_UNSAFE: Final = "\ud800"
"""Strings are ordered by UTF-16 code unit, which agrees with Python wherever one of two has only characters below."""


class Found(NamedTuple):
    """A result with its place in the order."""

    key: tuple[Any, ...]
    tie: tuple[int, int]
    values: tuple[Any, ...]
    text: bytes
    item_bytes: int
    partition: Partition | None = None
    """Where the item is to be read, if that is left to do."""

    @property
    def place(self) -> tuple[Any, ...]:
        return (self.key, self.tie)

    @property
    def size_bytes(self) -> int:
        return _FOUND_BYTES + len(self.text)


def place_of(job: QueryJob, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The place of sort values."""
    return turned_keys(job, tuple(map(order_key, values)))


def turned_keys(job: QueryJob, keys: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    return tuple(
        Descending(key) if sort.descending else key
        for sort, key in zip(job.query.order_by, keys, strict=True)
    )


def results_of(job: QueryJob, row: Row, *, are_texts_left: bool = False) -> Iterator[Found]:
    """The results of one item with their places, one by one: a JOIN may give millions of them."""
    execution, container = job.execution, job.container
    item = job.item_of(row)
    render = execution.renderer(row.size_bytes)
    turned = job.turned
    text = b""
    for index, bound in enumerate(execution.filter_rows(item)):
        if job.query.gives_items:
            if not are_texts_left:
                text = container.render(row)
        else:
            value = execution.project(bound)
            if value is UNDEFINED:
                continue
            text = render(value)
        tie = (turned * row.number, turned * index)
        values = execution.sort_key_values(bound)
        at = job.at if are_texts_left else None
        yield Found(execution.order_key(bound), tie, values, text, row.size_bytes, at)


class BestGathering:
    """The best results behind a place."""

    def __init__(self, job: QueryJob, behind: Found | None, count: int) -> None:
        self.job = job
        self._behind = behind
        self._place = behind.place if behind is not None else None
        self._found: list[Found] = []
        self._worst: Found | None = None
        """The last of the best so far, where there are as many as are asked for."""
        self.count = count
        self.size_bytes = 0
        self.names = job.names
        query = job.query
        self._leaves_texts = query.gives_items and bool(job.names) and job.lookups is None
        self._takes_many = query.plain.sorts and query.plain.projects
        is_all = job.pushdown.is_whole or query.block.where is None
        self._columns = sort_names(query.plan) if is_all else None
        """The properties that are the sort keys, where nothing has to be evaluated to tell the place of an item."""
        self._lsns = {partition: partition.lsn for partition in job.partitions}
        """A row with no later LSN is as it was when it was looked at."""

    def parts(self, row: Row) -> Iterator[Found]:
        return results_of(self.job, row, are_texts_left=self._leaves_texts)

    def take_many(self, looked: Glances) -> int | None:
        job = self.job
        if not self._takes_many or job.execution.renderer(max(looked.sizes)) is not text_of:
            return None
        rows: Iterable[int]
        if self._columns is not None:
            taken = 1 if job.is_out_of_time() else len(looked)
            job.pace.worked(taken)
            ats = map(job.names.index, self._columns)
            columns: Sequence[Sequence[Any]] = [values_at(looked, at, taken) for at in ats]
            rows = range(taken)
        else:
            loop = job.execution.placed
            found = None if loop is None else evaluated(job, loop, looked)
            if found is None:
                return None
            if not found[0]:
                return found[1]
            numbers, *columns = zip(*found[0], strict=True)
            taken = found[1]
            at = {number: row for row, number in enumerate(looked.numbers[:taken])}
            rows = [at[number] for number in numbers]
        if not all(map(_is_placed_without_steps, columns)):
            return None
        self._take_columns(looked, list(rows), columns)
        return taken

    def _take_columns(self, looked: Glances, rows: Sequence[int], columns: Sequence[Sequence[Any]]) -> None:
        """Takes in rows of which the sort keys are known."""
        first, turned = columns[0], self.job.turned
        is_falling = self.job.query.order_by[0].descending
        near: Sequence[int] = range(len(rows))
        if self._worst is not None:
            near = _on_side(first, near, self._worst.values[0], is_below=not is_falling)
        if self._behind is not None and len(self._behind.values) == len(columns):
            near = _on_side(first, near, self._behind.values[0], is_below=is_falling)
        self.job.pace.worked(len(near))
        for start in range(0, len(near), _PLACED_AT_ONCE):
            some = near[start : start + _PLACED_AT_ONCE]
            if start and self._worst is not None:  # nearer now than it was for those before
                some = _on_side(first, some, self._worst.values[0], is_below=not is_falling)
            for index in some:
                values = tuple([column[index] for column in columns])
                place = place_of(self.job, values)
                row = rows[index]
                tie = (turned * looked.numbers[row], 0)
                if self._worst is not None and (place, tie) > self._worst.place:
                    continue
                if self._leaves_texts:
                    self._add(Found(place, tie, values, b"", looked.sizes[row], self.job.at))
                    continue
                for found in self.parts(row_of(looked[row], self.names)):
                    self._add(found)

    def add(self, row: Row, number: int, part: Found) -> None:
        self._add(part)

    def _add(self, part: Found) -> None:
        if self._place is None or part.place > self._place:
            self._found.append(part)
            self.size_bytes += part.size_bytes
            self.job.pace.hold(part.size_bytes)
            if len(self._found) > 2 * self.count + _PLACED_AT_ONCE:
                self._found = self.best()
                self._worst = self._found[-1]
                kept_bytes = sum(each.size_bytes for each in self._found)
                self.job.pace.release(self.size_bytes - kept_bytes)
                self.size_bytes = kept_bytes

    def best(self) -> list[Found]:
        return paced_sort(self._found, lambda each: each.place, self.job.pace)[: self.count]

    async def page(self, known: int, wanted: int, skip: int) -> tuple[list[Found], Found | None]:
        """The results behind those that are known, and the last of them if there are more.

        Those that are skipped have no texts where these were left. Fewer than wanted where they fill an answer.
        """
        job = self.job
        best = await job.pace.run(self.best)
        found = best[known : known + wanted]
        end = found[-1] if len(best) > known + wanted else None
        if not self._leaves_texts:
            return found, end
        skipped, rest = found[:skip], found[skip:]
        given: list[Found] = []
        room_bytes = job.container.limits.response_bytes
        while rest and room_bytes > 0:
            next_ones = _filling(rest, room_bytes)
            rest = rest[len(next_ones) :]
            await job.pace.rest()
            rows = await self._read(next_ones)
            if not given and self._is_changed(next_ones, rows):
                again = await self._read_again()
                if again is not None:
                    found = again[known : known + wanted]
                    return found, found[-1] if len(again) > known + wanted else None
            whole = await job.pace.run(self._with_texts, next_ones, rows)
            room_bytes -= sum(len(each.text) for each in whole)
            given += whole
            if rest and room_bytes <= 0:
                end = next_ones[-1]
        after = skipped[-1].place if skipped else self._place
        placed = [
            each
            for each in paced_sort(given, lambda each: each.place, job.pace)
            if (after is None or each.place > after) and (end is None or each.place <= end.place)
        ]
        return skipped + placed, end

    async def _read(self, found: Sequence[Found]) -> dict[int, Row]:
        """The rows of results by their numbers, as far as they are still there."""
        job = self.job
        numbers_of: dict[Partition, list[int]] = {}
        for each in found:
            partition = each.partition
            is_live = partition is not None and job.container.map.find(partition.span.min) is partition
            # One that is divided or merged meanwhile has its rows in others.
            for at in (partition,) if partition is not None and is_live else job.partitions:
                numbers_of.setdefault(at, []).append(job.turned * each.tie[0])
        rows: dict[int, Row] = {}
        for partition, numbers in numbers_of.items():
            rows |= {row.number: row for row in await partition.find_many(numbers)}
            await job.pace.rest()
        return rows

    def _is_changed(self, found: Sequence[Found], rows: Mapping[int, Row]) -> bool:
        """Whether one of the rows may have been written since it was looked at."""
        turned, lsns = self.job.turned, self._lsns
        for each in found:
            row = rows.get(turned * each.tie[0])
            if row is None or each.partition is None or row.lsn > lsns.get(each.partition, 0):
                return True
        return False

    async def _read_again(self) -> list[Found] | None:
        """The best with their texts, as of one moment; None where that is more than one read."""
        job = self.job
        if len(job.partitions) > 1 or len(job.spans) > 1:
            return None
        scan = Scan(job.container, job.spans, (), job.pushdown.predicates, pace=job.pace)
        rows = await scan.chunk(SLICE_ROWS)
        if not scan.is_done:
            return None

        def best() -> list[Found]:
            found = [each for row in rows for each in results_of(job, row)]
            job.pace.hold(sum(each.size_bytes for each in found))
            behind = [each for each in found if self._place is None or each.place > self._place]
            return paced_sort(behind, lambda each: each.place, job.pace)[: self.count]

        return await job.pace.run(best)

    def _with_texts(self, found: Sequence[Found], rows: Mapping[int, Row]) -> list[Found]:
        """Results with their texts, and in their new places those that were changed since they were looked at."""
        job = self.job
        render, turned, lsns = job.container.render, job.turned, self._lsns
        whole: list[Found] = []
        for each in found:
            row = rows.get(turned * each.tie[0])
            if row is None:
                continue
            if each.partition is not None and row.lsn <= lsns.get(each.partition, 0):
                whole.append(each._replace(text=render(row)))
            elif not job.container.is_expired(row, job.now):
                whole += results_of(job, row)
            job.pace.hold(row.size_bytes)
        return whole


def _filling(found: Sequence[Found], room_bytes: int) -> Sequence[Found]:
    """As many results as may have room, and no more at once than others can wait for."""
    size_bytes = count = 0
    while count < min(len(found), SLICE_ROWS) and size_bytes < room_bytes:
        size_bytes += found[count].item_bytes
        count += 1
    return found[:count]


def _is_placed_without_steps(column: Sequence[Any]) -> bool:
    """Whether it takes no steps to find the places of values."""
    types = set(map(type, column))
    if not types <= _RANK_OF.keys():
        return False
    return str not in types or all(len(value) < STEPS_OF_A_LOOK for value in column if value.__class__ is str)


def _on_side(values: Sequence[Any], rows: Sequence[int], bound: Any, is_below: bool) -> Sequence[int]:
    """The rows whose values do not lie beyond a bound, and perhaps others."""
    rank = type_rank(bound)
    kinds: tuple[type, ...] = ()
    if rank == NUMBER_RANK and -EXACT_INT < bound < EXACT_INT:
        kinds = (int, float)
    elif rank == STRING_RANK and max(bound, default="") < _FIRST_UNSAFE:
        kinds = (str,)
    is_beyond = operator.gt if is_below else operator.lt
    passing = {kind for kind, of in _RANK_OF.items() if not is_beyond(of, rank)}.difference(kinds)
    if not kinds:
        return [row for row in rows if values[row].__class__ in passing]
    pairs = zip(rows, map(values.__getitem__, rows), strict=True)
    if is_below:
        return [row for row, v in pairs if (v <= bound if v.__class__ in kinds else v.__class__ in passing)]
    return [row for row, v in pairs if (v >= bound if v.__class__ in kinds else v.__class__ in passing)]
