"""What an expression demands of the paths in it to have a value of some types.

``c.a = 1`` is true only where ``c.a`` is a number and ``c`` an object; ``c.a.b`` has a value only where ``c.a`` is an
object. Together they cannot be. Demands are necessary, never sufficient: a value that is there meets all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pleiad.query import plan
from pleiad.query.pace import in_turns
from pleiad.query.route.kinds import Path, kind_of_value, kinds, path_of, written_arguments
from pleiad.query.route.signatures import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    COMPARABLE,
    DEFINED,
    FALSE,
    MISSING,
    NUMBER,
    OBJECT,
    SIGNATURES,
    STRING,
    TESTS,
    TRUE,
    takes_all,
)
from pleiad.query.syntax.ast import SubqueryKind

Demands = dict[Path, int]
"""The types that a path may have, by path; a path that is not there may have any."""


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
                if not all(isinstance(item, plan.Constant) for item in in_turns(items)):
                    return self.of(needle, DEFINED)
                return either(self._equal(needle, item) for item in in_turns(items))
            case plan.Between(value=value, low=low, high=high) if mask & BOOLEAN == TRUE:
                return both((self._compared(value, low), self._compared(value, high)))
            case plan.Like(value=value, pattern=pattern):
                return both((self.of(value, STRING), self.of(pattern, STRING)))
            case plan.Call(function=function):
                return self._call(function.name, written_arguments(node), mask)
            case plan.Subquery(kind=SubqueryKind.EXISTS, block=block) if not mask & FALSE:
                if block.where is None or (block.is_grouped and not block.group_by):
                    return {}
                return self.of(block.where, TRUE)
            case plan.Conditional(test=test, then=then, otherwise=otherwise):
                if self._kinds(otherwise) & mask:
                    return {}
                return both((self.of(test, TRUE), self.of(then, mask)))
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
        found = [self.of(left, common), self.of(right, common)]
        for made, other in ((left, right), (right, left)):
            if isinstance(made, plan.MakeObject) and isinstance(other, plan.Constant):
                parts = dict(made.properties)
                named = other.value.items() if isinstance(other.value, dict) else ()
                found += [
                    self._equal(parts[name], plan.Constant(each)) for name, each in named if name in parts
                ]
        return both(found)

    def _compared(self, left: plan.Expression, right: plan.Expression) -> Demands | None:
        if not isinstance(left, plan.Constant) and not isinstance(right, plan.Constant):
            return self._equal(left, right)
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

    def _call(self, name: str, arguments: tuple[plan.Expression, ...], mask: int) -> Demands | None:
        if name in TESTS:
            return self.of(arguments[0], TESTS[name]) if mask & BOOLEAN == TRUE else {}
        signature = SIGNATURES.get(name)
        if signature is None:
            return {}
        if not signature.value & mask:
            return None
        taken = arguments if takes_all(name) else arguments[:1]
        return both(self.of(each, signature.argument(place)) for place, each in enumerate(taken))


def meets(known: Mapping[Path, int], wanted: Demands | None) -> bool:
    """Whether what is known of the paths leaves room for demands."""
    return wanted is not None and all(known.get(path, ANYTHING) & mask for path, mask in wanted.items())
