"""A file of query texts with their rates, as requests to try keys with.

A line is a rate per second and what is asked so often: a query, or `create`, `read`, `replace` or `delete` for
operations on one item whose key the client knows. A line may also be a JSON object with `rate` and `query` or
`operation`, and `parameters` by name. Lines that begin with `#` are passed over.

    50   read
    20   create
    12.5 SELECT * FROM c WHERE c.tenantId = @tenant
    {"rate": 3, "query": "SELECT * FROM c WHERE c.city = @city", "parameters": {"@city": "Ulm"}}

A parameter without a value has that of an item drawn at random, so that large values are asked for more often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.random import default_rng

from pleiad.advise.demand import (
    SYSTEM_BYTES,
    VISIT_RU,
    Basis,
    Demands,
    Way,
    found_ru,
    read_charges,
    write_charges,
)
from pleiad.advise.gather import Gathering
from pleiad.advise.table import Table
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import Query, compile_query
from pleiad.query import plan as plans
from pleiad.query.errors import complaints_of

OPERATIONS = ("create", "read", "replace", "delete")
QUERIES_MAX = 1_000
_RATE_MAX = 1e9
_SECONDS_MAX = 60
_REQUESTS_MAX = 50_000
_LINE = re.compile(r"([0-9][0-9_,.eE+-]*)\s+(\S.*)", re.DOTALL)
_RANGE_SHARE = 1 / 3
"""Of the items that the equalities leave, a filter that compares otherwise is taken to leave so many."""
_VALUE_BYTES = 16


class QueriesError(ValueError):
    """A file of queries that cannot be used; the text is a sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One line: what is asked, and how often."""

    line: int
    rate: float
    """Per second."""
    operation: str = ""
    query: Query | None = None
    text: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def read_queries(lines: Iterable[str], limits: Limits) -> list[Asked]:
    """The lines of a file; QueriesError tells the first one that is wrong."""
    found: list[Asked] = []
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("\ufeff")
        if not text or text.startswith("#"):
            continue
        found.append(_asked(number, text, limits))
        if len(found) > QUERIES_MAX:
            raise QueriesError(f"line {number}: there are more than {QUERIES_MAX:,} queries")
    if not found:
        raise QueriesError("there is no query in it: a line is a rate per second and a query")
    return found


def _asked(number: int, text: str, limits: Limits) -> Asked:
    parameters: Any = {}
    if text.startswith("{"):
        try:
            fields = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise QueriesError(f"line {number}: not JSON: {error.msg}") from None
        rate, parameters = fields.get("rate"), fields.get("parameters") or {}
        asked = fields.get("query") or fields.get("operation")
        if isinstance(parameters, list):
            if not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in parameters):
                raise QueriesError(f"line {number}: each of the parameters has a 'name' and a 'value'")
            parameters = {each["name"]: each["value"] for each in parameters if "value" in each}
        if (
            not isinstance(asked, str)
            or not isinstance(rate, int | float)
            or not isinstance(parameters, dict)
        ):
            raise QueriesError(f"line {number}: an object has a 'rate' and a 'query' or an 'operation'")
    else:
        match = _LINE.fullmatch(text)
        if match is None:
            raise QueriesError(
                f"line {number}: a line begins with a rate per second, as in: 12.5 SELECT * FROM c"
            )
        try:
            rate = float(match[1].replace("_", "").replace(",", ""))
        except ValueError:
            raise QueriesError(f"line {number}: '{match[1]}' is no number") from None
        asked = match[2]
    if not 0 < rate <= _RATE_MAX:
        raise QueriesError(f"line {number}: a rate is above 0 and at most {_RATE_MAX:,.0f}, and not {rate:g}")
    if asked.lower() in OPERATIONS:
        return Asked(number, float(rate), operation=asked.lower(), text=asked.lower())
    try:
        query = compile_query(asked, limits, parameters)
    except PleiadError as error:
        raise QueriesError(f"line {number}: {_sentence(error)}") from None
    return Asked(number, float(rate), query=query, text=asked, parameters=parameters)


def _sentence(error: PleiadError) -> str:
    """What is wrong with a query, and where, without the form in which clients of the service are told."""
    first = complaints_of(error)[0]
    where = "" if first.start is None else f" (at character {first.start + 1} of the query)"
    return f"{first.message}{where}"


def paths_of(asked: Iterable[Asked]) -> tuple[str, ...]:
    """The paths that the queries compare."""
    found: dict[str, None] = {}
    for each in asked:
        if each.query is not None:
            paths = each.query.filter_paths
            found.update(dict.fromkeys([path for path, _ in paths.equals] + list(paths.others)))
    return tuple(found)


def query_demands(asked: list[Asked], table: Table, seed: int = 1) -> Demands:
    """The requests that come at these rates in up to a minute."""
    gathering = Gathering(table)
    if not table.rows:
        return gathering.finish(Basis.QUERIES)
    random = default_rng(seed)
    total_rate = sum(each.rate for each in asked)
    seconds = int(max(1, min(_SECONDS_MAX, _REQUESTS_MAX // total_rate)))
    # What is asked for more often than can be tried stands for several requests each.
    thinning = max(1.0, total_rate * seconds / _REQUESTS_MAX)
    maker = _Maker(table, gathering, thinning)
    for each in asked:
        count = int(np.floor(each.rate * seconds / thinning + random.random()))
        times = np.sort(random.random(count)) * seconds
        rows = random.integers(0, table.rows, count)
        if each.operation == "create":
            # New items come in the order of time: the newest ones of the table stand for them.
            rows = table.order[np.arange(table.rows - count, table.rows) % table.rows]
        for at, row in zip(times.tolist(), rows.tolist(), strict=True):
            maker.add(each, at, row)
    return gathering.finish(Basis.QUERIES, requests=len(gathering))


class _Maker:
    """Makes requests of lines."""

    def __init__(self, table: Table, gathering: Gathering, thinning: float) -> None:
        self._table = table
        self._gathering = gathering
        self._thinning = thinning
        self._write_ru, self._read_ru = write_charges(table), read_charges(table)
        self._mean_bytes = float(table.sizes.mean())
        self._counts = {
            name: np.bincount(column.codes, minlength=column.distinct)
            for name, column in table.columns.items()
        }
        self._id_codes = table.ids.codes

    def add(self, asked: Asked, at: float, row: int) -> None:
        if asked.query is None:
            self._add_operation(asked.operation, at, row)
        else:
            self._add_query(asked, asked.query, at, row)

    def _add_operation(self, operation: str, at: float, row: int) -> None:
        ru = float(self._read_ru[row] if operation == "read" else self._write_ru[row])
        self._gathering.add(
            at=at,
            operation=operation,
            way=Way.ITEM,
            mark=str(row),
            own_ru=(2 * ru if operation == "replace" else ru) * self._thinning,
            row=row,
            is_write=operation != "read",
        )

    def _add_query(self, asked: Asked, query: Query, at: float, row: int) -> None:
        equals: dict[str, tuple[Any, ...]] = {}
        codes: dict[str, int] = {}
        matching = float(self._table.rows)
        for path, known in query.filter_paths.equals:
            values = [
                each.value if isinstance(each, plans.Constant) else asked.parameters.get(each.name, _DRAWN)
                for each in known
            ]
            column = self._table.columns.get(path)
            if _DRAWN in values and column is not None:
                codes[path] = int(column.codes[row])
                equals.pop(path, None)
                found = [codes[path]]
            else:
                equals[path] = tuple(value for value in values if value is not _DRAWN)
                found = self._gathering.codes(path, equals[path]).tolist()
            if column is not None:
                matching = min(matching, float(sum(self._counts[path][code] for code in found if code >= 0)))
        if query.filter_paths.others:
            matching *= _RANGE_SHARE
        self._gathering.add(
            at=at,
            operation="query",
            way=Way.QUERY,
            mark=asked.text + str(row if codes else ""),
            own_ru=self._found_ru(query, matching * self._table.scale) * self._thinning,
            visit_ru=VISIT_RU * self._thinning,
            row=-1,
            equals=equals,
            equal_codes=codes,
            ranges=query.filter_paths.others,
        )

    def _found_ru(self, query: Query, items: float) -> float:
        bounds = [each for each in (query.block.top, query.block.limit) if isinstance(each, int)]
        items = min([items, *(float(bound) for bound in bounds)]) if not query.is_aggregate else items
        loaded = int(np.ceil(items))
        loaded_bytes = int(items * self._mean_bytes)
        if query.is_aggregate:
            return found_ru(loaded, loaded_bytes, _VALUE_BYTES, 1)
        return found_ru(loaded, loaded_bytes, loaded_bytes + loaded * SYSTEM_BYTES)


_DRAWN = object()
"""In place of the value of a parameter that the file does not give."""
