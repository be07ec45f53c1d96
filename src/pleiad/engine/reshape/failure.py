"""Why a change of physical partitions is not made; nothing is changed by one that ends so."""

from __future__ import annotations

from pleiad import errors
from pleiad.errors import PleiadError


class ChangedElsewhereError(PleiadError):
    """Another server is changing the partitions of the container."""

    def __init__(self) -> None:
        reason = "Another server is changing the physical partitions of this container; retry."
        super().__init__(errors.UNAVAILABLE, errors.UNAVAILABLE(reason=reason).message)


class StoppedError(PleiadError):
    """The database is being closed: the change was undone and can be made again after a restart."""

    def __init__(self) -> None:
        reason = "The server stops; the change of the physical partitions was undone."
        super().__init__(errors.UNAVAILABLE, errors.UNAVAILABLE(reason=reason).message)


class OvertakenError(ChangedElsewhereError):
    """Another server changed the partition meanwhile."""


class MismatchError(PleiadError):
    """A copy does not hold what its source holds."""

    def __init__(self, reason: str) -> None:
        super().__init__(errors.UNAVAILABLE, errors.UNAVAILABLE(reason=reason).message)
