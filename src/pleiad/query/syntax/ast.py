"""The syntax tree: what the text says, before any name is resolved.

Every expression knows its place in the text as 0-based offsets ``start`` and ``end``; a node made by a
rewrite has the place 0, 0. Chains of AND, OR and ``||`` are one node with many operands, so that a long
chain is not a deep tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from pleiad.query.pace import worked

_NODE_STEPS = 4

Place = tuple[int, int]
"""0-based offsets of the first character and behind the last one."""


class SubqueryKind(Enum):
    """The word in front of a subquery in an expression; ALL is read as NOT EXISTS of the opposite filter."""

    SCALAR = ""
    EXISTS = "EXISTS"
    ARRAY = "ARRAY"
    FIRST = "FIRST"
    LAST = "LAST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node with its place in the text."""

    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, string, true, false, null or undefined."""

    value: Any


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """``@name``; the name keeps its ``@``."""

    name: str


@dataclass(frozen=True, slots=True)
class Identifier(Node):
    """A bare name."""

    name: str


@dataclass(frozen=True, slots=True)
class Property(Node):
    """``target.name`` or ``target["name"]``; ``name_start`` is where the name begins in the text."""

    target: Expression
    name: str
    bracket: bool = False
    name_start: int = 0

    @property
    def target_name(self) -> str | None:
        """The name of a target that is a bare name."""
        return self.target.name if isinstance(self.target, Identifier) else None


@dataclass(frozen=True, slots=True)
class Element(Node):
    """``target[index]`` where the index is anything but a string literal."""

    target: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """A prefix operator: ``+ - ~ NOT``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A two-sided operator, ``??`` included."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """Two or more operands joined by ``AND``, ``OR`` or ``||``."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """``test ? then : otherwise``."""

    test: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class In(Node):
    """``needle [NOT] IN (items)``."""

    needle: Expression
    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``value [NOT] BETWEEN low AND high``."""

    value: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Like(Node):
    """``value [NOT] LIKE pattern [ESCAPE escape]``."""

    value: Expression
    pattern: Expression
    escape: str | None
    negated: bool
    escape_place: Place = (0, 0)


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Node):
    """``[a, b]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectLiteral(Node):
    """``{name: value}``; ``name_places`` are the places of the names in the text."""

    properties: tuple[tuple[str, Expression], ...]
    name_places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """``NAME(arguments)`` or ``udf.name(arguments)``; ``name_end`` is where the name ends in the text."""

    name: str
    arguments: tuple[Expression, ...]
    is_udf: bool = False
    name_end: int = 0


@dataclass(frozen=True, slots=True)
class Subquery(Node):
    """A query in parentheses used as a value."""

    kind: SubqueryKind
    query: Query


@dataclass(frozen=True, slots=True)
class Let(Node):
    """``(LET name = value IN body)``."""

    name: str
    value: Expression
    body: Expression
    name_place: Place = (0, 0)


@dataclass(frozen=True, slots=True)
class Placeholder(Node):
    """Text with a name in braces that a client replaces before it sends a rewritten query."""

    text: str


Expression = (
    Literal
    | Parameter
    | Identifier
    | Property
    | Element
    | Unary
    | Binary
    | Chain
    | Conditional
    | In
    | Between
    | Like
    | ArrayLiteral
    | ObjectLiteral
    | FunctionCall
    | Subquery
    | Let
    | Placeholder
)


@dataclass(frozen=True, slots=True)
class SelectStar(Node):
    """``SELECT *``."""


@dataclass(frozen=True, slots=True)
class SelectValue(Node):
    """``SELECT VALUE expression``."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """One item of a select list."""

    expression: Expression
    alias: str | None = None
    alias_place: Place | None = None


@dataclass(frozen=True, slots=True)
class SelectList(Node):
    """``SELECT a, b AS c``."""

    items: tuple[SelectItem, ...]


Selection = SelectStar | SelectValue | SelectList


@dataclass(frozen=True, slots=True)
class Source(Node):
    """One member of FROM: a path or a subquery, iterated (``alias IN …``) or not.

    ``collection`` is an expression whose innermost target is an Identifier, or a Query.
    """

    collection: Expression | Query
    alias: str | None
    iterates: bool
    alias_place: Place | None = None


@dataclass(frozen=True, slots=True)
class SortItem(Node):
    """One key of ORDER BY; the direction is ``ASC``, ``DESC`` or None when it is not written."""

    expression: Expression
    direction: str | None = None


Count = Literal | Parameter


@dataclass(frozen=True, slots=True)
class Query(Node):
    """One SELECT statement, also as a subquery."""

    selection: Selection
    distinct: bool = False
    top: Count | None = None
    sources: tuple[Source, ...] = ()
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    order_by: tuple[SortItem, ...] = ()
    is_rank: bool = False
    offset: Count | None = None
    limit: Count | None = None
    top_place: Place = (0, 0)
    group_place: Place = (0, 0)
    order_place: Place = (0, 0)
    cut_place: Place = (0, 0)
    """where the clauses TOP, GROUP BY, ORDER BY and OFFSET LIMIT stand in the text"""


def children(node: Expression | Query | Source | Selection | SortItem) -> list[Any]:
    """The nodes directly below a node."""
    worked(_NODE_STEPS)
    match node:
        case Property(target=target):
            return [target]
        case Element(target=target, index=index):
            return [target, index]
        case Unary(operand=operand):
            return [operand]
        case Binary(left=left, right=right):
            return [left, right]
        case Chain(operands=operands):
            return list(operands)
        case Conditional(test=test, then=then, otherwise=otherwise):
            return [test, then, otherwise]
        case In(needle=needle, items=items):
            return [needle, *items]
        case Between(value=value, low=low, high=high):
            return [value, low, high]
        case Like(value=value, pattern=pattern):
            return [value, pattern]
        case ArrayLiteral(items=items):
            return list(items)
        case ObjectLiteral(properties=properties):
            return [value for _, value in properties]
        case FunctionCall(arguments=arguments):
            return list(arguments)
        case Subquery(query=query):
            return [query]
        case Let(value=value, body=body):
            return [value, body]
        case SelectValue(expression=expression) | SelectItem(expression=expression):
            return [expression]
        case SelectList(items=select_items):
            return list(select_items)
        case Source(collection=collection):
            return [collection]
        case SortItem(expression=expression):
            return [expression]
        case Query():
            parts: list[Any] = [node.selection, *node.sources, *node.group_by, *node.order_by]
            if node.where is not None:
                parts.append(node.where)
            return parts
    return []


def depth(root: Expression | Query) -> int:
    """The number of levels of the tree, found without recursion."""
    deepest = 0
    stack: list[tuple[Any, int]] = [(root, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(node))
    return deepest
