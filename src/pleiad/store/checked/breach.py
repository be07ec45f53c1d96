"""What the wrappers raise: a store, or whoever calls it, has broken its contract."""

from __future__ import annotations

CALLER = "caller"
"""Stands for the invariant where the call itself was wrong."""


class ContractError(AssertionError):
    """An invariant that does not hold, by its number in `store.segments` or `store.catalog`."""

    def __init__(self, invariant: str, reason: str) -> None:
        super().__init__(f"invariant {invariant}: {reason}")
        self.invariant = invariant


def demand(holds: bool, invariant: str, reason: str) -> None:
    """Raises ContractError unless something holds."""
    if not holds:
        raise ContractError(invariant, reason)
