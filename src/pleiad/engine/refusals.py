"""Physical partitions that should be split and could not be, for as long as that is taken to be true."""

from __future__ import annotations

import time

REFUSAL_SECONDS = 60.0
"""How long a partition that could not be split is left alone; to find that out reads all its keys."""
_SHOWN_SECONDS = 2.0
"""How much longer it is shown as one, so that it does not come and go with every new try."""


class Refusals:
    """The refused splits of one account."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, int], float] = {}

    def note(self, container_rid: str, id: int) -> None:
        """A partition was found to be one that cannot be split."""
        self._until[container_rid, id] = time.monotonic() + REFUSAL_SECONDS

    def clear(self) -> None:
        """Lets everything be tried again at once."""
        self._until.clear()

    def is_indivisible(self, container_rid: str, id: int) -> bool:
        """Whether a partition was found so lately; it is tried again later."""
        return self._until.get((container_rid, id), 0.0) >= time.monotonic()

    def is_refused(self, container_rid: str, id: int) -> bool:
        """Whether a partition should be split and could not be when it was last tried."""
        until = self._until.get((container_rid, id))
        return until is not None and time.monotonic() < until + _SHOWN_SECONDS
