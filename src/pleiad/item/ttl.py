"""Time to live: which values are good, and when an item expires.

The container decides whether items expire at all (no default TTL: never); an item's own ``ttl`` only
replaces the container's default. ``-1`` means never. Expiry counts from the time of the last write, or from a number
of seconds since 1970 that the item has at the container's ``ttlPropertyPath``.
"""

from __future__ import annotations

import math
from typing import Any

from pleiad import errors
from pleiad.limits import Limits

NEVER = -1


def _check(value: object, name: str, limits: Limits) -> int:
    seconds: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, float) and value.is_integer():
        seconds = int(value)
    if seconds is None or not (seconds == NEVER or 1 <= seconds <= limits.ttl_seconds_max):
        raise errors.BAD_REQUEST(
            reason=f"The input {name} is invalid. The value must be -1 (never expires) or a positive "
            f"integer of at most {limits.ttl_seconds_max} seconds."
        )
    return seconds


def check_item_ttl(item: dict[str, Any], limits: Limits) -> int | None:
    """The ``ttl`` of an item, None when it has none; BAD_REQUEST for a value that is no time to live."""
    if "ttl" not in item:
        return None
    return _check(item["ttl"], "ttl", limits)


def check_default_ttl(value: object, limits: Limits) -> int | None:
    """The ``defaultTtl`` of a container; None, for a container that has none, stays None."""
    if value is None:
        return None
    return _check(value, "defaultTtl", limits)


def ttl_from(
    base: object, ts: int, item_ttl: int | None, default_ttl: int | None, limits: Limits
) -> int | None:
    """The time to live as it counts from `ts`, of an item whose time counts from a value of its own.

    It stays as it is where that value is no number, and where the item never expires. One whose time is over is given
    the shortest there is, a second.
    """
    if default_ttl is None or isinstance(base, bool) or not isinstance(base, int | float):
        return item_ttl
    seconds = default_ttl if item_ttl is None else item_ttl
    if seconds == NEVER:
        return item_ttl
    # Between bounds before it is a whole number: a float may be too large for one that is worth computing with.
    begun = math.ceil(max(-limits.ttl_seconds_max, min(float(base) - ts, limits.ttl_seconds_max)))
    return max(1, min(begun + seconds, limits.ttl_seconds_max))


def expires_at(ts: int, item_ttl: int | None, default_ttl: int | None) -> int | None:
    """The second at which an item written at ``ts`` has expired, None for never."""
    if default_ttl is None:
        return None
    seconds = default_ttl if item_ttl is None else item_ttl
    return None if seconds == NEVER else ts + seconds


def is_expired(ts: int, item_ttl: int | None, default_ttl: int | None, now: float) -> bool:
    """Whether an item written at ``ts`` is gone at ``now``."""
    if default_ttl is None:
        return False
    seconds = default_ttl if item_ttl is None else item_ttl
    return seconds > 0 and ts + seconds <= now
