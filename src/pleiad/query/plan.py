"""The bound plan: a query whose names are resolved to slots and whose functions are looked up.

A slot is one alias of one block, numbered over the whole query. A block is one SELECT with its sources; a
subquery is a block inside an expression or a source. In a block with aggregates or GROUP BY, the
selection and the sort keys speak only of group keys (GroupKey) and aggregate results (AggregateResult).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from pleiad.query.functions.registry import Function
from pleiad.query.pace import worked
from pleiad.query.syntax.ast import SubqueryKind

_NODE_STEPS = 8


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known when the text is compiled."""

    value: Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value given at execution."""

    name: str


@dataclass(frozen=True, slots=True)
class Slot:
    """The value of an alias."""

    index: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The value of a GROUP BY expression in its group; ``scope`` is the number of the block that has the groups."""

    index: int
    scope: int = 0


class AggregateKind(Enum):
    """The aggregate functions, with the names the plan endpoint gives them."""

    COUNT = "Count"
    SUM = "Sum"
    AVG = "Average"
    MIN = "Min"
    MAX = "Max"
    COUNTIF = "CountIf"
    MAKELIST = "MakeList"
    MAKESET = "MakeSet"


@dataclass(frozen=True, slots=True)
class AggregateResult:
    """The value of an aggregate over the group."""

    index: int
    scope: int
    kind: AggregateKind


@dataclass(frozen=True, slots=True)
class Member:
    """``target[key]``: a property or an array element."""

    target: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    """A prefix operator."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """A two-sided operator."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Chain:
    """AND, OR or ``||`` over many operands."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """``test ? then : otherwise``."""

    test: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class In:
    """Membership in a list."""

    needle: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """Within two bounds, both included."""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Like:
    """Matches a pattern."""

    value: Expression
    pattern: Expression
    escape: str | None


@dataclass(frozen=True, slots=True)
class MakeArray:
    """An array of what is defined."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MakeObject:
    """An object of what is defined."""

    properties: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function."""

    function: Function
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class UdfCall:
    """A user-defined function, looked up in the context by name."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Subquery:
    """A block used as a value."""

    kind: SubqueryKind
    block: Block


@dataclass(frozen=True, slots=True)
class Let:
    """A value under a slot of its own, while the body is evaluated."""

    slot: int
    value: Expression
    body: Expression


Expression = (
    Constant
    | Parameter
    | Slot
    | GroupKey
    | AggregateResult
    | Member
    | Unary
    | Binary
    | Chain
    | Conditional
    | In
    | Between
    | Like
    | MakeArray
    | MakeObject
    | Call
    | UdfCall
    | Subquery
    | Let
)


class SourceKind(Enum):
    """Where the values of an alias come from."""

    ITEMS = "items"
    """the items of the container"""
    VALUE = "value"
    """one value of an expression, when it is defined"""
    ELEMENTS = "elements"
    """the elements of an expression that is an array"""
    ROWS = "rows"
    """the rows of a block"""
    ROW_ELEMENTS = "row elements"
    """the elements of the rows of a block that are arrays"""


@dataclass(frozen=True, slots=True)
class Source:
    """One alias of a block, with the expression or block its values come from."""

    slot: int
    kind: SourceKind
    expression: Expression | None = None
    block: Block | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over an argument evaluated for each row."""

    kind: AggregateKind
    argument: Expression


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of ORDER BY."""

    expression: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class RankComponent:
    """One score of ORDER BY RANK: full-text terms over a text, or the distance of two vectors."""

    is_full_text: bool
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """ORDER BY RANK: the components and, for RRF and COMBINEDSCORE, their weights."""

    components: tuple[RankComponent, ...]
    weights: tuple[float, ...] | None
    weights_parameter: Parameter | None = None
    fusion: str = "RRF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One SELECT; a select list is bound as one object, ``SELECT *`` as the slot of its only source."""

    sources: tuple[Source, ...] = ()
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    is_grouped: bool = False
    selection: Expression
    is_value: bool = False
    is_star: bool = False
    distinct: bool = False
    order_by: tuple[SortKey, ...] = ()
    rank: Rank | None = None
    top: int | Parameter | None = None
    offset: int | Parameter | None = None
    limit: int | Parameter | None = None
    scope: int = 0
    """the number of the block, by which its group keys and aggregates are told from those around it"""
    is_from_path: bool = False
    """whether FROM is one path into the item, so that the item is a source of its own that no name has"""

    @property
    def reads_items(self) -> bool:
        """Whether the block ranges over the container's items, itself or in its first source."""
        if not self.sources:
            return False
        first = self.sources[0]
        return first.kind is SourceKind.ITEMS or (first.block is not None and first.block.reads_items)

    @property
    def is_per_item(self) -> bool:
        """Whether its rows are the union of the rows of each item alone."""
        if not self.sources:
            return False
        first = self.sources[0]
        if first.block is not None and first.block.reads_items:
            return first.block.is_per_item and not first.block.is_grouped and not first.block.distinct
        return True


@dataclass(frozen=True, slots=True)
class ParameterRule:
    """What the value of a parameter must be where it stands, by the row of the error that is told otherwise."""

    row: str
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The bound plan of one text."""

    block: Block
    slot_count: int
    root_slots: frozenset[int]
    parameters: tuple[str, ...]
    udfs: tuple[str, ...]
    parameter_rules: tuple[ParameterRule, ...] = ()


def walk(node: Any) -> Iterator[Any]:
    """Every plan node at or below a node, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(current)
        elif type(current).__module__ == __name__ and not isinstance(current, Enum):
            worked(_NODE_STEPS)
            yield current
            stack.extend(getattr(current, each.name) for each in fields(current))
