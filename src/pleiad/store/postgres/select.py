"""Selecting, ordering and counting the rows of a segment by predicates, each in one statement.

Where the rows come from, the cheapest first:
- few rows: an index, or the key index for the range of one key, leads to at most FEW_MATCHES of them;
- several ranges: the key index leads to their rows, however many they are;
- one value: the index holds the numbers of one value in order, so they are read on from the last one;
- a scan of the table by number.

A statement that searches in an index names it through `ready_1`, which fails when the index is not ready in the
snapshot of the statement: another server may have dropped it. The caller then looks at the indexes anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pleiad.keys.range import WHOLE
from pleiad.store.checksum import DamagedRowError, content_checksum, row_checksum
from pleiad.store.glances import Glances
from pleiad.store.path_index import PathIndex
from pleiad.store.postgres.arrays import ByteaArray, byteas
from pleiad.store.postgres.json_sql import DOCUMENT, Sql, from_text, member, texts_of, to_text
from pleiad.store.postgres.predicate_sql import (
    Entries,
    all_of,
    any_of,
    condition,
    entries,
    is_long,
    needs_document,
    tag_of,
)
from pleiad.store.predicate import RANK_BOOLEAN, RANK_NUMBER, RANK_STRING, ROW_COLUMNS, is_addressable
from pleiad.store.rows import Row, Verb, Version
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Predicate, Selection

FEW_MATCHES = 2_000
NAMES_READ_MAX = 4
"""PostgreSQL searches a body anew for each property: for more of them, to send the body takes less."""
_TEXT = "CASE WHEN item.doc IS NULL THEN convert_from(item.body, 'UTF8')::json END"
"""The body as JSON; not where PostgreSQL cannot read it."""
ROW_COLUMNS_COUNT = 10
ROW = (
    "item.number, item.epk, item.id, item.lsn, item.ts, item.ttl, item.size_bytes, item.terms, item.body, "
    "item.checksum"
)

Fetch = Callable[[Sql], Awaitable[Sequence[tuple[Any, ...]]]]
"""Runs a statement and gives its rows."""


class Indexes(Protocol):
    """The indexes of a segment as this server knows them."""

    def ready(self, path: IndexedPath) -> PathIndex | None:
        """The index of a path if it may be used."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An index that serves a predicate, and the predicates to test on its rows."""

    index: int
    terms: tuple[Entries, ...]
    rest: tuple[Predicate, ...]

    @property
    def one_value(self) -> bool:
        return len(self.terms) == 1 and self.terms[0].one_value

    @property
    def where(self) -> Sql:
        return any_of([term.where for term in self.terms])


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where rows come from: an index read in order, few numbers to look up, or else the table."""

    rest: tuple[Predicate, ...]
    walk: _Candidate | None = None
    few: Sql | None = None
    is_by_key: bool = False
    """Whether the numbers are those of the selection's ranges."""


def row_of(found: Sequence[Any]) -> Row:
    """The row of a result that begins with the columns of ROW; DamagedRowError when it is not what was written."""
    number, epk, id, lsn, ts, ttl, size_bytes, terms, body, checksum = found[:ROW_COLUMNS_COUNT]
    name = from_text(id)
    if checksum is not None:
        content = content_checksum(epk, name.encode(), ts, ttl, size_bytes, terms, body)
        if row_checksum(content, number, lsn) != checksum:
            raise DamagedRowError(f"the row with number {number} is not what was written")
    return Row(number, epk, name, lsn, ts, ttl, size_bytes, terms, body)


def version_of(columns: Sequence[Any]) -> Version:
    """The version of a whole row of its table."""
    version = Version._make(columns)
    return version._replace(verb=Verb(version.verb), id=from_text(version.id))


class Selecting:
    """The searches of one segment; `schema` is its name as SQL."""

    def __init__(self, schema: str, indexes: Indexes, fetch: Fetch) -> None:
        self._schema = schema
        self._indexes = indexes
        self._fetch = fetch

    async def select(self, selection: Selection, after: int, limit: int) -> list[Row]:
        """Rows of a selection above a document number, in the order of their numbers."""
        return [
            row_of(row) for row in await self._fetch(await self._found(selection, Sql(ROW), after, limit))
        ]

    async def glance(self, selection: Selection, names: Sequence[str], after: int, limit: int) -> Glances:
        """Numbers, sizes and some properties of the rows of a selection."""
        asked = [to_text(name) for name in names] if len(names) <= NAMES_READ_MAX else []
        body = "CASE WHEN item.doc IS NOT NULL THEN item.body END" if asked else "item.body"
        if not names:
            body = "NULL::bytea"
        statement = await self._found(
            selection, Sql("item.number, item.size_bytes, item.body, item.doc"), after, limit
        )
        # Around the search, so that what is not found is not read, and each body is read once for all properties.
        read = f" CROSS JOIN LATERAL (SELECT {_TEXT} AS value OFFSET 0) AS text" if asked else ""
        found = await self._fetch(
            Sql(
                f"SELECT item.number, item.size_bytes, {body}"
                + ", (text.value -> %s::text)::text" * len(asked)
                + f" FROM ({statement.text}) AS item{read} ORDER BY item.number",
                (*asked, *statement.params),
            )
        )
        return Glances.of(
            [
                (number, size_bytes, *(texts if body is None else texts_of(body, names)))
                for number, size_bytes, body, *texts in found
            ],
            len(names),
        )

    async def _found(self, selection: Selection, columns: Sql, after: int, limit: int) -> Sql:
        """What finds columns of the rows of a selection above a document number, in the order of their numbers."""
        plan = await self._plan(selection)
        source, where = self._source(plan, selection)
        number = "entry.number" if plan.walk is not None else "item.number"
        return Sql(
            f"SELECT {columns.text} FROM {source} WHERE {where.text} AND {number} > %s "
            f"ORDER BY {number} LIMIT %s",
            (*columns.params, *where.params, after, limit),
        )

    async def count(self, selection: Selection, count_only: bool) -> tuple[int, int]:
        """How many rows a selection has and the sum of their sizes, which is 0 with `count_only`."""
        plan = await self._plan(selection)
        size = "0" if count_only else "coalesce(sum(item.size_bytes), 0)::bigint"
        if count_only and plan.walk is not None and not self._tests(selection, plan.rest):
            where = self._entries(plan.walk)
            text = f"SELECT count(*), 0 FROM {self._schema}.entry AS entry WHERE {where.text}"
            found = await self._fetch(Sql(text, where.params))
        else:
            source, where = self._source(plan, selection)
            found = await self._fetch(
                Sql(f"SELECT count(*), {size} FROM {source} WHERE {where.text}", where.params)
            )
        rows, size_bytes = found[0]
        return rows, size_bytes

    async def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> list[tuple[Row, OrderPosition]] | None:
        """Rows of a selection in the order of a path; None when no index has that order or can tell it."""
        index = self._indexes.ready(IndexedPath(order.path))
        if index is None or (after is not None and not _is_place(after)):
            return None
        place = None if after is None else _place(after)
        plan = await self._plan(selection, except_path=order.path)
        if plan.few is not None:
            statement = self._sorted_few(plan, selection, order, place, limit)
        else:
            statement = self._in_order(index.id, selection, order, place, limit)
        found = await self._fetch(statement)
        if any(is_long(row[ROW_COLUMNS_COUNT]) for row in found):
            return None
        return [
            (row_of(row), _position(row[ROW_COLUMNS_COUNT], row[ROW_COLUMNS_COUNT + 1], row[0]))
            for row in found
        ]

    # -- planning ------------------------------------------------------------------------------

    async def _plan(self, selection: Selection, except_path: tuple[str, ...] | None = None) -> _Plan:
        """Chooses where rows come from; looks how many each index would give where there is a choice."""
        candidates = self._candidates(selection, except_path)
        key = self._key_numbers(selection)
        if key is None and not candidates:
            return _Plan(selection.predicates)
        if key is None and except_path is None and len(candidates) == 1 and candidates[0].one_value:
            return _Plan(candidates[0].rest, walk=candidates[0])
        if selection.ranges and not candidates:
            return _Plan(selection.predicates, few=key, is_by_key=True)
        numbers = [self._numbers(candidate) for candidate in candidates]
        counts = await self._counts([*numbers, *([key] if key is not None else [])])
        best = min(range(len(counts)), key=counts.__getitem__)
        if selection.ranges and counts[best] > FEW_MATCHES:
            best = len(candidates)
        if counts[best] <= FEW_MATCHES or selection.ranges:
            if best == len(candidates):
                assert key is not None
                return _Plan(selection.predicates, few=key, is_by_key=True)
            return _Plan(candidates[best].rest, few=numbers[best])
        walks = [candidate for candidate in candidates if candidate.one_value]
        return _Plan(walks[0].rest, walk=walks[0]) if walks else _Plan(selection.predicates)

    def _candidates(self, selection: Selection, except_path: tuple[str, ...] | None) -> list[_Candidate]:
        predicates = selection.predicates
        found = []
        for position, predicate in enumerate(predicates):
            if predicate.path == except_path and not predicate.element:
                continue
            index = self._indexes.ready(IndexedPath(predicate.path, predicate.element))
            if index is None:
                continue
            terms = tuple(entries(predicate))
            rest = predicates[:position] + predicates[position + 1 :]
            if not all(term.is_exact for term in terms):
                rest = (*rest, predicate)
            found.append(_Candidate(index.id, terms, rest))
        return found

    def _key_numbers(self, selection: Selection) -> Sql | None:
        """The numbers of the rows of one key, or of one prefix of a key, or of several; None for a wider range."""
        span = selection.span
        if selection.ranges:
            text = (
                "SELECT unnest(ARRAY("
                f"SELECT number FROM {self._schema}.item WHERE epk >= part.low AND epk < part.high"
                ")) AS number FROM unnest(%s, %s) AS part(low, high)"
            )
            return Sql(text, _ends(selection))
        if not (span.min and span.max.startswith(span.min)):
            return None
        ids = [condition(p) for p in selection.predicates if p.path == ("id",) and not p.element]
        where = all_of(Sql("item.epk >= %s AND item.epk < %s", (span.min, span.max)), *ids)
        return Sql(f"SELECT item.number FROM {self._schema}.item AS item WHERE {where.text}", where.params)

    def _numbers(self, candidate: _Candidate) -> Sql:
        where = self._entries(candidate)
        return Sql(f"SELECT entry.number FROM {self._schema}.entry AS entry WHERE {where.text}", where.params)

    def _entries(self, candidate: _Candidate) -> Sql:
        return all_of(self._is_ready(candidate.index), candidate.where)

    def _is_ready(self, index: int) -> Sql:
        # Besides the comparison, so that it is called whether or not there are entries to compare.
        return Sql(f"{self._schema}.ready_1(%s::int) = %s AND entry.index = %s", (index, index, index))

    async def _counts(self, numbers: list[Sql]) -> list[int]:
        parts = [f"(SELECT count(*) FROM ({part.text} LIMIT {FEW_MATCHES + 1}) AS few)" for part in numbers]
        params = tuple(value for part in numbers for value in part.params)
        return [int(count) for count in (await self._fetch(Sql(f"SELECT {', '.join(parts)}", params)))[0]]

    # -- statements ----------------------------------------------------------------------------

    def _source(self, plan: _Plan, selection: Selection) -> tuple[str, Sql]:
        """What a plan reads from, and the whole condition."""
        tests = self._tests(selection, plan.rest)
        if selection.ranges and not plan.is_by_key:
            within = "EXISTS (SELECT FROM unnest(%s, %s) AS part(low, high) WHERE epk >= part.low AND epk < part.high)"
            tests.insert(0, Sql(within, _ends(selection)))
        if plan.walk is not None:
            source = f"{self._schema}.entry AS entry JOIN {self._schema}.item AS item ON item.number = entry.number"
            where = all_of(self._entries(plan.walk), *tests)
        else:
            source = f"{self._schema}.item AS item"
            few = [] if plan.few is None else [_is_one_of(plan.few)]
            where = all_of(*few, *tests)
        return source + _document(plan.rest), where

    def _tests(self, selection: Selection, predicates: Sequence[Predicate]) -> list[Sql]:
        """What is to be tested on each row, the cheapest tests first."""
        tests = []
        if selection.span != WHOLE:
            tests.append(Sql("item.epk >= %s AND item.epk < %s", (selection.span.min, selection.span.max)))
        ttl = selection.default_ttl
        if ttl is not None:
            alive = "coalesce(item.ttl, %s) <= 0 OR item.ts + coalesce(item.ttl, %s) > %s"
            tests.append(Sql(alive, (ttl, ttl, selection.now)))
        return tests + [condition(predicate) for predicate in sorted(predicates, key=needs_document)]

    def _in_order(
        self,
        index: int,
        selection: Selection,
        order: PathOrder,
        place: tuple[str, float, int] | None,
        limit: int,
    ) -> Sql:
        """Goes along the entries of the index; a predicate on the same path bounds them."""
        direction, operator = ("DESC", "<") if order.descending else ("ASC", ">")
        bounds, rest = [self._is_ready(index)], list(selection.predicates)
        for predicate in selection.predicates:
            terms = entries(predicate) if predicate.path == order.path and not predicate.element else []
            if len(terms) == 1:
                bounds.append(terms[0].where)
                if terms[0].is_exact:
                    rest.remove(predicate)
                break
        if place is not None:
            bounds.append(Sql(f"(tag, num, entry.number) {operator} (%s, %s::float8, %s)", place))
        where = all_of(*bounds, *self._tests(selection, rest))
        return Sql(
            f"SELECT {ROW}, tag, num FROM {self._schema}.entry AS entry "
            f"JOIN {self._schema}.item AS item ON item.number = entry.number{_document(rest)} WHERE {where.text} "
            f"ORDER BY entry.index {direction}, tag {direction}, num {direction}, entry.number {direction} LIMIT %s",
            (*where.params, limit),
        )

    def _sorted_few(
        self,
        plan: _Plan,
        selection: Selection,
        order: PathOrder,
        place: tuple[str, float, int] | None,
        limit: int,
    ) -> Sql:
        """Sorts the few rows another index finds, which is cheaper than to walk along the whole order."""
        direction, operator = ("DESC", "<") if order.descending else ("ASC", ">")
        source, where = self._source(plan, selection)
        keys = _keys(order.path)
        if order.path not in ROW_COLUMNS and not any(map(needs_document, plan.rest)):
            source += f" {DOCUMENT}"
        behind = Sql("true")
        if place is not None:
            behind = Sql(f"(tag, num, item.number) {operator} (%s, %s::float8, %s)", place)
        return Sql(
            f"SELECT {ROW}, tag, num FROM (SELECT item.*, {keys.text} FROM {source} WHERE {where.text} OFFSET 0) "
            f"AS item WHERE {behind.text} "
            f"ORDER BY tag {direction}, num {direction}, item.number {direction} LIMIT %s",
            (*keys.params, *where.params, *behind.params, limit),
        )


def _document(predicates: Sequence[Predicate]) -> str:
    return f" {DOCUMENT}" if any(map(needs_document, predicates)) else ""


def _ends(selection: Selection) -> tuple[ByteaArray, ByteaArray]:
    """Where the ranges of a selection begin and end."""
    ranges = selection.ranges
    return byteas([part.min for part in ranges]), byteas([part.max for part in ranges])


def _is_one_of(numbers: Sql) -> Sql:
    return Sql(f"item.number = ANY(ARRAY({numbers.text}))", numbers.params)


def _keys(path: tuple[str, ...]) -> Sql:
    column = ROW_COLUMNS.get(path)
    if column == "id":
        return Sql("""('4' || item.id) COLLATE "C" AS tag, 0::float8 AS num""")
    if column == "ts":
        return Sql("""'3' COLLATE "C" AS tag, item.ts::float8 AS num""")
    value = member(path)
    return Sql(
        f'pleiad.tag({value.text}) COLLATE "C" AS tag, pleiad.num({value.text}) AS num',
        (*value.params, *value.params),
    )


def _is_place(position: OrderPosition) -> bool:
    """Whether a position can be compared with entries: not behind a string that is long, or that no item can have."""
    if not isinstance(position.value, str):
        return True
    return is_addressable((position.value,)) and not is_long(tag_of(to_text(position.value)))


def _place(position: OrderPosition) -> tuple[str, float, int]:
    if position.rank == RANK_STRING:
        return tag_of(to_text(str(position.value))), 0.0, position.number
    number = 0.0 if isinstance(position.value, str) else float(position.value)
    return str(position.rank), number, position.number


def _position(tag: str, num: float, number: int) -> OrderPosition:
    rank = int(tag[0])
    if rank == RANK_STRING:
        return OrderPosition(rank, from_text(tag[1:]), number)
    if rank == RANK_NUMBER:
        return OrderPosition(rank, num, number)
    return OrderPosition(rank, int(num) if rank == RANK_BOOLEAN else 0, number)
