"""The request units that requests on metadata may use: databases, containers, offers and all that is no item.

They have a budget of their own, one for the account, so that a client that creates and lists all the time takes nothing
from requests on items, and is told to slow down all the same.
"""

from __future__ import annotations

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.partition.governor import Governor, GovernorSnapshot, Throttle


class MetadataBudget:
    """The budget of one account as one server counts it; a limit of 0 is no budget, and everything is admitted."""

    def __init__(self, limits: Limits, throttle: Throttle) -> None:
        self.limit_ru = limits.metadata_ru
        # Burst capacity and the shares of several servers are of physical partitions; metadata has neither.
        own = Throttle(enforced=throttle.enforced, clock=throttle.clock)
        self._governor = Governor(max(self.limit_ru, 1), own, limits)

    def admit(self) -> None:
        """Lets a request in, or raises what tells its client when to come again."""
        if not self.limit_ru:
            return
        try:
            self._governor.admit()
        except PleiadError as refusal:
            raise errors.TOO_MANY_METADATA_REQUESTS(
                retry_after_ms=refusal.retry_after_ms, limit=self.limit_ru
            ) from None

    def spend(self, ru: float) -> None:
        """Takes the charge of an admitted request, done or failed."""
        self._governor.spend(ru)

    def snapshot(self) -> GovernorSnapshot:
        """The figures of this moment."""
        return self._governor.snapshot()
