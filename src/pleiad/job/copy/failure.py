"""Why a copy of a container ends before it is done."""

from __future__ import annotations

from collections.abc import Sequence

ITEMS_NAMED_MAX = 10
_NAME_CHARACTERS_MAX = 200


class CopyFailedError(Exception):
    """The copy cannot be made of what is there; the items that stand in the way have names."""

    def __init__(self, reason: str, items: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.items = tuple(item[:_NAME_CHARACTERS_MAX] for item in items[:ITEMS_NAMED_MAX])


class NamelessCollisionError(Exception):
    """Two items of the source would be one in the target, and one of them is yet to be found."""


class CopyTakenError(Exception):
    """Another server has taken the copy over, or it is no more."""


class CopyCancelledError(Exception):
    """Somebody wants the copy to end."""


class TargetMovedError(Exception):
    """The partitions of the target are others than those that were written to: nothing was written, look again."""
