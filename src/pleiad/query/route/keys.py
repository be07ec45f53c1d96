"""Which partition key values a filter can be true for.

The answer is a superset: every item that the query returns has one of the keys. It is found from the folded filter:
equalities, IN lists, OR and AND of them, ranges that leave one value, types that can never be true, and the functions
that can be turned round exactly. Sums are not turned round: two doubles can have the same sum with a third. What is
found is then tried against the whole filter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeGuard

from pleiad.query import plan
from pleiad.query.fold import Folder
from pleiad.query.like import can_match, literal_of
from pleiad.query.pace import STEPS_OF_A_LOOK, in_turns, worked
from pleiad.query.paths.places import item_block
from pleiad.query.route import demands
from pleiad.query.route.contradiction import is_contradiction
from pleiad.query.route.filters import filters_of
from pleiad.query.route.inverses import casings, sources_of
from pleiad.query.route.kinds import kind_of_value, kinds
from pleiad.query.route.signatures import ANYTHING, ARRAY, BOOLEAN, FALSE, MISSING, OBJECT, TESTS, TRUE
from pleiad.query.syntax.ast import SubqueryKind
from pleiad.query.values import div3, eq3, ge3, gt3, hash_key, is_number, le3, lt3, mul3, neg3
from pleiad.values.undefined import UNDEFINED

KEYS_MAX: Final = 20_000
_BOXES_MAX: Final = 2_000
_CHECKED_MAX: Final = 64
"""So many keys are each tried against the whole filter."""
_TRIED_CALLS: Final = frozenset(
    (
        *("ABS", "CEILING", "DEGREES", "FLOOR", "NUMBERBIN", "RADIANS", "ROUND", "SIGN", "TRUNC"),
        *("LEFT", "LOWER", "REVERSE", "STARTSWITH", "STRINGEQUALS", "UPPER"),
        *("ARRAY_CONTAINS", "ARRAY_CONTAINS_ALL", "ARRAY_CONTAINS_ANY"),
        *(name for name in TESTS if name != "IS_INTEGER"),
    )
)
"""The functions that the service computes of a key that is known; what others say of it is left to the partition."""
_CHOICES_MAX: Final = 24
"""So many choices of ORs below ANDs are each looked at by themselves."""
_SCALES: Final = (2.0**-64, 2.0**64)
_EXACT: Final = (2.0**-900, 2.0**900)
"""Where products of doubles with powers of two are exact."""
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {"<": lt3, "<=": le3, ">": gt3, ">=": ge3}
_LOGICAL: Final = (plan.Chain, plan.Unary, plan.Binary, plan.In, plan.Between, plan.Call)

# For each level of the key the values that it may have, by hash key; None when it may have any.
_Levels = tuple[dict[Any, Any] | None, ...]
# The filter can be true only inside one of these; None when nothing is known.
_Boxes = list[_Levels] | None


def key_values(
    bound: plan.Plan,
    parameters: Mapping[str, Any],
    key_paths: Sequence[tuple[str, ...]],
    is_planar: bool | None = None,
) -> list[tuple[Any, ...]] | None:
    """The partition keys, or prefixes of hierarchical ones, that the filter allows; None for all of them.

    ``key_paths`` has the property names of each level. An empty list means that no item can match. Items whose key
    is an array or an object have UNDEFINED in its place.
    """
    block = item_block(bound)
    if not block.reads_items:
        return []
    filters = filters_of(bound, parameters, is_planar)
    where = filters.where
    if filters.demanded is None:
        return []
    if where is None or not key_paths:
        return None
    reader = _Reader(block.sources[0].slot, bound.root_slots, tuple(key_paths))
    boxes = reader.of_rows(where, filters.demanded)
    keys = None if boxes is None else _expand(boxes)
    if not keys or len(keys) > _CHECKED_MAX:
        return keys
    return [key for key in keys if reader.allows(where, key)]


def _expand(boxes: list[_Levels]) -> list[tuple[Any, ...]] | None:
    """The keys of the boxes, each once: for every box the product of its leading known levels."""
    found: dict[Any, tuple[Any, ...]] = {}
    for box in boxes:
        known: list[list[Any]] = []
        for level in box:
            if level is None:
                break
            known.append(list(level.values()))
        if not known:
            return None
        size = 1
        for values in known:
            size *= len(values)
        if size + len(found) > KEYS_MAX:
            return None
        for number, key in enumerate(product(*known)):
            if not number % STEPS_OF_A_LOOK:
                worked(STEPS_OF_A_LOOK)
            found.setdefault(tuple(map(hash_key, key)), key)
    return list(found.values())


class _Reader:
    """Reads a folded filter for one container's key paths."""

    def __init__(
        self, slot: int, item_slots: Collection[int], key_paths: tuple[tuple[str, ...], ...]
    ) -> None:
        self._slot = slot
        self._item_slots = item_slots
        self._key_paths = key_paths
        self._demands = demands.Reader(item_slots)
        self._choices_left = _CHOICES_MAX
        self._found: dict[int, tuple[plan.Expression, _Boxes]] = {}
        self._known: tuple[plan.Expression | None, demands.Demands] = (None, {})

    def of_rows(self, where: plan.Expression, demanded: demands.Demands) -> _Boxes:
        """Where the whole filter can be true, given what rows demand."""
        self._known = (where, demanded)
        return self.of_types(self.when_true(where), demanded)

    def allows(self, where: plan.Expression, key: tuple[Any, ...]) -> bool:
        """Whether the filter can be true for items of a key: not when it folds to something else with its values."""
        if UNDEFINED in key:
            return True

        def known(node: plan.Expression) -> tuple[Any] | None:
            level = self._level(node) if isinstance(node, plan.Member) else None
            return None if level is None or level >= len(key) else (key[level],)

        folded = Folder({}, known, calls=_TRIED_CALLS).fold(where)
        return bool(kinds(folded, self._item_slots) & TRUE)

    def when_true(self, node: plan.Expression) -> _Boxes:
        """Where the expression can be exactly true; what is found is kept, with the node whose id is its key."""
        kept = self._found.get(id(node))
        if kept is None:
            kept = self._found[id(node)] = (node, self._when_true(node))
        return kept[1]

    def _when_true(self, node: plan.Expression) -> _Boxes:
        if not kinds(node, self._item_slots) & TRUE:
            return []
        match node:
            case plan.Constant(value=value):
                return None if value is True else []
            case plan.Chain(operator="AND", operands=operands):
                return self._conjunction(node, operands)
            case plan.Chain(operator="OR", operands=operands):
                return self._any([self.when_true(operand) for operand in in_turns(operands)])
            case plan.Unary(operator="NOT", operand=operand):
                return self._when_false(operand)
            case plan.Binary(operator="=", left=left, right=right):
                return self._equality(left, right)
            case plan.Binary(operator="!=", left=left, right=right) if left == right:
                return []
            case plan.Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                return self._relation(operator, left, right)
            case plan.Between(value=value, low=low, high=high):
                bounds = (plan.Binary(">=", value, low), plan.Binary("<=", value, high))
                return self.when_true(plan.Chain("AND", bounds))
            case plan.In(needle=needle, items=items):
                return self._any([self._equality(needle, item) for item in in_turns(items)])
            case plan.Like(value=value, pattern=pattern, escape=escape):
                text = pattern.value if isinstance(pattern, plan.Constant) else None
                if isinstance(text, str) and not can_match(text, escape):
                    return []
                literal = literal_of(text, escape) if isinstance(text, str) else None
                return None if literal is None else self.one_of(value, [literal])
            case plan.Call():
                return self._call(node)
            case plan.Member() | plan.Conditional() | plan.Binary(operator="??"):
                return self.one_of(node, [True])
            case plan.Subquery(kind=SubqueryKind.EXISTS, block=block) if block.where is not None:
                return None if block.is_grouped and not block.group_by else self.when_true(block.where)
        return None

    def _conjunction(self, node: plan.Expression, operands: tuple[plan.Expression, ...]) -> _Boxes:
        """An AND: with an OR among its operands each choice of that by itself, as long as the choices are few."""
        demanded = self._known[1] if self._known[0] is node else self._demands.of(node, TRUE)
        if demanded is None or is_contradiction(operands):
            return []
        for place, operand in enumerate(operands):
            if not isinstance(operand, plan.Chain) or operand.operator != "OR":
                continue
            if len(operand.operands) > self._choices_left:
                continue
            self._choices_left -= len(operand.operands)
            rest = (*operands[:place], *operands[place + 1 :])
            chosen = [plan.Chain("AND", (*_flat(each), *rest)) for each in operand.operands]
            return self.of_types(self._any([self.when_true(each) for each in chosen]), demanded)
        boxes = self._all([*map(self.when_true, in_turns(operands)), *self._closed_ranges(operands)])
        return self.of_types(boxes, demanded)

    def of_types(self, boxes: _Boxes, demanded: demands.Demands) -> _Boxes:
        """The boxes without the values of types that the key may not have."""
        if boxes is None:
            return None
        masks = [demanded.get((self._slot, *path), ANYTHING) for path in self._key_paths]
        found: list[_Levels] = []
        for box in boxes:
            levels = [
                level if level is None else {key: each for key, each in level.items() if _kind(each) & mask}
                for level, mask in zip(box, masks, strict=True)
            ]
            if all(level is None or level for level in levels):
                found.append(tuple(levels))
        return found

    def _when_false(self, node: plan.Expression) -> _Boxes:
        if not kinds(node, self._item_slots) & FALSE:
            return []
        match node:
            case plan.Constant(value=value):
                return None if value is False else []
            case plan.Unary(operator="NOT", operand=operand):
                return self.when_true(operand)
            case plan.Chain(operator="AND", operands=operands):
                return self._any([self._when_false(operand) for operand in in_turns(operands)])
            case plan.Chain(operator="OR", operands=operands):
                return self._all([self._when_false(operand) for operand in in_turns(operands)])
            case plan.Binary(operator="!=", left=left, right=right):
                return self._equality(left, right)
            case plan.Binary(operator="=", left=left, right=right) if left == right:
                return []
            case plan.Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                return self._relation(_NEGATED[operator], left, right)
            case plan.Member() | plan.Conditional() | plan.Binary(operator="??"):
                return self.one_of(node, [False])
        return None

    # -- conditions ------------------------------------------------------------------------------

    def _call(self, node: plan.Call) -> _Boxes:
        arguments = node.arguments
        first = arguments[0] if arguments else plan.Constant(UNDEFINED)
        match node.function.name:
            case "IS_NULL":
                return self.one_of(first, [None])
            case "IS_BOOL" | "IS_BOOLEAN":
                return self.one_of(first, [False, True])
            case "STRINGEQUALS":
                return self._string_equality(arguments)
            case "ARRAY_CONTAINS" if _is_list(first):
                # What matches in part is an object, and all objects are one key here.
                return self.one_of(arguments[1], first.value)
            case "ARRAY_CONTAINS_ANY" if _is_list(first):
                return self._any([self.one_of(each, first.value) for each in arguments[1:]])
            case "ARRAY_CONTAINS_ALL" if _is_list(first):
                return self._all([self.one_of(each, first.value) for each in arguments[1:]])
        return None

    def _string_equality(self, arguments: tuple[plan.Expression, ...]) -> _Boxes:
        left, right = arguments[0], arguments[1]
        if isinstance(left, plan.Constant):
            left, right = right, left
        if not isinstance(right, plan.Constant) or not isinstance(right.value, str):
            return None
        if len(arguments) == 2:
            return self.one_of(left, [right.value])
        flag = arguments[2].value if isinstance(arguments[2], plan.Constant) else None
        if flag is False:
            return self.one_of(left, [right.value])
        texts = casings(right.value) if flag is True else None
        return None if texts is None else self.one_of(left, texts)

    def _equality(self, left: plan.Expression, right: plan.Expression) -> _Boxes:
        if not isinstance(right, plan.Constant):
            left, right = right, left
        return self.one_of(left, [right.value]) if isinstance(right, plan.Constant) else None

    def _relation(self, operator: str, left: plan.Expression, right: plan.Expression) -> _Boxes:
        """Comparisons that leave few values: with null, with a boolean, with the empty string."""
        if isinstance(left, plan.Constant):
            left, right, operator = right, left, _FLIPPED[operator]
        if not isinstance(right, plan.Constant):
            return [] if left == right and operator in ("<", ">") else None
        if right.value == "" and operator in ("<", "<="):
            return [] if operator == "<" else self.one_of(left, [""])
        if right.value is None:
            return self.one_of(left, [None]) if operator in ("<=", ">=") else []
        if isinstance(right.value, bool):
            compare = _COMPARE[operator]
            return self.one_of(left, [each for each in (False, True) if compare(each, right.value)])
        return None

    def _closed_ranges(self, operands: Sequence[plan.Expression]) -> list[_Boxes]:
        """Two bounds of one expression that leave one value between them."""
        lows: dict[Any, Any] = {}
        highs: dict[Any, Any] = {}
        for node in operands:
            if isinstance(node, plan.Binary) and node.operator in ("<=", ">="):
                left, right, operator = node.left, node.right, node.operator
                if isinstance(left, plan.Constant):
                    left, right, operator = right, left, _FLIPPED[operator]
                level = self._level(left)
                if level is not None and isinstance(right, plan.Constant):
                    (lows if operator == ">=" else highs).setdefault(level, (left, right.value))
        found: list[_Boxes] = []
        for level, (node, value) in lows.items():
            if level in highs and eq3(value, highs[level][1]) is True:
                found.append(self.one_of(node, [value]))
        return found

    # -- values ----------------------------------------------------------------------------------

    def one_of(self, node: plan.Expression, values: Sequence[Any]) -> _Boxes:
        """Boxes for "the expression has one of these values"; None where nothing follows for the key."""
        if not values:
            return []
        match node:
            case plan.Constant(value=value):
                return None if any(eq3(value, each) is True for each in values) else []
            case plan.Member():
                return self._path(node, values)
            case plan.Unary(operator="-", operand=operand):
                return self.one_of(operand, [neg3(each) for each in values if is_number(each)])
            case plan.Binary(operator="??", left=left, right=right):
                return self._any([self.one_of(left, values), self.one_of(right, values)])
            case plan.Binary(operator="*" | "/" as operator, left=left, right=plan.Constant(value=scale)):
                return self._scaled(operator, left, scale, values)
            case plan.Call(function=function, arguments=arguments):
                sources = sources_of(function.name, values)
                if sources is not None:
                    return self.one_of(arguments[0], sources)
            case plan.MakeArray(items=items):
                return self._any([self._elements(items, each) for each in values])
            case plan.MakeObject(properties=properties):
                return self._any([self._members(properties, each) for each in values])
            case plan.Conditional(test=test, then=then, otherwise=otherwise):
                return self._conditional(test, then, otherwise, values)
        return self._truths(node, values)

    def _scaled(self, operator: str, node: plan.Expression, scale: Any, values: Sequence[Any]) -> _Boxes:
        """A product with a power of two, or a quotient by one, is exact, so it has one other factor."""
        if (
            not is_number(scale)
            or abs(math.frexp(scale)[0]) != 0.5
            or not _SCALES[0] <= abs(scale) <= _SCALES[1]
        ):
            return None
        numbers = [each for each in values if is_number(each)]
        if not all(_EXACT[0] <= abs(each) <= _EXACT[1] for each in numbers):
            return None
        turn = div3 if operator == "*" else mul3
        return self.one_of(node, [turn(each, scale) for each in numbers])

    def _truths(self, node: plan.Expression, values: Sequence[Any]) -> _Boxes:
        """An expression that is true or false where it is anything."""
        if kinds(node, self._item_slots) & ~(BOOLEAN | MISSING) or not isinstance(node, _LOGICAL):
            return None
        parts: list[_Boxes] = []
        if any(each is True for each in values):
            parts.append(self.when_true(node))
        if any(each is False for each in values):
            parts.append(self._when_false(node))
        return self._any(parts)

    def _conditional(
        self, test: plan.Expression, then: plan.Expression, otherwise: plan.Expression, values: Sequence[Any]
    ) -> _Boxes:
        held = self._all([self.when_true(test), self.one_of(then, values)])
        return self._any([held, self.one_of(otherwise, values)])

    def _elements(self, items: tuple[plan.Expression, ...], value: Any) -> _Boxes:
        """An array of so many expressions equals one as long only when all of them are defined."""
        if not isinstance(value, list) or len(value) > len(items):
            return []
        if len(value) < len(items):
            return None
        return self._all([self.one_of(item, [part]) for item, part in zip(items, value, strict=True)])

    def _members(self, properties: tuple[tuple[str, plan.Expression], ...], value: Any) -> _Boxes:
        if not isinstance(value, dict) or not value.keys() <= dict(properties).keys():
            return []
        parts = dict(properties)
        return self._all([self.one_of(parts[name], [each]) for name, each in value.items()])

    def _path(self, node: plan.Expression, values: Sequence[Any]) -> _Boxes:
        level = self._level(node)
        if level is None:
            return None
        allowed: dict[Any, Any] = {}
        for number, value in enumerate(values):
            if not number % STEPS_OF_A_LOOK:
                worked(STEPS_OF_A_LOOK)
            if isinstance(value, list | dict):
                allowed[hash_key(UNDEFINED)] = UNDEFINED
            elif isinstance(value, float) and math.isinf(value):
                return None
            elif value is not UNDEFINED and value == value:
                allowed[hash_key(value)] = 0 if is_number(value) and value == 0 else value
        if not allowed:
            return []
        box: list[dict[Any, Any] | None] = [None] * len(self._key_paths)
        box[level] = allowed
        return [tuple(box)]

    def _level(self, node: plan.Expression) -> int | None:
        names: list[str] = []
        while isinstance(node, plan.Member):
            if not isinstance(node.key, plan.Constant) or not isinstance(node.key.value, str):
                return None
            names.append(node.key.value)
            node = node.target
        if not isinstance(node, plan.Slot) or node.index != self._slot:
            return None
        path = tuple(reversed(names))
        return self._key_paths.index(path) if path in self._key_paths else None

    def _any(self, parts: list[_Boxes]) -> _Boxes:
        """The union; boxes that differ only in one level are joined, so that a long OR stays small."""
        merged: dict[Any, list[dict[Any, Any] | None]] = {}
        for part in in_turns(parts):
            if part is None:
                return None
            for box in part:
                known = [number for number, level in enumerate(box) if level is not None]
                joint: Any = known[0] if len(known) == 1 else ("box", len(merged))
                if joint in merged:
                    only = merged[joint][known[0]]
                    if only is not None:
                        only.update(box[known[0]] or {})
                else:
                    merged[joint] = [None if level is None else dict(level) for level in box]
        if len(merged) > _BOXES_MAX:
            return None
        return [tuple(box) for box in merged.values()]

    def _all(self, parts: list[_Boxes]) -> _Boxes:
        """The intersection, or one of the parts where the product would be too large."""
        result: _Boxes = None
        for part in parts:
            if part is None:
                continue
            if result is None:
                result = part
            elif len(result) * len(part) > _BOXES_MAX:
                result = min(result, part, key=len)
            else:
                crossed = [_intersection(one, two) for one in result for two in part]
                result = [box for box in crossed if box is not None]
        return result


def _flat(node: plan.Expression) -> tuple[plan.Expression, ...]:
    """The operands of an AND, or the expression alone."""
    return node.operands if isinstance(node, plan.Chain) and node.operator == "AND" else (node,)


def _kind(value: Any) -> int:
    """The types of a key; arrays and objects are one key, which is written as UNDEFINED."""
    return ARRAY | OBJECT if value is UNDEFINED else kind_of_value(value)


def _is_list(node: plan.Expression) -> TypeGuard[plan.Constant]:
    """Whether a node is a list of values, no longer than keys are told one by one."""
    return isinstance(node, plan.Constant) and isinstance(node.value, list) and len(node.value) <= KEYS_MAX


def _intersection(one: _Levels, two: _Levels) -> _Levels | None:
    levels: list[dict[Any, Any] | None] = []
    for left, right in zip(one, two, strict=True):
        if left is None or right is None:
            levels.append(right if left is None else left)
            continue
        worked(len(left))
        both = {key: value for key, value in left.items() if key in right}
        if not both:
            return None
        levels.append(both)
    return tuple(levels)
