"""Ways to a property of an item: its name, or a path through nested objects, written as partition key paths are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MissingProperty(ValueError):
    """An item has not what its key is made of."""


def names_of(path: str) -> tuple[str, ...]:
    """`deviceId` or `/deviceId`, and `/address/city`; ValueError when nothing is named."""
    names = tuple(path[1:].split("/")) if path.startswith("/") else (path,)
    if not all(names):
        raise ValueError(f"'{path}' names no property: write deviceId, or /address/city for a nested one")
    return names


def value_at(item: Mapping[str, Any], path: str) -> Any:
    """What an item has there; MissingProperty when it has nothing."""
    found: Any = item
    for name in names_of(path):
        if not isinstance(found, Mapping) or name not in found:
            raise MissingProperty(f"the item {item.get('id')!r} has no property {path}")
        found = found[name]
    return found


def with_value(item: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The item with another value there; objects on the way are made where they are missing."""
    name, *rest = names_of(path)
    if not rest:
        return {**item, name: value}
    inner = item.get(name, {})
    if not isinstance(inner, Mapping):
        raise ValueError(
            f"the item {item.get('id')!r} has no object at /{name}, so nothing can be put at {path}"
        )
    return {**item, name: with_value(inner, "/" + "/".join(rest), value)}
