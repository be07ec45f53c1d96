"""Which path of the item an expression reads.

A place is a path as the indexing policy has it: names, ELEMENT for "any element of the array here" (an
alias over an array), and POSITION for one numbered element. An alias stands for the item, for a path into
it, or for the elements of an array in it; an alias over anything else has no place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from pleiad.index.policy import ELEMENT, IndexingPolicy, Steps
from pleiad.query import plan

POSITION: Final = -1
"""One element by its number; to the policy it is an element like any other."""

IsIndexed = Callable[[Steps], bool]

_PLAIN_NAME: Final = re.compile(r"\w+")


class Places:
    """The places of a query's aliases, and the constants that its parameters make."""

    def __init__(self, parameters: Mapping[str, Any], sources: Iterable[plan.Source] = ()) -> None:
        self._parameters = parameters
        self._slots: dict[int, Steps] = {}
        self.add(sources)

    def add(self, sources: Iterable[plan.Source]) -> None:
        """Learn the aliases of a block; those of the blocks around it come first."""
        for source in sources:
            if source.kind is plan.SourceKind.ITEMS:
                self._slots[source.slot] = ()
                continue
            place = None if source.expression is None else self.of(source.expression)
            if place is not None and source.kind is plan.SourceKind.VALUE:
                self._slots[source.slot] = place
            elif place is not None and source.kind is plan.SourceKind.ELEMENTS:
                self._slots[source.slot] = (*place, ELEMENT)

    def of(self, node: plan.Expression) -> Steps | None:
        """The place that an expression reads, None when it is more than a path."""
        reversed_steps: list[str | int] = []
        while isinstance(node, plan.Member):
            constant = self.constant(node.key)
            if constant is None:
                return None
            key = constant[0]
            if isinstance(key, str):
                reversed_steps.append(key)
            elif isinstance(key, int | float) and not isinstance(key, bool):
                reversed_steps.append(POSITION)
            else:
                return None
            node = node.target
        base = self._slots.get(node.index) if isinstance(node, plan.Slot) else None
        return None if base is None else (*base, *reversed(reversed_steps))

    def constant(self, node: plan.Expression) -> tuple[Any] | None:
        """The value of a constant or parameter, in a tuple, or None."""
        if isinstance(node, plan.Constant):
            return (node.value,)
        if isinstance(node, plan.Parameter) and node.name in self._parameters:
            return (self._parameters[node.name],)
        return None


def item_block(bound: plan.Plan) -> plan.Block:
    """The innermost block of those that each stand first in FROM: the one that reads the items."""
    block = bound.block
    while block.sources and block.sources[0].block is not None:
        block = block.sources[0].block
    return block


def policy_paths(policy: IndexingPolicy, computed: Collection[str] = ()) -> IsIndexed:
    """Whether a policy indexes a place; a computed property is indexed only by a rule that names it."""
    if not computed:
        return policy.is_indexed
    named = {rule.steps[0] for rule in policy.rules if rule.included and rule.steps}

    def is_indexed(place: Steps) -> bool:
        if place and place[0] in computed and place[0] not in named:
            return False
        return policy.is_indexed(place)

    return is_indexed


def path_text(place: Steps) -> str:
    """The place as policies and index metrics write it, such as ``/tags/[]/"a b"``."""
    return "".join("/" + _step_text(step) for step in place)


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return "[]"
    if _PLAIN_NAME.fullmatch(step):
        return step
    escaped = step.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
