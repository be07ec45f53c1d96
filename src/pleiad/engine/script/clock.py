"""The time that the scripts of one request and their operations may take together."""

from __future__ import annotations

import time

from pleiad import errors
from pleiad.limits import Limits


class Clock:
    """The time one request may take, scripts and operations together."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ends_at = time.monotonic() + limits.operation_seconds

    @property
    def seconds_left(self) -> float:
        return self._ends_at - time.monotonic()

    def check(self) -> None:
        """Raises when the time is over."""
        if self.seconds_left <= 0:
            raise errors.REQUEST_TIMEOUT(
                reason=f"The script was stopped: it took more than {self._limits.operation_seconds:g} seconds."
            )
