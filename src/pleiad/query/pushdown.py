"""The part of a filter a store may apply: a conjunction of simple predicates on property paths.

The conjunction is a superset of the filter: it holds for every item that the query can return. `is_whole`
says when it is the filter itself, so that nothing has to be filtered again. What is not understood is
left out, never guessed.

Three things decide whether a part of the filter and its predicate are the same:

- truth: a comparison with an undefined value, or of two types, is undefined, and a store's predicate then
  does not hold either; only what is exactly true counts, so both agree, also below NOT;
- numbers: stores compare doubles, which cannot tell integers of 2^53 and more from their neighbours, so a
  comparison with one is not the whole of it;
- order: the language orders strings by UTF-16 code unit, stores by UTF-8 bytes. The two orders agree
  wherever a bound has only characters below U+D800; any other bound is cut before its first such
  character, which makes the range larger, and the pushdown is not whole.

Left out: numbers that are not finite, strings with lone surrogates (no item has any), paths through array
positions, computed properties, and system properties other than `_ts`, which are not part of the stored
body. Limits: at most PREDICATES_MAX predicates and VALUES_MAX values in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pleiad.index.policy import ELEMENT, Steps
from pleiad.item.body import SYSTEM_PROPERTIES
from pleiad.query import plan
from pleiad.query.like import like_parts, literal_of
from pleiad.query.pace import in_turns
from pleiad.query.paths.places import IsIndexed, Places, item_block, policy_paths
from pleiad.query.syntax.ast import SubqueryKind
from pleiad.query.values import EXACT_INT, hash_key, is_number, normal
from pleiad.store.selection import Bound, PathOrder, Predicate, Scalar
from pleiad.values.undefined import UNDEFINED

__all__ = [
    "Bound",
    "PathOrder",
    "Predicate",
    "Pushdown",
    "Scalar",
    "equality",
    "path_order",
    "policy_paths",
    "pushdown",
]

PREDICATES_MAX: Final = 32
VALUES_MAX: Final = 20_000

_INTEGERS_END: Final = 2**64
_ROW_PATHS: Final = (("_ts",), ("id",))
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# The first character whose place differs between UTF-16 code units and UTF-8 bytes, and the one before it.
_FIRST_UNSAFE: Final = "\ud800"
_LAST_SAFE: Final = "\ud7ff"


@dataclass(frozen=True, slots=True)
class Pushdown:
    """The predicates of a filter, and whether they are all of it."""

    predicates: tuple[Predicate, ...] = ()
    is_whole: bool = False


_NOTHING: Final = Pushdown()
_ALWAYS: Final = Pushdown(is_whole=True)


def pushdown(
    bound: plan.Plan, parameters: Mapping[str, Any], is_indexed: IsIndexed, computed: Collection[str] = ()
) -> Pushdown:
    """What a store may apply of the query's filter on items.

    ``is_indexed`` says which paths count (the elements of an array are asked for with a last step ELEMENT);
    ``_ts`` and ``id`` always do, ``computed`` properties never.
    """
    block = item_block(bound)
    if not block.reads_items:
        return _NOTHING
    part = _ALWAYS
    if block.where is not None:
        reader = _Reader(Places(parameters, block.sources), is_indexed, computed)
        part = reader.when_true(block.where)
    is_plain = block is bound.block and len(block.sources) == 1
    if len(part.predicates) > PREDICATES_MAX:
        return Pushdown(part.predicates[:PREDICATES_MAX])
    return Pushdown(part.predicates, part.is_whole and is_plain)


def path_order(
    bound: plan.Plan, parameters: Mapping[str, Any] | None = None, computed: Collection[str] = ()
) -> PathOrder | None:
    """The ORDER BY of the query when its only key is one property path of the item that a store knows."""
    block = bound.block
    if len(block.order_by) != 1 or block.rank is not None:
        return None
    key = block.order_by[0]
    place = Places(parameters or {}, block.sources).of(key.expression)
    path = None if place is None else _stored_path(place, computed)
    return None if path is None else PathOrder(path, key.descending)


def _stored_path(place: Steps, computed: Collection[str]) -> tuple[str, ...] | None:
    """The place as a path of names into what a store keeps of an item, None when it is no such path."""
    names = tuple(step for step in place if isinstance(step, str))
    if not names or len(names) != len(place) or names[0] in computed:
        return None
    if names in _ROW_PATHS:
        return names
    if names[0] in SYSTEM_PROPERTIES or names[0] == "id" or not all(map(_is_name, names)):
        return None
    return names


def _is_name(text: str) -> bool:
    """Whether a store tells this name from all others: U+0000, which no item has in one, ends a name in SQLite."""
    return _is_text(text) and "\0" not in text


def _is_text(text: str) -> bool:
    """Whether a stored string can be this one: a lone surrogate is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Reader:
    """Reads a filter for the paths that count."""

    def __init__(self, places: Places, is_indexed: IsIndexed, computed: Collection[str]) -> None:
        self._places = places
        self._is_indexed = is_indexed
        self._computed = computed

    def when_true(self, node: plan.Expression) -> Pushdown:
        """What holds when the expression is exactly true."""
        match node:
            case plan.Constant() | plan.Parameter():
                return _ALWAYS if self._is_constant(node, True) else _NOTHING
            case plan.Chain(operator="AND", operands=operands):
                return _all(map(self.when_true, in_turns(operands)))
            case plan.Chain(operator="OR", operands=operands):
                return _any([self.when_true(operand) for operand in in_turns(operands)])
            case plan.Unary(operator="NOT", operand=operand):
                return self._when_false(operand)
            case plan.Binary(operator="=", left=left, right=right):
                return self._equality(left, right)
            case plan.Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                return self._relation(operator, left, right)
            case plan.Between(value=value, low=low, high=high):
                return _all((self._relation(">=", value, low), self._relation("<=", value, high)))
            case plan.In(needle=needle, items=items):
                values = [self._places.constant(item) for item in in_turns(items)]
                if None in values:
                    return _NOTHING
                return self._one_of(needle, [value[0] for value in values if value is not None])
            case plan.Like():
                return self._like(node)
            case plan.Member() | plan.Slot():
                return self._one_of(node, (True,))
            case plan.Call():
                return self._call(node)
            case plan.Subquery(kind=SubqueryKind.EXISTS, block=block):
                return self._exists(block)
        return _NOTHING

    def _when_false(self, node: plan.Expression) -> Pushdown:
        match node:
            case plan.Constant() | plan.Parameter():
                return _ALWAYS if self._is_constant(node, False) else _NOTHING
            case plan.Unary(operator="NOT", operand=operand):
                return self.when_true(operand)
            case plan.Chain(operator="AND", operands=operands):
                return _any([self._when_false(operand) for operand in in_turns(operands)])
            case plan.Chain(operator="OR", operands=operands):
                return _all(map(self._when_false, in_turns(operands)))
            case plan.Binary(operator="!=", left=left, right=right):
                return self._equality(left, right)
            case plan.Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                return self._relation(_NEGATED[operator], left, right)
            case plan.Member() | plan.Slot():
                return self._one_of(node, (False,))
        return _NOTHING

    def _is_constant(self, node: plan.Expression, wanted: bool) -> bool:
        constant = self._places.constant(node)
        return constant is not None and constant[0] is wanted

    # -- where a predicate may stand -------------------------------------------------------------

    def _path(self, node: plan.Expression) -> tuple[str, ...] | None:
        """The property path that an expression reads, when it counts."""
        place = self._places.of(node)
        path = None if place is None else _stored_path(place, self._computed)
        if path is None or not (path in _ROW_PATHS or self._is_indexed(path)):
            return None
        return path

    def _element_path(self, place: Steps | None) -> tuple[str, ...] | None:
        """The path of the array whose elements are at the place, when they count."""
        if not place or place[-1] != ELEMENT or isinstance(place[-1], str):
            return None
        path = _stored_path(place[:-1], self._computed)
        if path is None or path in _ROW_PATHS or not self._is_indexed(place):
            return None
        return path

    # -- predicates ------------------------------------------------------------------------------

    def _equality(self, left: plan.Expression, right: plan.Expression) -> Pushdown:
        constant = self._places.constant(right)
        if constant is None:
            left, constant = right, self._places.constant(left)
        return _NOTHING if constant is None else self._one_of(left, constant)

    def _one_of(self, node: plan.Expression, values: Collection[Any]) -> Pushdown:
        """The expression equals one of the values."""
        place = self._places.of(node)
        path = self._element_path(place)
        if path is not None:
            return _one_of(path, values, element=True)
        path = self._path(node)
        return _NOTHING if path is None else _one_of(path, values)

    def _some_element(self, array: plan.Expression, value: plan.Expression) -> Pushdown:
        """Some element of the array equals the value."""
        constant = self._places.constant(value)
        place = self._places.of(array)
        path = None if place is None else self._element_path((*place, ELEMENT))
        return _NOTHING if constant is None or path is None else _one_of(path, constant, element=True)

    def _relation(self, operator: str, left: plan.Expression, right: plan.Expression) -> Pushdown:
        constant = self._places.constant(right)
        if constant is None:
            left, constant, operator = right, self._places.constant(left), _FLIPPED[operator]
        path = self._path(left)
        if constant is None or path is None:
            return _NOTHING
        value, inclusive = constant[0], operator.endswith("=")
        if isinstance(value, str):
            return _above(path, value, inclusive) if operator[0] == ">" else _below(path, value, inclusive)
        if not is_number(value) or not math.isfinite(number := normal(value)):
            return _NOTHING
        # Stores compare doubles: from 2^53 on they cannot tell an integer from its neighbours.
        is_exact = _is_told_apart(number)
        bound = Bound(number, inclusive or not is_exact)
        range_ = Predicate(path, low=bound) if operator[0] == ">" else Predicate(path, high=bound)
        return Pushdown((range_,), is_exact)

    def _like(self, node: plan.Like) -> Pushdown:
        constant = self._places.constant(node.pattern)
        if constant is None or not isinstance(constant[0], str):
            return _NOTHING
        literal = literal_of(constant[0], node.escape)
        if literal is not None:
            return self._one_of(node.value, (literal,))
        first, *others = like_parts(constant[0], node.escape)
        prefix = ""
        for piece in first:
            if len(piece) > 2 or (len(piece) == 2 and piece[0] != "\\"):
                break
            prefix += piece[-1]
        path = self._path(node.value)
        if path is None:
            return _NOTHING
        found = _prefixed(path, prefix)
        is_only_prefix = len(prefix) == len(first) and not any(others)
        if is_only_prefix:
            return found
        return replace(found, is_whole=False) if prefix else _NOTHING

    def _call(self, node: plan.Call) -> Pushdown:
        name, arguments = node.function.name, node.arguments
        match name:
            case "IS_DEFINED":
                path = self._path(arguments[0])
                return _NOTHING if path is None else Pushdown((Predicate(path, is_defined=True),), True)
            case "IS_NULL":
                return self._one_of(arguments[0], (None,))
            case "IS_BOOL":
                return self._one_of(arguments[0], (False, True))
            case "IS_STRING":
                path = self._path(arguments[0])
                return _NOTHING if path is None else _prefixed(path, "")
            case "ARRAY_CONTAINS_ANY":
                return _any([self._some_element(arguments[0], value) for value in arguments[1:]])
            case "ARRAY_CONTAINS_ALL":
                return _all([self._some_element(arguments[0], value) for value in arguments[1:]])
        if name not in ("STRINGEQUALS", "STARTSWITH", "ARRAY_CONTAINS"):
            return _NOTHING
        if len(arguments) == 3 and not self._is_constant(arguments[2], False):
            return _NOTHING
        return self._compared(name, arguments[0], arguments[1])

    def _compared(self, name: str, first: plan.Expression, second: plan.Expression) -> Pushdown:
        """A function of two arguments that compares exactly."""
        constant = self._places.constant(second)
        if name == "ARRAY_CONTAINS":
            listed = self._places.constant(first)
            if listed is not None:
                return self._one_of(second, listed[0]) if isinstance(listed[0], list) else _NOTHING
            return self._some_element(first, second)
        if name == "STRINGEQUALS" and constant is None:
            first, constant = second, self._places.constant(first)
        if constant is None or not isinstance(constant[0], str):
            return _NOTHING
        if name == "STRINGEQUALS":
            return self._one_of(first, constant)
        path = self._path(first)
        return _NOTHING if path is None else _prefixed(path, constant[0])

    def _exists(self, block: plan.Block) -> Pushdown:
        """EXISTS: what its filter asks of some row; the same thing when that is one value of one array."""
        if block.is_grouped or block.where is None:
            return _NOTHING
        self._places.add(block.sources)
        part = self.when_true(block.where)
        if not part.is_whole or len(part.predicates) != 1 or len(block.sources) != 1:
            return replace(part, is_whole=False)
        source, predicate = block.sources[0], part.predicates[0]
        is_own = predicate.element and self._element_path(self._places.of(plan.Slot(source.slot))) == (
            predicate.path
        )
        match block.selection:
            case plan.MakeObject() | plan.Constant(value=str() | int()):
                is_always_defined = True
            case plan.Slot(index=index):
                is_always_defined = index == source.slot
            case _:
                is_always_defined = False
        return replace(part, is_whole=is_own and is_always_defined)


# -- combining -----------------------------------------------------------------------------------


def _all(parts: Iterable[Pushdown]) -> Pushdown:
    """All parts hold; the two ends of one range become one predicate."""
    predicates: list[Predicate] = []
    open_ranges: dict[tuple[str, ...], int] = {}
    is_whole = True
    for part in parts:
        is_whole = is_whole and part.is_whole
        for predicate in part.predicates:
            number = open_ranges.get(predicate.path)
            joined = None if number is None else _joined(predicates[number], predicate)
            if number is not None and joined is not None:
                predicates[number] = joined
                del open_ranges[predicate.path]
                continue
            if (predicate.low is None) != (predicate.high is None):
                open_ranges[predicate.path] = len(predicates)
            predicates.append(predicate)
    return Pushdown(tuple(predicates), is_whole)


def _joined(one: Predicate, two: Predicate) -> Predicate | None:
    """One range of a lower and an upper end of the same type, else None."""
    low, high = (one, two) if one.low is not None else (two, one)
    if low.low is None or low.high is not None or high.high is None or high.low is not None:
        return None
    if isinstance(low.low.value, str) != isinstance(high.high.value, str):
        return None
    return Predicate(one.path, low=low.low, high=high.high)


def _any(parts: list[Pushdown]) -> Pushdown:
    """One of the parts holds: the lists of values on the paths that every part has one for are joined."""
    if any(part.is_whole and not part.predicates for part in parts):
        return _ALWAYS
    joined: dict[tuple[tuple[str, ...], bool], dict[Any, Scalar]] | None = None
    for part in parts:
        lists: dict[tuple[tuple[str, ...], bool], tuple[Scalar, ...]] = {}
        for predicate in part.predicates:
            if predicate.one_of is not None:
                lists.setdefault((predicate.path, predicate.element), predicate.one_of)
        if joined is None:
            joined = {place: {} for place in lists}
        else:
            joined = {place: values for place, values in joined.items() if place in lists}
        if not joined:
            return _NOTHING
        for place, values in joined.items():
            values.update((hash_key(value), value) for value in lists[place])
    is_whole = all(part.is_whole and len(part.predicates) == 1 for part in parts)
    predicates = [
        Predicate(path, one_of=tuple(values.values()), element=element)
        for (path, element), values in (joined or {}).items()
        if len(values) <= VALUES_MAX
    ]
    return Pushdown(tuple(predicates), is_whole and len(predicates) == 1)


# -- values --------------------------------------------------------------------------------------


def equality(path: tuple[str, ...], value: Any) -> Predicate | None:
    """The predicate that says the whole of `path = value`; None where no store's predicate does."""
    kind = value.__class__
    if (kind is int and -EXACT_INT < value < EXACT_INT) or (kind is str and value.isascii()):
        return Predicate(path, (value,))
    part = _one_of(path, (value,))
    return part.predicates[0] if part.is_whole else None


def _one_of(path: tuple[str, ...], values: Collection[Any], element: bool = False) -> Pushdown:
    """Equal to one of the values; undefined and NaN equal nothing, arrays and objects are not for stores."""
    if len(values) > VALUES_MAX:
        return _NOTHING  # some may be there many times, but to find that out takes long
    scalars: dict[Any, Scalar] = {}
    is_whole = True
    for value in values:
        if value is UNDEFINED or value != value:
            continue
        if is_number(value):
            value = normal(value)
            is_whole = is_whole and _is_told_apart(value)
            if not math.isfinite(value):
                return _NOTHING
        elif isinstance(value, str):
            if not _is_text(value):
                return _NOTHING
        elif value is not None and not isinstance(value, bool):
            return _NOTHING
        scalars[hash_key(value)] = value
    if not scalars:
        return _NOTHING
    return Pushdown((Predicate(path, one_of=tuple(scalars.values()), element=element),), is_whole)


def _is_told_apart(number: int | float) -> bool:
    """Whether no integer of an item has the same double as the number without being equal to it."""
    return not EXACT_INT <= abs(number) <= _INTEGERS_END


def _safe(text: str) -> str:
    """The characters before the first one whose order differs between the language and stores."""
    for position, char in enumerate(text):
        if char >= _FIRST_UNSAFE:
            return text[:position]
    return text


def _successor(text: str) -> str | None:
    """The least string above everything that starts with a safe text, None when there is none like it."""
    text = text.rstrip(_LAST_SAFE)
    return text[:-1] + chr(ord(text[-1]) + 1) if text else None


def _above(path: tuple[str, ...], text: str, inclusive: bool) -> Pushdown:
    safe = _safe(text)
    is_exact = len(safe) == len(text)
    return Pushdown((Predicate(path, low=Bound(safe, inclusive or not is_exact)),), is_exact)


def _below(path: tuple[str, ...], text: str, inclusive: bool) -> Pushdown:
    safe = _safe(text)
    if len(safe) == len(text):
        return Pushdown((Predicate(path, high=Bound(text, inclusive)),), True)
    end = _successor(safe)
    return _NOTHING if end is None else Pushdown((Predicate(path, high=Bound(end, False)),))


def _prefixed(path: tuple[str, ...], prefix: str) -> Pushdown:
    """A string that starts with the prefix."""
    safe = _safe(prefix)
    if prefix and not safe:
        return _NOTHING
    end = _successor(safe)
    high = None if end is None else Bound(end, False)
    is_exact = len(safe) == len(prefix) and not safe.endswith(_LAST_SAFE)
    return Pushdown((Predicate(path, low=Bound(safe, True), high=high),), is_exact)
