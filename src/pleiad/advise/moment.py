"""Times that items carry: finding the property that has them, reading them, and rolling them up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

UNITS = ("hour", "day", "month")
_UNIT_CHARACTERS = {"hour": 13, "day": 10, "month": 7}
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?", re.DOTALL)
_EPOCH_SECONDS = (500_000_000, 5_000_000_000)
_MILLISECONDS = 1000
_NAME = re.compile(r"(?:^|[a-z_/])(?:at|ts|time|timestamp|date|created|updated|day|when)$", re.IGNORECASE)
_TELLING_SHARE = 0.98


def seconds_of(value: Any) -> float | None:
    """The time that a value tells, in seconds since the epoch; None when it tells none."""
    if value.__class__ is str:
        if _ISO.match(value[:16]) is None:
            return None
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    if value.__class__ in (int, float):
        low, high = _EPOCH_SECONDS
        if low <= value < high:
            return float(value)
        if low * _MILLISECONDS <= value < high * _MILLISECONDS:
            return value / _MILLISECONDS
    return None


def rolled_up(value: Any, unit: str) -> Any:
    """The hour, day or month of a time, as text; a value that tells no time stays as it is."""
    length = _UNIT_CHARACTERS[unit]
    if value.__class__ is str:
        return value[:length] if _ISO.match(value[:16]) is not None else value
    seconds = seconds_of(value)
    if seconds is None:
        return value
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:length]


def is_time(path: str, values: Sequence[Any]) -> bool:
    """Whether the values at a path are times: dates as text, or numbers under a name that says so."""
    if not values:
        return False
    if any(value.__class__ is not str for value in values[:100]) and _NAME.search(path) is None:
        return False
    telling = sum(seconds_of(value) is not None for value in values)
    return telling >= _TELLING_SHARE * len(values)


def best_time_path(samples: Mapping[str, Sequence[Any]]) -> str | None:
    """The path whose times are finest and most different: when an item was written rather than its birthday."""
    found = [path for path, values in samples.items() if is_time(path, values)]
    # In the order of the file is more telling than anything: items are appended as they come.
    return max(found, key=lambda path: _tellingness(path, samples[path]), default=None)


def _tellingness(path: str, values: Sequence[Any]) -> tuple[bool, float, int]:
    seconds = [each for each in map(seconds_of, values) if each is not None]
    rising = sum(a <= b for a, b in pairwise(seconds))
    return path == "/_ts", rising / max(1, len(seconds)), len(set(seconds))
