"""The paths of items that may become keys, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from pleiad.advise.key import ID_PATH
from pleiad.errors import PleiadError
from pleiad.keys.definition import split_path
from pleiad.values.undefined import UNDEFINED

PATHS_MAX = 24
_HEAD_SHARE = 0.5
"""A path that fewer of the items have is no candidate."""
_DEPTH_MAX = 4


def paths_of(items: Sequence[dict[str, Any]], wanted: Sequence[str], finds_others: bool) -> list[str]:
    """The id, the wanted paths, and the scalar paths that many items have, those with most values first."""
    if not finds_others:
        return list(dict.fromkeys([ID_PATH, *wanted]))
    counts: dict[tuple[str, ...], int] = {}
    for item in items:
        _count_paths(item, (), counts)
    often = [steps for steps, count in counts.items() if count >= _HEAD_SHARE * len(items)]
    distinct = {}
    for steps in often:
        path = _path_text(steps)
        if path is not None and path != ID_PATH:
            values = values_at(items, steps)
            distinct[path] = len({value if value.__class__ is str else repr(value) for value in values})
    ordered = sorted(distinct, key=lambda path: (-min(distinct[path], 100), path.count("/"), path))
    return list(dict.fromkeys([ID_PATH, *wanted, *ordered]))[: max(PATHS_MAX, len(wanted) + 1)]


def _count_paths(item: dict[str, Any], above: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> None:
    for name, value in item.items():
        if not above and name.startswith("_"):
            continue
        steps = (*above, name)
        if value.__class__ is dict:
            if len(steps) < _DEPTH_MAX:
                _count_paths(value, steps, counts)
        elif value.__class__ is not list:
            counts[steps] = counts.get(steps, 0) + 1


def _path_text(steps: tuple[str, ...]) -> str | None:
    """The path of these names, in quotes where they need them; None where no path can name them."""
    plain = "".join(f"/{name}" for name in steps)
    if any(not name or any(letter.isspace() for letter in name) for name in steps):
        return None
    quoted = "".join('/"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in steps)
    for text in (plain, quoted):
        try:
            if split_path(text) == steps:
                return text
        except PleiadError:
            continue
    return None


def values_at(items: Sequence[dict[str, Any]], steps: Sequence[str]) -> list[Any]:
    """The values at a path; UNDEFINED where there is none."""
    name = steps[0]
    try:
        values: list[Any] = list(map(itemgetter(name), items))
    except KeyError:
        values = [item.get(name, UNDEFINED) for item in items]
    for name in steps[1:]:
        values = [value.get(name, UNDEFINED) if value.__class__ is dict else UNDEFINED for value in values]
    return values
