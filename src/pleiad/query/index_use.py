"""Index metrics: which indexes of the policy a query uses, and which ones it could use if they were there.

Single indexes: every path that the filter, the first sort key, MIN, MAX, COUNT or SUM asks for in a form that an
ordered index can serve. It is utilized when the policy indexes the path, otherwise it is potential. An OR
is served only when each of its branches is. Of the forms only some narrow the index precisely (equality,
ranges, prefixes); CONTAINS and its like read all values of the path, so their impact is low.

Composite indexes: equalities with one range suggest the equal paths followed by the range's, once for
each range; GROUP BY over equal paths suggests those paths. Equalities alone and ranges alone suggest
nothing. A composite index of the policy is utilized when it is a suggested one, when the filter has
equalities for its leading paths and any comparison for its last, when SUM or AVG is over its last path,
or when ORDER BY has its paths.

What is reported depends on the text and the policy alone. Limit: ENTRIES_MAX entries in each list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from pleiad.index.policy import ELEMENT, Composite, IndexingPolicy, Steps
from pleiad.query import plan
from pleiad.query.like import like_parts
from pleiad.query.order_rules import SortPath, matching_composite, sort_paths
from pleiad.query.paths.places import IsIndexed, Places, item_block, path_text, policy_paths
from pleiad.query.syntax.ast import SubqueryKind

ENTRIES_MAX: Final = 32
_COMPOSITE_PATHS_MAX: Final = 8

_CONSTANT_CLOCKS: Final = frozenset(
    ("GETCURRENTDATETIMESTATIC", "GETCURRENTTICKSSTATIC", "GETCURRENTTIMESTAMPSTATIC")
)
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_NUMBER_FUNCTIONS: Final = frozenset(("ABS", "CEILING", "FLOOR", "ROUND", "TRUNC"))
_TEXT_FUNCTIONS: Final = frozenset(("STARTSWITH", "STRINGEQUALS", "CONTAINS", "ENDSWITH", "REGEXMATCH"))
_ARRAY_FUNCTIONS: Final = frozenset(("ARRAY_CONTAINS", "ARRAY_CONTAINS_ANY", "ARRAY_CONTAINS_ALL"))
_TYPE_FAMILY_PREFIX: Final = "IS_"
_SUMS: Final = (plan.AggregateKind.SUM, plan.AggregateKind.AVG)
_INDEX_AGGREGATES: Final = (
    plan.AggregateKind.MIN,
    plan.AggregateKind.MAX,
    plan.AggregateKind.COUNT,
    plan.AggregateKind.SUM,
)


@dataclass(frozen=True, slots=True)
class SingleIndex:
    """The index of one path."""

    spec: str
    is_precise: bool = True

    @property
    def impact(self) -> str:
        return "High" if self.is_precise else "Low"


@dataclass(frozen=True, slots=True)
class CompositeIndex:
    """An index of several paths, each with its direction."""

    specs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexUse:
    """The four lists of index metrics."""

    utilized_single: tuple[SingleIndex, ...] = ()
    potential_single: tuple[SingleIndex, ...] = ()
    utilized_composite: tuple[CompositeIndex, ...] = ()
    potential_composite: tuple[CompositeIndex, ...] = ()


# -- what a query asks for -----------------------------------------------------------------------


class _Kind(Enum):
    """How a filter asks for a path, as far as composite indexes care."""

    EQUAL = "equal"
    RANGE = "range"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Use:
    """One path that a filter asks for."""

    place: Steps
    kind: _Kind
    is_precise: bool = True


@dataclass(slots=True)
class _Found:
    """What an expression asks for when it has to be true."""

    uses: list[_Use] = field(default_factory=list)
    is_served: bool = False
    conjunction: list[_Use] = field(default_factory=list)
    branches: list[list[_Use]] = field(default_factory=list)


def index_use(
    bound: plan.Plan,
    parameters: Mapping[str, Any],
    policy: IndexingPolicy,
    computed: Collection[str] = (),
    key_paths: Sequence[tuple[str, ...]] = (),
) -> IndexUse:
    """The index metrics of a query.

    ``key_paths`` are the partition key paths that the request gives values for; they count as filtered.
    """
    block = item_block(bound)
    places = Places(parameters, block.sources)
    is_indexed = policy_paths(policy, computed)
    reader = _Reader(places, is_indexed)
    found = _Found() if block.where is None else reader.when_true(block.where)
    order = sort_paths(block, places) if block is bound.block else []
    uses = [
        *found.uses,
        *reader.selected(block),
        *(_Use(path, _Kind.EQUAL) for path in key_paths),
    ]
    composites = _Composites(policy)
    if order and not composites.add_order(order):
        uses.insert(len(uses) - len(key_paths), _Use(order[0][0], _Kind.OTHER))
    for conjunction in (found.conjunction, *found.branches):
        composites.add_filter(conjunction, block, places)
    return IndexUse(
        _singles(use for use in uses if is_indexed(use.place)),
        _singles(use for use in uses if not is_indexed(use.place)),
        _composites(composites.utilized),
        _composites(composites.potential),
    )


def _singles(uses: Iterable[_Use]) -> tuple[SingleIndex, ...]:
    """The indexes of the paths, each once, the last one asked for first; precise when one use is."""
    precise: dict[str, bool] = {}
    for use in uses:
        spec = path_text(use.place) + "/?"
        precise[spec] = precise.get(spec, False) or use.is_precise
    return tuple(SingleIndex(spec, is_precise) for spec, is_precise in reversed(precise.items()))[
        :ENTRIES_MAX
    ]


def _composites(found: Iterable[Composite]) -> tuple[CompositeIndex, ...]:
    indexes = [
        CompositeIndex(tuple(f"{path_text(steps)} {'ASC' if up else 'DESC'}" for steps, up in composite))
        for composite in found
    ]
    return tuple(indexes[:ENTRIES_MAX])


class _Reader:
    """Finds the paths that a filter asks for."""

    def __init__(self, places: Places, is_indexed: IsIndexed) -> None:
        self._places = places
        self._is_indexed = is_indexed

    def when_true(self, node: plan.Expression, wanted: bool = True) -> _Found:
        """What the expression asks for when it has to be true, or, not wanted, false."""
        match node:
            case plan.Unary(operator="NOT", operand=operand):
                return self.when_true(operand, not wanted)
            case plan.Chain(operator="AND" | "OR" as operator, operands=operands):
                parts = [self.when_true(operand, wanted) for operand in operands]
                return _all(parts) if (operator == "AND") is wanted else self._any(parts)
            case plan.Subquery(kind=SubqueryKind.EXISTS, block=block) if wanted and block.where is not None:
                self._places.add(block.sources)
                return self.when_true(block.where)
        use = self._use(node, wanted)
        if use is None:
            return _Found()
        return _Found([use], self._is_indexed(use.place), [use])

    def _any(self, parts: list[_Found]) -> _Found:
        is_served = all(part.is_served for part in parts)
        uses = [use for part in parts for use in part.uses if is_served or not self._is_indexed(use.place)]
        branches = [branch for part in parts for branch in (part.conjunction, *part.branches)]
        return _Found(uses, is_served, [], branches)

    def selected(self, block: plan.Block) -> list[_Use]:
        """What the select list asks for: prefixes, and the aggregates that an index can answer."""
        uses: list[_Use] = []
        for node in plan.walk(block.selection):
            if isinstance(node, plan.Call) and node.function.name == "STARTSWITH":
                use = self._use(node, True)
                uses.extend([] if use is None else [use])
        for aggregate in block.aggregates:
            place = self._places.of(aggregate.argument)
            if place and aggregate.kind in _INDEX_AGGREGATES:
                uses.append(_Use(place, _Kind.OTHER))
        return uses

    def _use(self, node: plan.Expression, wanted: bool) -> _Use | None:
        """The path that one comparison or call asks for, None when no ordered index serves it."""
        match node:
            case plan.Member() | plan.Slot():
                return self._of(node, _Kind.EQUAL)
            case plan.Binary(operator=operator, left=left, right=right) if operator in _COMPARISONS:
                if not self._is_fixed(right):
                    left, right = right, left
                return self._compared(left, right, _Kind.EQUAL if operator == _equal(wanted) else _Kind.RANGE)
            case plan.Between(value=value, low=low, high=high):
                is_fixed = self._is_fixed(low) and self._is_fixed(high)
                return self._of(value, _Kind.RANGE) if is_fixed else None
            case plan.In(needle=needle, items=items):
                return self._of(needle, _Kind.OTHER) if all(map(self._is_fixed, items)) else None
            case plan.Like(value=value, pattern=pattern, escape=escape):
                constant = self._places.constant(pattern)
                text = None if constant is None else constant[0]
                starts_literally = isinstance(text, str) and bool(like_parts(text, escape)[0])
                return self._of(value, _Kind.OTHER, starts_literally)
            case plan.Call(arguments=arguments) if arguments:
                return self._called(node)
        return None

    def _compared(self, left: plan.Expression, right: plan.Expression, kind: _Kind) -> _Use | None:
        if not self._is_fixed(right):
            return None
        if isinstance(left, plan.Call) and left.function.name in _NUMBER_FUNCTIONS:
            return self._of(left.arguments[0], _Kind.OTHER, False)
        return self._of(left, kind)

    def _called(self, node: plan.Call) -> _Use | None:
        name, arguments = node.function.name, node.arguments
        if not all(map(self._is_fixed, arguments[1:])):
            is_listed = name == "ARRAY_CONTAINS" and self._is_fixed(arguments[0])
            return self._of(arguments[1], _Kind.OTHER) if is_listed else None
        if name in _ARRAY_FUNCTIONS:
            place = self._places.of(arguments[0])
            return None if place is None else _Use((*place, ELEMENT), _Kind.OTHER)
        if name.startswith(_TYPE_FAMILY_PREFIX):
            return self._of(arguments[0], _Kind.OTHER)
        if name not in _TEXT_FUNCTIONS:
            return None
        flag = self._places.constant(arguments[2]) if len(arguments) == 3 else (False,)
        is_exact = flag is not None and flag[0] is False
        if name == "STRINGEQUALS" and is_exact:
            return self._of(arguments[0], _Kind.EQUAL)
        return self._of(arguments[0], _Kind.OTHER, name in ("STARTSWITH", "STRINGEQUALS") and is_exact)

    def _of(self, node: plan.Expression, kind: _Kind, is_precise: bool = True) -> _Use | None:
        place = self._places.of(node)
        return _Use(place, kind, is_precise) if place else None

    def _is_fixed(self, node: plan.Expression) -> bool:
        """Whether the expression has one value for the whole query."""
        if isinstance(node, plan.Constant | plan.Parameter):
            return True
        for part in plan.walk(node):
            if isinstance(part, plan.Slot | plan.UdfCall | plan.Subquery):
                return False
            if isinstance(part, plan.Call):
                function = part.function
                if not function.deterministic and function.name not in _CONSTANT_CLOCKS:
                    return False
        return True


def _equal(wanted: bool) -> str:
    return "=" if wanted else "!="


def _all(parts: list[_Found]) -> _Found:
    return _Found(
        [use for part in parts for use in part.uses],
        any(part.is_served for part in parts),
        [use for part in parts for use in part.conjunction],
        [branch for part in parts for branch in part.branches],
    )


class _Composites:
    """Gathers the composite indexes of a query: those of the policy that serve it, and those that would."""

    def __init__(self, policy: IndexingPolicy) -> None:
        self._policy = policy
        self._known = policy.composites if policy.mode != "none" else ()
        self.utilized: dict[Composite, None] = {}
        self.potential: dict[Composite, None] = {}

    def add_order(self, order: Sequence[SortPath]) -> bool:
        """ORDER BY of several paths; False when no composite index serves it, so that it begins with a single one."""
        found = matching_composite(order, self._policy) if len(order) > 1 else None
        if found is not None:
            self.utilized.setdefault(found)
        return found is not None

    def add_filter(self, uses: list[_Use], block: plan.Block, places: Places) -> None:
        """One conjunction of the filter, with the groups and sums of the block it filters."""
        equal = dict.fromkeys(use.place for use in uses if use.kind is _Kind.EQUAL)
        ranged = dict.fromkeys(
            use.place for use in uses if use.kind is _Kind.RANGE and use.place not in equal
        )
        if not equal or len(self.potential) >= ENTRIES_MAX:
            return
        self._add_known(equal, ranged, _summed(block, places))
        for last in ranged:
            self._suggest((*equal, last), is_last_fixed=True)
        groups = [places.of(key) for key in block.group_by]
        if len(groups) > 1 and all(group in equal for group in groups):
            self._suggest(
                tuple(dict.fromkeys(group for group in groups if group is not None)), is_last_fixed=False
            )

    def _add_known(
        self, equal: Collection[Steps], ranged: Collection[Steps], sums: Collection[Steps]
    ) -> None:
        for composite in self._known:
            *leading, last = (steps for steps, _ in composite)
            if not all(steps in equal for steps in leading):
                continue
            serves_sum = last in sums and all(steps == last for steps in ranged)
            if last in equal or last in ranged or serves_sum:
                self.utilized.setdefault(composite)

    def _suggest(self, paths: tuple[Steps, ...], is_last_fixed: bool) -> None:
        """A composite index of these paths; all but a fixed last one may come in any sequence."""
        has_elements = any(isinstance(step, int) for steps in paths for step in steps)
        if not 2 <= len(paths) <= _COMPOSITE_PATHS_MAX or has_elements:
            return
        for composite in self._known:
            steps = [each for each, _ in composite]
            is_same_set = len(steps) == len(paths) and set(steps) == set(paths)
            if is_same_set and (not is_last_fixed or steps[-1] == paths[-1]):
                self.utilized.setdefault(composite)
                return
        self.potential.setdefault(tuple((steps, True) for steps in paths))


def _summed(block: plan.Block, places: Places) -> list[Steps]:
    """The paths that SUM and AVG are over."""
    found = [places.of(each.argument) for each in block.aggregates if each.kind in _SUMS]
    return [place for place in found if place]
