"""A predicate as SQL: as a condition on a row, and as conditions on the entries of a path index.

Both forms hold for exactly the same items. An entry holds only the beginning of a long string, so where a predicate
names a string that long, the entries are a superset and the condition on the row decides (`is_exact`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pleiad.store.postgres.json_sql import Sql, member, to_text
from pleiad.store.postgres.schema import TAG_CHARACTERS
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
from pleiad.store.selection import Bound, Predicate

NEVER = Sql("false")
_BEHIND_SURROGATES = "\ue000"
_MANY = 100
"""More values than this are kept in a hash table, which the planner makes of a subquery only."""
_SOUGHT_MAX = 4
_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f]')


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of a path index: a condition on (tag, num).

    With `one_value` all of them have the same tag and num, so the index holds them in the order of their numbers.
    """

    where: Sql
    one_value: bool = False
    is_exact: bool = True


def all_of(*conditions: Sql) -> Sql:
    """The conjunction of conditions, true when there are none."""
    if not conditions:
        return Sql("true")
    params = tuple(value for part in conditions for value in part.params)
    return Sql(" AND ".join(f"({part.text})" for part in conditions), params)


def any_of(conditions: list[Sql]) -> Sql:
    """The disjunction of conditions, false when there are none."""
    if not conditions:
        return NEVER
    params = tuple(value for part in conditions for value in part.params)
    return Sql(" OR ".join(f"({part.text})" for part in conditions), params)


def condition(predicate: Predicate) -> Sql:
    """The predicate as a condition on a row with its document joined."""
    check(predicate)
    if not is_addressable(predicate.path):
        return NEVER
    column = ROW_COLUMNS.get(predicate.path)
    if predicate.element and (column or predicate.one_of is None):
        return NEVER
    if column:
        return _column(column, predicate)
    value = member(predicate.path)
    if predicate.is_defined:
        return Sql(f"{value.text} IS NOT NULL", value.params)
    if predicate.one_of is not None:
        wanted = Wanted.of(predicate.one_of)
        exact = _element(value, wanted) if predicate.element else _one_of(value, wanted)
        return all_of(*_sought(wanted), exact)
    rank = range_rank(predicate)
    if rank is None:
        return NEVER
    reader = "pleiad.double" if rank == RANK_NUMBER else "pleiad.string"
    return _range(Sql(f"{reader}({value.text})", value.params), predicate)


def needs_document(predicate: Predicate) -> bool:
    """Whether the condition looks into the body."""
    return predicate.path not in ROW_COLUMNS


def _one_of(value: Sql, wanted: Wanted) -> Sql:
    parts = []
    words = ["null"] * wanted.null + [json.dumps(boolean) for boolean in wanted.booleans]
    words += [json.dumps(to_text(string)) for string in wanted.strings]
    if len(words) == 1:
        parts.append(Sql(f"{value.text} = %s::jsonb", (*value.params, words[0])))
    elif words:
        among = (
            "IN (SELECT unnest(%s::text[])::jsonb) IS TRUE"
            if len(words) > _MANY
            else "= ANY(%s::text[]::jsonb[])"
        )
        parts.append(Sql(f"{value.text} {among}", (*value.params, words)))
    if len(wanted.numbers) > _MANY:
        many = "IN (SELECT unnest(%s::float8[])) IS TRUE"
        parts.append(Sql(f"pleiad.double({value.text}) {many}", (*value.params, list(wanted.numbers))))
    elif wanted.numbers:
        numbers = _among("", wanted.numbers, "float8")
        parts.append(Sql(f"pleiad.double({value.text}){numbers.text}", (*value.params, *numbers.params)))
    return any_of(parts)


def _among(expression: str, values: tuple[str, ...] | tuple[float, ...], type: str) -> Sql:
    if len(values) == 1:
        return Sql(f"{expression} = %s::{type}", values)
    return Sql(f"{expression} = ANY(%s::{type}[])", (list(values),))


def _range(value: Sql, predicate: Predicate) -> Sql:
    """The ends of a range as comparisons of an expression that has their type."""
    parts = []
    for bound, operator in ((predicate.low, ">"), (predicate.high, "<")):
        if bound is not None:
            end, is_inclusive = _end(bound, operator)
            type = 'text COLLATE "C"' if isinstance(end, str) else "float8"
            parts.append(
                Sql(f"{value.text} {operator}{'=' if is_inclusive else ''} %s::{type}", (*value.params, end))
            )
    return all_of(*parts)


def _end(bound: Bound, operator: str) -> tuple[str | float, bool]:
    """The value of one end as PostgreSQL compares it, and whether the end itself is in the range."""
    if not isinstance(bound.value, str):
        return double(bound.value), bound.inclusive
    if is_addressable((bound.value,)):
        return to_text(bound.value), bound.inclusive
    # No stored text has a lone surrogate: all are before it or behind all surrogates.
    place = next(place for place, letter in enumerate(bound.value) if "\ud800" <= letter <= "\udfff")
    return to_text(bound.value[:place]) + _BEHIND_SURROGATES, operator == ">"


def _column(column: str, predicate: Predicate) -> Sql:
    if predicate.is_defined:
        return Sql("true")
    own_rank = RANK_STRING if column == "id" else RANK_NUMBER
    value = Sql("item.id" if column == "id" else "item.ts::float8")
    if predicate.one_of is None:
        return _range(value, predicate) if range_rank(predicate) == own_rank else NEVER
    wanted = Wanted.of(predicate.one_of)
    if own_rank == RANK_STRING:
        strings = tuple(to_text(string) for string in wanted.strings)
        return _among(value.text, strings, "text") if strings else NEVER
    return _among(value.text, wanted.numbers, "float8") if wanted.numbers else NEVER


def _element(array: Sql, wanted: Wanted) -> Sql:
    either = _one_of(Sql("element"), wanted)
    return Sql(
        f"CASE WHEN jsonb_typeof({array.text}) = 'array' THEN "
        f"EXISTS (SELECT FROM jsonb_array_elements({array.text}) AS element WHERE {either.text}) ELSE false END",
        (*array.params, *array.params, *either.params),
    )


def _sought(wanted: Wanted) -> list[Sql]:
    """A test of the bytes of a body that all rows with one of some strings pass, a fifth of the price of reading it.

    Without a backslash in the body a string stands there as it is, between quotes.
    """
    strings = wanted.strings
    if wanted.null or wanted.booleans or wanted.numbers or not 0 < len(strings) <= _SOUGHT_MAX:
        return []
    if any(_NEEDS_ESCAPE.search(string) for string in strings):
        return []
    sought = [*(f'"{string}"'.encode() for string in strings), b"\\"]
    return [any_of([Sql("position(%s::bytea in item.body) > 0", (part,)) for part in sought])]


# -- entries of an index -----------------------------------------------------------------------


def entries(predicate: Predicate) -> list[Entries]:
    """The predicate as entries of the index of its path, no two of which are the same."""
    check(predicate)
    if predicate.one_of is not None:
        return _entries_of(Wanted.of(predicate.one_of))
    if predicate.element:
        return []
    if predicate.is_defined:
        return [Entries(Sql("tag >= %s", (str(RANK_NULL),)))]
    rank = range_rank(predicate)
    if rank is None:
        return []
    if rank == RANK_NUMBER:
        ends = _range(Sql("num"), predicate)
        return [Entries(all_of(Sql("tag = %s", (str(RANK_NUMBER),)), ends))]
    return [_strings_between(predicate)]


def _entries_of(wanted: Wanted) -> list[Entries]:
    found = []
    if wanted.null:
        found.append(Entries(_place(RANK_NULL, (0.0,)), one_value=True))
    if wanted.booleans:
        values = tuple(float(value) for value in wanted.booleans)
        found.append(Entries(_place(RANK_BOOLEAN, values), one_value=len(values) == 1))
    if wanted.numbers:
        found.append(Entries(_place(RANK_NUMBER, wanted.numbers), one_value=len(wanted.numbers) == 1))
    if wanted.strings:
        tags = sorted({tag_of(to_text(string)) for string in wanted.strings})
        among = _among("tag", tuple(tags), "text")
        is_exact = not any(is_long(tag) for tag in tags)
        found.append(Entries(all_of(among, Sql("num = 0")), len(tags) == 1, is_exact))
    return found


def _place(rank: int, numbers: tuple[float, ...]) -> Sql:
    among = _among("num", numbers, "float8")
    return all_of(Sql("tag = %s", (str(rank),)), among)


def _strings_between(predicate: Predicate) -> Entries:
    parts = []
    is_exact = True
    for bound, operator, beyond in (
        (predicate.low, ">", RANK_STRING),
        (predicate.high, "<", RANK_STRING + 1),
    ):
        if bound is None:
            parts.append(Sql(f"tag {operator}{'=' if operator == '>' else ''} %s", (str(beyond),)))
            continue
        end, is_inclusive = _end(bound, operator)
        tag = tag_of(str(end))
        is_exact = is_exact and not is_long(tag)
        parts.append(Sql(f"tag {operator}{'=' if is_inclusive or is_long(tag) else ''} %s", (tag,)))
        if operator == "<":
            parts.append(Sql("tag >= %s", (str(RANK_STRING),)))
        else:
            parts.append(Sql("tag < %s", (str(RANK_STRING + 1),)))
    return Entries(all_of(*parts), is_exact=is_exact)


def tag_of(kept: str) -> str:
    """The tag of a string as it is kept."""
    return (str(RANK_STRING) + kept)[: TAG_CHARACTERS + 1]


def is_long(tag: str) -> bool:
    """Whether a tag may stand for several strings."""
    return len(tag) > TAG_CHARACTERS
