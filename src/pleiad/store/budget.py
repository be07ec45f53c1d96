"""What servers on one store tell each other about the budgets they share.

A budget is one place that request units are spent from, by its name. A server holds a share of it, from 0 to 1; the
store sees to it that the shares of all servers sum up to 1 at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class BudgetClaim(NamedTuple):
    """What one server says about one budget."""

    name: str
    want: float
    """The share it could use, for the others to see."""
    claim: float
    """The share it takes if nobody has it."""
    held: float
    """The share it goes on using until it knows the answer."""


class BudgetPart(NamedTuple):
    """What it is told."""

    share: float
    """The share that nobody else has: what it held, or more."""
    other_wants: tuple[float, ...]
    """What each other server that spends from this budget could use."""


class BudgetParts(NamedTuple):
    """The answer about all budgets a server has named."""

    servers: int
    """How many there are; 1 is this server, to which then all of every budget belongs."""
    parts: Mapping[str, BudgetPart]


ALL_TO_ONE = BudgetParts(1, {})
