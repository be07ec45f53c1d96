"""What generated code calls beside the value functions: subquery forms, list membership, UDFs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pleiad.query import errors, values
from pleiad.query.aggregate import grouped
from pleiad.query.context import QueryContext
from pleiad.query.functions.registry import LARGE, check_array_elements, check_text_chars, weigh, weigh_copied
from pleiad.query.like import like3, like_matcher
from pleiad.query.measure import size_of
from pleiad.query.pace import carry
from pleiad.query.values import EXACT_INT, hash_key
from pleiad.values.undefined import UNDEFINED

_NOTHING: Final = object()

TEXT_TESTS: Final = {
    "CONTAINS": "{1} in {0}",
    "STARTSWITH": "{0}.startswith({1})",
    "ENDSWITH": "{0}.endswith({1})",
    "STRINGEQUALS": "{0} == {1}",
}
"""What functions of two strings come to; as Python, since to call them would take longer."""


def tag_of(value: Any) -> str:
    """The type of a constant as far as generated code is specialised for it.

    ``number`` and ``string`` are those that Python compares as the language does: numbers that a double holds
    exactly, strings without characters from the surrogate range up.
    """
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = value.__class__
    if kind is str:
        return "string" if value.isascii() or max(value) < "\ud800" else "other"
    if (kind is int or kind is float) and -EXACT_INT < value < EXACT_INT:
        return "number"
    return "other"


def scalar(rows: Iterator[Any]) -> Any:
    """The value of a scalar subquery: its only row, or undefined."""
    value = next(rows, UNDEFINED)
    if next(rows, _NOTHING) is not _NOTHING:
        raise errors.refusal("SC2201")
    return value


def exists(rows: Iterator[Any]) -> bool:
    """Whether there is a row."""
    return next(rows, _NOTHING) is not _NOTHING


def first(rows: Iterator[Any]) -> Any:
    """The first row, or undefined."""
    return next(rows, UNDEFINED)


def last(rows: Iterator[Any]) -> Any:
    """The last row, or undefined."""
    tail = deque(rows, maxlen=1)
    return tail[0] if tail else UNDEFINED


def array_of(rows: Iterator[Any]) -> list[Any]:
    """All rows as one array, bounded like every array a query builds, and counted with what its elements take."""
    found: list[Any] = []
    size_bytes = 0
    for row in rows:
        found.append(row)
        size_bytes += size_of(row)
        if size_bytes > LARGE:
            carry(size_bytes)
            size_bytes = 0
        if not len(found) & 1023:
            check_array_elements(len(found))
    return found


def carry_value(value: Any) -> None:
    """Counts a value that DISTINCT in a subquery keeps."""
    carry(size_of(value))


def elements_of(rows: Iterator[Any]) -> Iterator[Any]:
    """The elements of the rows that are arrays."""
    for row in rows:
        if row.__class__ is list:
            yield from row


def membership(items: tuple[Any, ...]) -> Callable[[Any], bool]:
    """A test whether a value equals one of the items; undefined equals none."""
    strings = frozenset(item for item in items if item.__class__ is str)
    others = frozenset(
        hash_key(item)
        for item in items
        if item.__class__ is not str and item is not UNDEFINED and item == item
    )

    def has(value: Any) -> bool:
        return value in strings if value.__class__ is str else hash_key(value) in others

    return has


def concat3(*parts: Any) -> Any:
    """``a || b || …``: defined for strings only, and bounded like every string a query builds."""
    for part in parts:
        if part.__class__ is not str:
            return UNDEFINED
    check_text_chars(sum(map(len, parts)))
    return "".join(parts)


def call_udf(context: QueryContext, name: str, *arguments: Any) -> Any:
    """The value of a user-defined function of the container."""
    function = context.udfs.get(name)
    if function is None:
        raise errors.plain_error(f"There is no user-defined function '{name}' in the container.")
    return function(*arguments)


def computed_member(computed: Mapping[str, Callable[[Any], Any]], item: Any, key: Any) -> Any:
    """``item[key]`` where a computed property goes before a stored one."""
    if key.__class__ is str and key in computed:
        return computed[key](item)
    return values.member(item, key)


_VALUE_FUNCTIONS: Final = (
    *("eq3", "ne3", "lt3", "le3", "gt3", "ge3", "not3", "and3", "or3", "between3", "in3", "member"),
    *("add3", "sub3", "mul3", "div3", "mod3", "neg3", "pos3", "bitnot3", "bitand3", "bitor3", "bitxor3"),
    *("shl3", "sar3", "shr3", "finite", "all_finite", "make_array", "make_object", "hash_key"),
)
ENVIRONMENT: Final[dict[str, Any]] = {name: getattr(values, name) for name in _VALUE_FUNCTIONS}
ENVIRONMENT.update(
    {
        "__builtins__": {
            "len": len,
            "dict": dict,
            "list": list,
            "int": int,
            "float": float,
            "str": str,
            "bool": bool,
            "set": set,
        },
        "U": UNDEFINED,
        "SIZED": frozenset((str, list, dict)),
        "weigh": weigh,
        "weigh_copied": weigh_copied,
        "carry_value": carry_value,
        "grouped": grouped,
        "like3": like3,
        "like_matcher": like_matcher,
        "scalar": scalar,
        "exists": exists,
        "first": first,
        "last": last,
        "array_of": array_of,
        "elements_of": elements_of,
        "membership": membership,
        "concat3": concat3,
        "call_udf": call_udf,
        "computed_member": computed_member,
    }
)
