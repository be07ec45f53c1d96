"""What an expression demands of the paths in it to have a value of some types.

``c.a = 1`` is true only where ``c.a`` is a number and ``c`` an object; ``c.a.b`` has a value only where ``c.a`` is an
object. Together they cannot be. Demands are necessary, never sufficient: a value that is there meets all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from pleiad.query import plan
from pleiad.query.ast import SubqueryKind
from pleiad.query.kinds import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    COMPARABLE,
    FALSE,
    MISSING,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TEXT_PAIRS,
    TRUE,
    Path,
    first_argument,
    kind_of_value,
    kinds,
    path_of,
)
from pleiad.query.pace import in_turns

DEFINED: Final = ANYTHING & ~MISSING
Demands = dict[Path, int]
"""The types that a path may have, by path; a path that is not there may have any."""

_TESTS: Final = {
    "IS_ARRAY": ARRAY,
    "IS_BOOL": BOOLEAN,
    "IS_BOOLEAN": BOOLEAN,
    "IS_DEFINED": DEFINED,
    "IS_FINITE_NUMBER": NUMBER,
    "IS_INTEGER": NUMBER,
    "IS_NULL": NULL,
    "IS_NUMBER": NUMBER,
    "IS_OBJECT": OBJECT,
    "IS_PRIMITIVE": COMPARABLE,
    "IS_STRING": STRING,
}


def both(parts: Iterable[Demands | None]) -> Demands | None:
    """The demands of all parts together; None when they cannot all be met."""
    found: Demands = {}
    for part in parts:
        if part is None:
            return None
        for path, mask in part.items():
            found[path] = found.get(path, ANYTHING) & mask
            if not found[path]:
                return None
    return found


def either(parts: Iterable[Demands | None]) -> Demands | None:
    """What is demanded whichever of the parts holds; None when none can."""
    found: Demands | None = None
    for part in parts:
        if part is None:
            continue
        if found is None:
            found = dict(part)
        else:
            found = {path: mask | part[path] for path, mask in found.items() if path in part}
    return found


class Reader:
    """Reads folded expressions; ``items`` are the slots of items."""

    def __init__(self, items: Collection[int]) -> None:
        self._items = items

    def of(self, node: plan.Expression, mask: int) -> Demands | None:
        """What is demanded for the expression to have one of the types; None when it cannot."""
        if mask & MISSING or not mask:
            return {} if mask else None
        path = path_of(node)
        if path is not None:
            return self._path(path, mask)
        match node:
            case plan.Constant(value=value):
                return {} if kind_of_value(value) & mask else None
            case plan.Unary(operator="NOT", operand=operand):
                turned = (TRUE if mask & FALSE else 0) | (FALSE if mask & TRUE else 0)
                return self.of(operand, turned)
            case plan.Unary(operand=operand):
                return self.of(operand, NUMBER)
            case plan.Binary(operator=operator, left=left, right=right):
                return self._binary(operator, left, right, mask)
            case plan.Chain(operator=operator, operands=operands):
                return self._chain(operator, operands, mask)
            case plan.In(needle=needle, items=items):
                if mask & FALSE:
                    return self.of(needle, DEFINED)
                return either(self._equal(needle, item) for item in in_turns(items))
            case plan.Between(value=value, low=low, high=high) if mask & BOOLEAN == TRUE:
                return both((self._compared(value, low), self._compared(value, high)))
            case plan.Like(value=value, pattern=pattern):
                return both((self.of(value, STRING), self.of(pattern, STRING)))
            case plan.Call(function=function, arguments=arguments):
                return self._call(function.name, node, arguments, mask)
            case plan.Subquery(kind=SubqueryKind.EXISTS, block=block) if not mask & FALSE:
                if block.is_grouped or block.where is None:
                    return {}
                return self.of(block.where, TRUE)
        return {}

    def _path(self, path: Path, mask: int) -> Demands:
        found = {path: mask}
        for length in range(1, len(path)):
            found[path[:length]] = OBJECT if isinstance(path[length], str) else ARRAY
        return found

    def _kinds(self, node: plan.Expression) -> int:
        return kinds(node, self._items)

    def _equal(self, left: plan.Expression, right: plan.Expression) -> Demands | None:
        common = self._kinds(left) & self._kinds(right) & DEFINED
        return both((self.of(left, common), self.of(right, common)))

    def _compared(self, left: plan.Expression, right: plan.Expression) -> Demands | None:
        one, two = self._kinds(left), self._kinds(right)
        common = one & two & COMPARABLE & ~BOOLEAN
        if one & BOOLEAN and two & BOOLEAN:
            common |= BOOLEAN
        return both((self.of(left, common), self.of(right, common)))

    def _binary(
        self, operator: str, left: plan.Expression, right: plan.Expression, mask: int
    ) -> Demands | None:
        if operator == "??":
            if self._kinds(right) & mask:
                return {}
            return self.of(left, mask)
        if operator in ("=", "!="):
            if mask & BOOLEAN == (TRUE if operator == "=" else FALSE):
                return self._equal(left, right)
            return both((self.of(left, DEFINED), self.of(right, DEFINED)))
        if operator in ("<", "<=", ">", ">="):
            return self._compared(left, right)
        return both((self.of(left, NUMBER), self.of(right, NUMBER)))

    def _chain(self, operator: str, operands: tuple[plan.Expression, ...], mask: int) -> Demands | None:
        if operator == "||":
            return both(self.of(each, STRING) for each in in_turns(operands))
        decisive, other = (FALSE, TRUE) if operator == "AND" else (TRUE, FALSE)
        parts: list[Demands | None] = []
        if mask & decisive:
            parts.append(either(self.of(each, decisive) for each in in_turns(operands)))
        if mask & other:
            parts.append(both(self.of(each, other) for each in in_turns(operands)))
        return either(parts)

    def _call(
        self, name: str, node: plan.Call, arguments: tuple[plan.Expression, ...], mask: int
    ) -> Demands | None:
        if name in _TESTS:
            return self.of(arguments[0], _TESTS[name]) if mask & BOOLEAN == TRUE else {}
        if name in TEXT_PAIRS:
            return both(self.of(each, STRING) for each in arguments[:2])
        wanted = first_argument(node.function)
        return self.of(arguments[0], wanted) if wanted is not None and arguments else {}


def meets(known: Mapping[Path, int], wanted: Demands | None) -> bool:
    """Whether what is known of the paths leaves room for demands."""
    return wanted is not None and all(known.get(path, ANYTHING) & mask for path, mask in wanted.items())
