"""A predicate as SQL: as a condition on a row's body, and as conditions on the entries of a path index.

Both forms hold for exactly the same items. The condition on a body first compares what SQLite reads, which costs
one look into the body and lets through at most a few rows too many; only the rows that pass are read with their
type and as exact doubles.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import NamedTuple

from pleiad.store.predicate import (
    RANK_BOOLEAN,
    RANK_NULL,
    RANK_NUMBER,
    RANK_STRING,
    ROW_COLUMNS,
    Wanted,
    check,
    double,
    is_addressable,
    range_rank,
)
from pleiad.store.selection import Bound, Predicate, Scalar
from pleiad.store.sqlite.json_sql import elements_of, json_path, number_of

SqlValue = str | int | float | bytes | None

_PLACEHOLDERS_MAX = 64
"""Longer lists are bound as one JSON text, so that statements stay short and few."""
_NUMBERS_NEAR_MAX = 8
_ULPS_NEAR = 2


class Sql(NamedTuple):
    """A piece of SQL and the values of its placeholders, in order."""

    text: str
    params: tuple[SqlValue, ...] = ()


NEVER = Sql("0")
ALWAYS = Sql("1")


Place = tuple[int, str | int | float, int]
"""A place in an index: rank, value, number."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of a path index: of one rank, or with `rank` None of all ranks but undefined.

    `equal` says which values they have, or `low` and `high` do. With `one_value` that is a single value, so the
    index holds the entries in the order of their numbers.
    """

    rank: int | None
    equal: Sql | None = None
    low: Sql | None = None
    high: Sql | None = None
    one_value: bool = False

    @property
    def where(self) -> Sql:
        """The condition on entries."""
        return all_of(Sql(self._rank_is), *(part for part in (self.equal, self.low, self.high) if part))

    @property
    def _rank_is(self) -> str:
        return f"rank >= {RANK_NULL}" if self.rank is None else f"rank = {self.rank}"

    def behind(self, place: Place, descending: bool = False) -> Sql:
        """The condition on the entries behind a place, in a form that finds the first one at once.

        The planner takes one lower and one upper end to search by: the place has to be one of them, so the end it
        replaces is hidden from the planner behind a plus sign.
        """
        operator = "<" if descending else ">"
        if self.rank is None:
            sign = "" if descending else "+"
            return Sql(f"(rank, value, number) {operator} (?, ?, ?) AND {sign}rank >= {RANK_NULL}", place)
        if place[0] == self.rank and self.equal is None:
            parts = [Sql(f"rank = {self.rank} AND (value, number) {operator} (?, ?)", place[1:])]
            for part, is_hidden in ((self.low, not descending), (self.high, descending)):
                if part is not None:
                    parts.append(Sql(f"+{part.text}", part.params) if is_hidden else part)
            return all_of(*parts)
        if self.one_value and place[0] == self.rank and self.equal and self.equal.params == (place[1],):
            return all_of(self.where, Sql(f"number {operator} ?", (place[2],)))
        return all_of(self.where, Sql(f"(rank, value, number) {operator} (?, ?, ?)", place))


def condition(predicate: Predicate) -> Sql:
    """The predicate as a condition on the columns of a row."""
    check(predicate)
    if not is_addressable(predicate.path):
        return NEVER
    column = ROW_COLUMNS.get(predicate.path)
    if predicate.element:
        return NEVER if column or predicate.one_of is None else _element(predicate.path, predicate.one_of)
    if predicate.is_defined:
        return ALWAYS if column else Sql("json_type(body, ?) IS NOT NULL", (json_path(predicate.path),))
    if column:
        return _column(column, predicate)
    if predicate.one_of is not None:
        return _one_of(json_path(predicate.path), Wanted.of(predicate.one_of))
    rank = range_rank(predicate)
    if rank == RANK_NUMBER:
        return _number_range(json_path(predicate.path), predicate.low, predicate.high)
    return _string_range(json_path(predicate.path), predicate) if rank == RANK_STRING else NEVER


def entries(predicate: Predicate) -> list[Entries]:
    """The predicate as entries of the index of its path, no two of which are the same."""
    check(predicate)
    if predicate.one_of is None:
        if predicate.element:
            return []
        if predicate.is_defined:
            return [Entries(None)]
        rank = range_rank(predicate)
        if rank is None:
            return []
        return [Entries(rank, low=_end("value", predicate.low, ">"), high=_end("value", predicate.high, "<"))]
    wanted = Wanted.of(predicate.one_of)
    found = []
    if wanted.null:
        found.append(Entries(RANK_NULL, Sql("value = ?", (0,)), one_value=True))
    for rank, values in (
        (RANK_BOOLEAN, tuple(int(value) for value in wanted.booleans)),
        (RANK_NUMBER, wanted.numbers),
        (RANK_STRING, wanted.strings),
    ):
        if values:
            found.append(Entries(rank, _among("value", values), one_value=len(values) == 1))
    return found


def entry_of(scalar: Scalar) -> tuple[int, SqlValue] | None:
    """Rank and value of the entries of one scalar; None when no item can have it."""
    if scalar is None:
        return RANK_NULL, 0
    if isinstance(scalar, bool):
        return RANK_BOOLEAN, int(scalar)
    if isinstance(scalar, str):
        return (RANK_STRING, scalar) if scalar.isascii() or is_addressable((scalar,)) else None
    number = double(scalar)
    return None if math.isnan(number) else (RANK_NUMBER, number)


def all_of(*conditions: Sql) -> Sql:
    """The conjunction of conditions; at least one is given."""
    params = tuple(value for part in conditions for value in part.params)
    return Sql(" AND ".join(f"({part.text})" for part in conditions), params)


def _any(conditions: list[Sql]) -> Sql:
    if not conditions:
        return NEVER
    if len(conditions) == 1:
        return conditions[0]
    params = tuple(value for part in conditions for value in part.params)
    return Sql("(" + " OR ".join(f"({part.text})" for part in conditions) + ")", params)


def _among(expression: str, values: tuple[SqlValue, ...]) -> Sql:
    """Equality with one of some numbers or some strings."""
    if len(values) == 1:
        return Sql(f"{expression} = ?", values)
    if len(values) <= _PLACEHOLDERS_MAX:
        return Sql(f"{expression} IN ({', '.join('?' * len(values))})", values)
    return Sql(f"{expression} IN (SELECT value FROM json_each(?))", (_json_list(values),))


def _json_list(values: tuple[SqlValue, ...]) -> str:
    # A number beyond all doubles equals nothing that is stored, and JSON has no word for it.
    return json.dumps([value for value in values if not (isinstance(value, float) and math.isinf(value))])


def _one_of(path: str, wanted: Wanted) -> Sql:
    parts = []
    if wanted.null:
        parts.append(Sql("json_type(body, ?) = 'null'", (path,)))
    parts += [Sql(f"json_type(body, ?) = '{str(value).lower()}'", (path,)) for value in wanted.booleans]
    if wanted.numbers:
        parts.append(_numbers(path, wanted.numbers))
    if wanted.strings:
        among = _among("json_extract(body, ?)", wanted.strings)
        if any(text[:1] in "[{" for text in wanted.strings if text):
            # json_extract gives arrays and objects as texts too.
            parts.append(Sql(f"{among.text} AND json_type(body, ?) = 'text'", (path, *among.params, path)))
        else:
            parts.append(Sql(among.text, (path, *among.params)))
    return _any(parts)


def _numbers(path: str, numbers: tuple[float, ...]) -> Sql:
    exact = _among(_number(path).text, numbers)
    params = (*_number(path).params, *exact.params)
    if len(numbers) > _NUMBERS_NEAR_MAX:
        return Sql(exact.text, params)
    near = _any(
        [
            Sql(
                "json_extract(body, ?) BETWEEN ? AND ?",
                (path, _step(number, -math.inf), _step(number, math.inf)),
            )
            for number in numbers
        ]
    )
    return Sql(f"{near.text} AND {exact.text}", (*near.params, *params))


def _number(path: str) -> Sql:
    text = number_of("body", "?")
    return Sql(text, (path,) * text.count("?"))


def _step(number: float, towards: float) -> float:
    """A bound so far from the number that SQLite's reading of a very long number cannot cross it."""
    for _ in range(_ULPS_NEAR):
        number = math.nextafter(number, towards)
    return number


def _end(expression: str, bound: Bound | None, operator: str) -> Sql | None:
    """One end of a range as a comparison of an expression that has the type of the end."""
    if bound is None:
        return None
    value = _bound_value(bound)
    return Sql(f"{expression} {operator}{'=' if bound.inclusive else ''} {value.text}", value.params)


def _bounds(expression: str, predicate: Predicate) -> list[Sql]:
    """The ends of a range of one type."""
    ends = (_end(expression, predicate.low, ">"), _end(expression, predicate.high, "<"))
    return [end for end in ends if end is not None]


def _bound_value(bound: Bound) -> Sql:
    if not isinstance(bound.value, str):
        return Sql("?", (double(bound.value),))
    if is_addressable((bound.value,)):
        return Sql("?", (bound.value,))
    return Sql("CAST(? AS TEXT)", (bound.value.encode(errors="surrogatepass"),))


def _number_range(path: str, low: Bound | None, high: Bound | None) -> Sql:
    bottom = double(low.value) if low and not isinstance(low.value, str) else -math.inf
    top = double(high.value) if high and not isinstance(high.value, str) else math.inf
    inner = (_step(bottom, math.inf) if low else bottom, _step(top, -math.inf) if high else top)
    number = _number(path)
    exact: list[str] = []
    exact_params: list[SqlValue] = []
    for bound, operator, value in ((low, ">", bottom), (high, "<", top)):
        if bound is not None:
            exact.append(f"{number.text} {operator}{'=' if bound.inclusive else ''} ?")
            exact_params += [*number.params, value]
    # true and false are read as 1 and 0.
    holds_boolean = inner[0] <= 0 <= inner[1] or inner[0] <= 1 <= inner[1]
    inside = "json_type(body, ?) IN ('integer', 'real')" if holds_boolean else "1"
    return Sql(
        "json_extract(body, ?) BETWEEN ? AND ? AND CASE WHEN json_extract(body, ?) BETWEEN ? AND ? "
        f"THEN {inside} ELSE {' AND '.join(exact)} END",
        (
            path,
            _step(bottom, -math.inf),
            _step(top, math.inf),
            path,
            *inner,
            *((path,) if holds_boolean else ()),
            *exact_params,
        ),
    )


def _string_range(path: str, predicate: Predicate) -> Sql:
    ends = [Sql(end.text, (path, *end.params)) for end in _bounds("json_extract(body, ?)", predicate)]
    return all_of(*ends, Sql("json_type(body, ?) = 'text'", (path,)))


def _column(column: str, predicate: Predicate) -> Sql:
    own_rank = RANK_STRING if column == "id" else RANK_NUMBER
    if predicate.one_of is None:
        return all_of(*_bounds(column, predicate)) if range_rank(predicate) == own_rank else NEVER
    wanted = Wanted.of(predicate.one_of)
    values: tuple[SqlValue, ...] = wanted.strings if own_rank == RANK_STRING else wanted.numbers
    return _among(column, values) if values else NEVER


def _element(path: tuple[str, ...], scalars: tuple[Scalar, ...]) -> Sql:
    wanted = Wanted.of(scalars)
    where = json_path(path)
    types = ["null"] * wanted.null + [str(value).lower() for value in wanted.booleans]
    parts = []
    if types:
        names = ", ".join(f"'{name}'" for name in types)
        parts.append(Sql(f"EXISTS (SELECT 1 FROM json_each(body, ?) WHERE type IN ({names}))", (where,)))
    if wanted.strings:
        among = _among("atom", wanted.strings)
        parts.append(
            Sql(
                f"EXISTS (SELECT 1 FROM json_each(body, ?) WHERE type = 'text' AND {among.text})",
                (where, *among.params),
            )
        )
    if wanted.numbers:
        exact = _among("CAST(atom AS REAL)", wanted.numbers)
        source = elements_of("body", "?")
        parts.append(
            Sql(
                f"EXISTS (SELECT 1 FROM json_each({source}) "
                f"WHERE type IN ('integer', 'real') AND {exact.text})",
                (*(where,) * source.count("?"), *exact.params),
            )
        )
    if not parts:
        return NEVER
    either = _any(parts)
    return Sql(f"json_type(body, ?) = 'array' AND {either.text}", (where, *either.params))
