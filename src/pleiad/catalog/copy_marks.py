"""What a copy of a container notes in the records of its two containers, so that every server acts by it.

The source remembers all its changes while a copy follows it. The target takes no writes but those of the copy. A
container that was exchanged for its copy takes no writes ever again: it is kept to be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

_FOLLOWED: Final = ".followedBy"
_CLOSED: Final = ".closed"


class Closing(Enum):
    """Why a container takes no writes."""

    FILLED = "filled"
    """A copy fills it."""
    REPLACED = "replaced"
    """Its copy has taken its name."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A container that takes no writes of clients: since when, and by which copy."""

    why: Closing
    copy_id: str
    since: int


def closed_of(properties: Mapping[str, Any]) -> Closed | None:
    """Whether a container takes no writes."""
    found = properties.get(_CLOSED)
    return None if found is None else Closed(Closing(found["why"]), found["copy"], found["since"])


def followed_by(properties: Mapping[str, Any]) -> str | None:
    """The id of the copy that follows the changes of a container."""
    found = properties.get(_FOLLOWED)
    return None if found is None else str(found)


def with_closed(properties: Mapping[str, Any], closed: Closed | None) -> dict[str, Any]:
    """The properties of a container that is closed like that, or open."""
    kept = {name: value for name, value in properties.items() if name != _CLOSED}
    if closed is not None:
        kept[_CLOSED] = {"why": closed.why.value, "copy": closed.copy_id, "since": closed.since}
    return kept


def with_follower(properties: Mapping[str, Any], copy_id: str | None) -> dict[str, Any]:
    """The properties of a container that a copy follows, or none."""
    kept = {name: value for name, value in properties.items() if name != _FOLLOWED}
    return kept if copy_id is None else {**kept, _FOLLOWED: copy_id}


def marks_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The marks in the properties of a container, which a replacement of its policies keeps."""
    return {name: properties[name] for name in (_FOLLOWED, _CLOSED) if name in properties}
