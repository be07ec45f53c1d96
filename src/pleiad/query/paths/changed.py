"""Which paths of an item a write left with another value, as a workload record tells it."""

from __future__ import annotations

from typing import Any, Final

import orjson

from pleiad.query.paths.places import path_text

PATHS_MAX: Final = 32
DEPTH_MAX: Final = 4
"""Deeper paths are no partition keys of anybody."""


def changed_paths(old: bytes | str, new: bytes | str) -> list[str]:
    """The paths of scalars that differ between two texts of an item; none where one of them is no item."""
    try:
        before, after = orjson.loads(old), orjson.loads(new)
    except orjson.JSONDecodeError:
        return []
    found: list[tuple[str, ...]] = []
    if isinstance(before, dict) and isinstance(after, dict):
        _compare(before, after, (), found)
    return [path_text(path) for path in found]


def _compare(
    before: dict[str, Any], after: dict[str, Any], above: tuple[str, ...], found: list[tuple[str, ...]]
) -> None:
    for name in before if before.keys() == after.keys() else {**before, **after}:
        if len(found) >= PATHS_MAX:
            return
        old, new = before.get(name, _NONE), after.get(name, _NONE)
        if old.__class__ is new.__class__ and old == new:
            continue
        path = (*above, name)
        if isinstance(old, dict) and isinstance(new, dict):
            if len(path) < DEPTH_MAX:
                _compare(old, new, path, found)
        elif _is_scalar(old) or _is_scalar(new):
            found.append(path)


_NONE: Final = object()
"""Where there is no property."""


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
