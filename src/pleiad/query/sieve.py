"""Strings that an item must have in its text to pass a filter: what lets most items of a scan be left out at once.

A needle is a superset of its part of the filter, told by the JSON text of a property: where it is missing, and the text
has no escapes, the value is no string that has it. Parts of the filter in front of the needle must be such that
evaluating them comes to nothing, since they are not evaluated where the needle is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pleiad.query import plan

_SAFE: Final = re.compile(r'[^\x00-\x1f"\\\ud800-\udfff]+')
"""Characters that stand for themselves in JSON, and never for others, unless the text has escapes."""
NEEDLES_MAX: Final = 3
"""Each is looked for in all texts; what one leaves is soon evaluated."""
_PARTS_MAX: Final = 16
_NODES_MAX: Final = 32
"""How far a filter is looked into."""
_FORMS: Final[Mapping[str, str]] = {
    "CONTAINS": "{}",
    "STARTSWITH": '"{}',
    "ENDSWITH": '{}"',
    "STRINGEQUALS": '"{}"',
}
"""What the JSON text of a string has for which the function is true."""


class Needle(NamedTuple):
    """What the JSON text of a property must have, in small letters where case is ignored."""

    name: str
    text: str
    ignores_case: bool

    def places(self, lines: str) -> list[int]:
        """The lines that may have it, counted from 0."""
        text, needle = lines.lower() if self.ignores_case else lines, self.text
        if "\\" in text:
            return [at for at, line in enumerate(text.split("\n")) if needle in line or "\\" in line]
        found: list[int] = []
        at, line, counted = text.find(needle), 0, 0
        while at >= 0:
            line += text.count("\n", counted, at)
            found.append(line)
            counted = text.find("\n", at)
            if counted < 0:
                break
            at = text.find(needle, counted)
        return found


def needles(bound: plan.Plan, parameters: Mapping[str, Any]) -> tuple[Needle, ...]:
    """The needles of a filter on single items."""
    block = bound.block
    if block.where is None or len(block.sources) != 1 or block.sources[0].kind is not plan.SourceKind.ITEMS:
        return ()
    where = block.where
    parts = where.operands if isinstance(where, plan.Chain) and where.operator == "AND" else (where,)
    found: list[Needle] = []
    for part in parts[:_PARTS_MAX]:
        needle = _needle(part, bound.root_slots, parameters)
        if needle is not None:
            found.append(needle)
        elif not _is_plain(part, parameters):
            break
    return tuple(found[:NEEDLES_MAX])


def _needle(
    node: plan.Expression, root_slots: frozenset[int], parameters: Mapping[str, Any]
) -> Needle | None:
    if not isinstance(node, plan.Call) or node.function.name not in _FORMS:
        return None
    place, part, *options = node.arguments
    match place:
        case plan.Member(target=plan.Slot(index=index), key=plan.Constant(value=str() as name)):
            if index not in root_slots:
                return None
        case _:
            return None
    text, ignores_case = _constant(part, parameters), False
    if options:
        ignores_case = _constant(options[0], parameters)
    if not isinstance(text, str) or not isinstance(ignores_case, bool) or _SAFE.fullmatch(text) is None:
        return None
    if ignores_case:
        # A letter of ASCII is never another case of any other letter.
        if not text.isascii():
            return None
        text = text.lower()
    return Needle(name, _FORMS[node.function.name].format(text), ignores_case)


def _constant(node: plan.Expression, parameters: Mapping[str, Any]) -> Any:
    match node:
        case plan.Constant(value=value):
            return value
        case plan.Parameter(name=name):
            return parameters.get(name)
    return None


def _is_plain(node: plan.Expression, parameters: Mapping[str, Any]) -> bool:
    """Whether evaluating it takes no longer than the item is large: a comparison of properties and scalars."""
    for number, part in enumerate(plan.walk(node)):
        if number >= _NODES_MAX:
            return False
        if isinstance(part, plan.Constant | plan.Parameter):
            if isinstance(_constant(part, parameters), list | dict):
                return False
        elif not isinstance(part, plan.Member | plan.Slot | plan.Binary):
            return False
    return True
