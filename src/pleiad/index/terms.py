"""How many index terms an item has, and how many a replacement changes: what a write is charged for.

One term is one indexed path with one value. Array elements share the path of their array, so equal elements
are one term. An object or array counts through what is in it, an empty one is a term itself. In mode
consistent ``_ts`` adds one term and every composite index one; in mode none there are no terms.

A replacement changes the terms that only one of the two versions has, and a composite term when a value it
holds changed. The term of ``_ts`` is not counted there: otherwise the charge would depend on when the item
was written.

Numbers are equal by value (1 and 1.0 are one term), but true is not 1. Items are given without system
properties; recursion is as deep as the item, which ``Limits.item_depth`` bounds, and time is linear in its
size.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain, compress, repeat
from typing import Any

import orjson

from pleiad.index.policy import ELEMENT, IndexingPolicy, RuleNode, Steps
from pleiad.values.salt import SALT

_ABSENT = object()
_CONTAINERS = frozenset({dict, list})
_is_container = _CONTAINERS.__contains__
_NOT_PLAIN = frozenset({dict, list, bool})
"""Types of array elements that a plain set would not count as terms: containers, and booleans, which equal 0 and 1."""
_NUMBERS = frozenset({int, float})
_OBJECTS = {dict}
_values_of, _members_of = dict.values, dict.items
_FEW = 64
"""So few values are soon counted, whichever they are."""
_PIECE = 16_384
_TRUE = (True,)
_FALSE = (False,)
_EMPTY_OBJECT = ("{}",)
_EMPTY_ARRAY = ("[]",)


def _term_value(value: Any) -> Hashable:
    """A scalar or empty container as a value that equals exactly what is the same term."""
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if value.__class__ is dict:
        return _EMPTY_OBJECT
    if value.__class__ is list:
        return _EMPTY_ARRAY
    if value.__class__ is int or value.__class__ is float:
        return (SALT, value)
    scalar: Hashable = value
    return scalar


class _Group:
    """All values that stand at one path of an item: terms here, and the groups one step below."""

    __slots__ = ("elements", "members", "terms")

    def __init__(self, values: Iterable[Any]) -> None:
        terms: set[Hashable] = set()
        members: dict[str, list[Any]] = {}
        elements: list[Any] = []
        for value in values:
            if value.__class__ is dict and value:
                for name, child in value.items():
                    if name in members:
                        members[name].append(child)
                    else:
                        members[name] = [child]
            elif value.__class__ is list and value:
                elements += value
            else:
                terms.add(_term_value(value))
        self.terms = terms
        self.members = members
        self.elements = elements


def _everything(scalar: bool) -> RuleNode:
    return RuleNode(scalar=scalar, below=scalar)


_ALL = _everything(True)
_NOTHING = _everything(False)


def _below(node: RuleNode, step: str | int) -> RuleNode:
    child = node.children.get(step)
    if child is None:
        return _ALL if node.below else _NOTHING
    return child


def _count_group(values: list[Any], node: RuleNode) -> int:
    if node is _NOTHING:
        return 0
    group = _Group(values)
    count = len(group.terms) if node.scalar else 0
    for name, children in group.members.items():
        count += _count_group(children, _below(node, name))
    if group.elements:
        count += _count_group(group.elements, _below(node, ELEMENT))
    return count


def _count_all(item: dict[str, Any]) -> int:
    """The terms of an object that is indexed whole: outside arrays every scalar has a path of its own."""
    count = len(item)
    values = item.values()
    # Most members are scalars, and are passed over without a step of Python for each.
    for value in compress(values, map(_is_container, map(type, values))):
        if value:
            count += (_count_all(value) if value.__class__ is dict else _count_elements(value)) - 1
    return count


def _count_elements(values: list[Any]) -> int:
    """The terms of values that stand at one path and are indexed whole; at least one."""
    kinds = set(map(type, values))
    if _NOT_PLAIN.isdisjoint(kinds):
        return len(set(values)) if len(values) <= _FEW else _count_plain(values, kinds)
    if kinds != _OBJECTS or not all(values):
        return _count_group(values, _ALL)
    if len(values) == 1:
        return _count_all(values[0])
    if sum(map(len, values)) <= _FEW and _NOT_PLAIN.isdisjoint(
        map(type, chain.from_iterable(map(_values_of, values)))
    ):
        # Of objects of scalars a term is a name with a value.
        return len(set(chain.from_iterable(map(_members_of, values))))
    members: dict[str, list[Any]] = {}
    for value in values:
        for name, child in value.items():
            if name in members:
                members[name].append(child)
            else:
                members[name] = [child]
    return sum(map(_count_elements, members.values()))


def _count_plain(values: list[Any], kinds: set[type]) -> int:
    """How many of these texts, numbers and nulls, which are many, are different ones."""
    terms: set[Hashable] = set()
    are_numbers = not _NUMBERS.isdisjoint(kinds)
    for start in range(0, len(values), _PIECE):
        # A piece at a time: nothing else in the process goes on while one is counted.
        piece = values[start : start + _PIECE]
        terms.update(zip(repeat(SALT), piece, strict=False) if are_numbers else piece)
    return len(terms)


def _count_object(item: dict[str, Any], node: RuleNode) -> int:
    if node.below and node.children.keys().isdisjoint(item):
        return _count_all(item)
    count = 0
    for name, value in item.items():
        child = _below(node, name)
        if value.__class__ is dict and value:
            if child is not _NOTHING:
                count += _count_object(value, child)
        elif value.__class__ is list and value:
            count += _count_group(value, _below(child, ELEMENT))
        elif child.scalar:
            count += 1
    return count


def _changed_group(old: list[Any], new: list[Any], node: RuleNode) -> tuple[int, int]:
    if node is _NOTHING:
        return 0, 0
    before, after = _Group(old), _Group(new)
    removed = added = 0
    if node.scalar:
        removed = len(before.terms - after.terms)
        added = len(after.terms - before.terms)
    for name in before.members.keys() | after.members.keys():
        gone, come = _changed_group(
            before.members.get(name, []), after.members.get(name, []), _below(node, name)
        )
        removed += gone
        added += come
    if before.elements or after.elements:
        gone, come = _changed_group(before.elements, after.elements, _below(node, ELEMENT))
        removed += gone
        added += come
    return removed, added


def _is_written_alike(before: Any, after: Any) -> bool:
    """Whether two equal values of one class are the same terms: equal containers may have 1 here and true there."""
    return before.__class__ not in _CONTAINERS or orjson.dumps(before) == orjson.dumps(after)


def _values_at(item: dict[str, Any], steps: Steps) -> list[Hashable]:
    """The scalars at a path, in order; an object or array there, like nothing there, gives none."""
    values: list[Any] = [item]
    for step in steps:
        if step == ELEMENT:
            values = [child for value in values if value.__class__ is list for child in value]
        else:
            values = [value[step] for value in values if value.__class__ is dict and step in value]
    return [
        _term_value(value) for value in values if value.__class__ is not dict and value.__class__ is not list
    ]


class TermCounter:
    """Counts terms under one policy."""

    __slots__ = ("_composites", "_consistent", "_constant", "_tree")

    def __init__(self, policy: IndexingPolicy) -> None:
        self._consistent = policy.mode != "none"
        self._tree = _without_idle_rules(policy.tree)
        self._composites = [[steps for steps, _ in composite] for composite in policy.composites]
        self._constant = 1 + len(self._composites)

    def count(self, item: dict[str, Any]) -> int:
        """The terms of an item."""
        if not self._consistent:
            return 0
        return _count_object(item, self._tree) + self._constant

    def changed(self, old: dict[str, Any], new: dict[str, Any]) -> tuple[int, int]:
        """The terms that a replacement removes, and the terms it adds."""
        if not self._consistent:
            return 0, 0
        removed = added = 0
        for name in old.keys() | new.keys():
            before = old.get(name, _ABSENT)
            after = new.get(name, _ABSENT)
            if before.__class__ is after.__class__ and before == after and _is_written_alike(before, after):
                continue
            gone, come = _changed_group(
                [] if before is _ABSENT else [before],
                [] if after is _ABSENT else [after],
                _below(self._tree, name),
            )
            removed += gone
            added += come
        for composite in self._composites:
            if any(_values_at(old, steps) != _values_at(new, steps) for steps in composite):
                removed += 1
                added += 1
        return removed, added


def _without_idle_rules(node: RuleNode) -> RuleNode:
    """The same decisions without nodes that repeat what they inherit: fewer names are special."""
    children = {step: _without_idle_rules(child) for step, child in node.children.items()}
    telling = {
        step: child
        for step, child in children.items()
        if child.children or child.scalar != node.below or child.below != node.below
    }
    return RuleNode(scalar=node.scalar, below=node.below, children=telling)
