"""Which paths of the items the filter of a query compares, and how: what a workload record keeps of a query.

It is read from the bound plan alone, once for each text; the values of parameters are put in for each request. What is
said of equality is a superset: every item that the filter lets through has one of the values at the path. Paths into
the elements of arrays are left out, since no partition key is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pleiad.query import plan
from pleiad.query.paths.places import Places, item_block, path_text

PATHS_MAX: Final = 32
VALUES_MAX: Final = 100
"""A list that is longer is no equality to speak of: its path is told as one that is compared in another way."""

_Known = plan.Constant | plan.Parameter


@dataclass(frozen=True, slots=True)
class FilterPaths:
    """The paths of a filter, as partition keys are written; the values may be parameters still."""

    equals: tuple[tuple[str, tuple[_Known, ...]], ...] = ()
    others: tuple[str, ...] = ()

    def with_values(
        self, parameters: Mapping[str, Any]
    ) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
        """The values of each path that must be equal to one of them, and the paths that are compared otherwise."""
        equals: dict[str, tuple[Any, ...]] = {}
        others = list(self.others)
        for path, known in self.equals:
            values = _values(known, parameters)
            if values is None or len(values) > VALUES_MAX:
                others.append(path)
            elif path not in equals or len(values) < len(equals[path]):
                equals[path] = values
        kept = [path for path in dict.fromkeys(others) if path not in equals]
        return dict(list(equals.items())[:PATHS_MAX]), tuple(kept[:PATHS_MAX])


def filter_paths(bound: plan.Plan) -> FilterPaths:
    """What the filter on the items says of their paths."""
    block = item_block(bound)
    if block.where is None or not block.reads_items:
        return FilterPaths()
    reader = _Reader(Places({}, block.sources))
    reader.read(block.where)
    return FilterPaths(tuple(reader.equals), tuple(dict.fromkeys(reader.others)))


class _Reader:
    """Goes through the conditions that all have to hold."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.equals: list[tuple[str, tuple[_Known, ...]]] = []
        self.others: list[str] = []

    def read(self, where: plan.Expression) -> None:
        waiting = [where]
        while waiting:
            node = waiting.pop()
            if isinstance(node, plan.Chain) and node.operator == "AND":
                waiting.extend(reversed(node.operands))
                continue
            found = self._equality(node)
            if found is not None:
                self.equals.append(found)
            else:
                self.others += self._paths_in(node)

    def _equality(self, node: plan.Expression) -> tuple[str, tuple[_Known, ...]] | None:
        """The path and the values of a condition that is nothing but an equality, an IN, or an OR of such."""
        match node:
            case plan.Binary(operator="=", left=left, right=right):
                return self._path_and_values(left, (right,)) or self._path_and_values(right, (left,))
            case plan.In(needle=needle, items=items):
                return self._path_and_values(needle, items)
            case plan.Chain(operator="OR", operands=operands):
                return self._one_of(operands)
            case plan.Member():
                return self._path_and_values(node, (plan.Constant(True),))
            case plan.Unary(operator="NOT", operand=plan.Member() as operand):
                return self._path_and_values(operand, (plan.Constant(False),))
        return None

    def _one_of(self, operands: Iterable[plan.Expression]) -> tuple[str, tuple[_Known, ...]] | None:
        paths: set[str] = set()
        values: list[_Known] = []
        for operand in operands:
            found = self._equality(operand)
            if found is None or len(paths | {found[0]}) > 1:
                return None
            paths.add(found[0])
            values += found[1]
        return (paths.pop(), tuple(values)) if paths else None

    def _path_and_values(
        self, node: plan.Expression, values: Iterable[plan.Expression]
    ) -> tuple[str, tuple[_Known, ...]] | None:
        path = self._path(node)
        known = tuple(value for value in values if isinstance(value, plan.Constant | plan.Parameter))
        return None if path is None or len(known) != len(tuple(values)) else (path, known)

    def _path(self, node: plan.Expression) -> str | None:
        """The path of the item that an expression reads, if it is that of a property."""
        place = self._places.of(node)
        return path_text(place) if place and all(isinstance(step, str) for step in place) else None

    def _paths_in(self, node: plan.Expression) -> list[str]:
        """The longest paths that are read anywhere in an expression."""
        found: list[str] = []
        inside: set[int] = set()
        for each in plan.walk(node):
            if isinstance(each, plan.Member):
                path = None if id(each) in inside else self._path(each)
                if path is not None:
                    found.append(path)
                inside.add(id(each.target))
        return found


def _values(known: tuple[_Known, ...], parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The values, if all of them are scalars."""
    values = []
    for each in known:
        value = each.value if isinstance(each, plan.Constant) else parameters.get(each.name, known)
        if value is not None and not isinstance(value, str | int | float):
            return None
        values.append(value)
    return tuple(values)
