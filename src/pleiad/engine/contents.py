"""What is in a container, for who fills in forms: properties that items have, and values of the partition key.

Both read items and pay for it like any other read. What they read is bounded, so they tell of what they came to and not
of all that is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pleiad.engine.beside import beside
from pleiad.engine.container import Container
from pleiad.engine.feed import listing
from pleiad.engine.query import execution
from pleiad.engine.query.request import QueryRequest
from pleiad.item.body import load
from pleiad.keys.range import WHOLE
from pleiad.keys.value import KeyValue
from pleiad.partition.partition import Partition
from pleiad.query.syntax.print import is_plain_name
from pleiad.query.values import hash_key
from pleiad.store.rows import Row

ELEMENT = 0
"""Stands for any element of an array in a path."""
_PATHS_MAX = 5_000
"""So many different paths are told apart; items with more are looked at no further."""
_DEPTH_MAX = 12
_ROWS_MAX = 1_000
"""Items whose key a look for values may come to, over all physical partitions."""
_ROWS_MIN = 20

Steps = tuple[str | int, ...]
Key = tuple[KeyValue, ...]


@dataclass(slots=True)
class FoundPath:
    """A property of items: in how many of them it is, and of which types."""

    steps: Steps
    items: int = 0
    types: set[str] = field(default_factory=set)

    @property
    def expression(self) -> str | None:
        """How a query names it; inside of arrays it has no name."""
        if ELEMENT in self.steps:
            return None
        names = (step for step in self.steps if isinstance(step, str))
        return "c" + "".join(f".{name}" if is_plain_name(name) else f"[{_text(name)}]" for name in names)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a look at some items found."""

    items: int
    paths: list[FoundPath]
    charge_ru: float
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """Values of a partition key, and whether these are all."""

    keys: list[Key]
    is_complete: bool
    charge_ru: float
    partitions: tuple[Partition, ...]


async def sample_paths(container: Container, items_max: int, multiplier: int) -> Sample:
    """The properties of some items of every physical partition, the most frequent first."""
    partitions = tuple(container.map.partitions)
    rows: list[Row] = []
    charge_ru, room_bytes = 0.0, container.limits.response_bytes
    visited = []
    for place, partition in enumerate(partitions):
        wanted = -(-(items_max - len(rows)) // (len(partitions) - place))
        if wanted <= 0 or room_bytes <= 0:
            break
        page = await listing.page(container, partition.span, "", wanted, multiplier)
        charge_ru += page.charge.ru
        visited.append(partition)
        rows += page.rows
        room_bytes -= sum(row.size_bytes for row in page.rows)
    bodies = [row.body for row in rows]
    found = await beside(sum(map(len, bodies)), _paths_in, bodies)
    return Sample(len(rows), found, charge_ru, tuple(visited))


def _paths_in(bodies: Sequence[bytes]) -> list[FoundPath]:
    found: dict[Steps, FoundPath] = {}
    for body in bodies:
        seen: dict[Steps, set[str]] = {}
        for steps, value in _walk(load(body), ()):
            if steps in seen or len(seen) < _PATHS_MAX:
                seen.setdefault(steps, set()).add(_type_of(value))
        for steps, types in seen.items():
            path = found.get(steps)
            if path is None:
                if len(found) >= _PATHS_MAX:
                    continue
                path = found[steps] = FoundPath(steps)
            path.items += 1
            path.types |= types
    return sorted(found.values(), key=lambda path: (-path.items, len(path.steps), list(map(str, path.steps))))


def _walk(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if steps:
        yield steps, value
    if len(steps) >= _DEPTH_MAX:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, (*steps, name))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, (*steps, ELEMENT))


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


async def find_keys(
    container: Container, under: Key, prefix: str, keys_max: int, multiplier: int
) -> FoundKeys:
    """Values of the level after `under` that begin with a text, or any where that is empty; hot ones first."""
    partitions = tuple(container.map.overlapping(container.span_of(under) if under else WHOLE))
    found: dict[Any, Key] = {}
    for hot in container.heat.hottest(keys_max * 10):
        key = hot.key[: len(under) + 1]
        if len(key) > len(under) and _fits(key, under, prefix):
            found.setdefault(_mark(key), key)
    text, parameters = _question(container, under, prefix)
    rows_max = max(_ROWS_MIN, _ROWS_MAX // max(1, len(partitions)))
    charge_ru, is_complete, visited = 0.0, True, []
    for partition in partitions:
        if len(found) > keys_max:
            is_complete = False
            break
        request = QueryRequest(
            text=text,
            parameters=parameters,
            span=partition.span,
            items_max=rows_max,
            is_confined=True,
            is_paged=True,
            multiplier=multiplier,
        )
        page = await execution.run(container, request)
        charge_ru += page.charge_ru
        visited.append(partition)
        is_complete = is_complete and page.token is None
        for result in page.results:
            key = (*under, orjson.loads(result))
            found.setdefault(_mark(key), key)
    is_complete = is_complete and len(found) <= keys_max
    return FoundKeys(list(found.values())[:keys_max], is_complete, charge_ru, tuple(visited))


def _question(container: Container, under: Key, prefix: str) -> tuple[str, Mapping[str, Any]]:
    """The query for the values of a level: those of plain types, and of texts with the prefix."""
    names = [_path(steps) for steps in container.key.path_steps]
    wanted = names[len(under)]
    conditions = [f"{name} = @under{place}" for place, name in enumerate(names[: len(under)])]
    conditions.append(f"STARTSWITH({wanted}, @prefix)" if prefix else f"IS_PRIMITIVE({wanted})")
    parameters: dict[str, Any] = {f"@under{place}": value for place, value in enumerate(under)}
    if prefix:
        parameters["@prefix"] = prefix
    return f"SELECT VALUE {wanted} FROM c WHERE {' AND '.join(conditions)}", parameters


def _path(steps: Sequence[str]) -> str:
    return "c" + "".join(f"[{_text(step)}]" for step in steps)


def _text(name: str) -> str:
    return json.dumps(name)


def _fits(key: Key, under: Key, prefix: str) -> bool:
    if _mark(key[: len(under)]) != _mark(under):
        return False
    value = key[len(under)]
    if prefix:
        return isinstance(value, str) and value.startswith(prefix)
    return value is None or isinstance(value, bool | int | float | str)


def _mark(key: Key) -> Any:
    """What tells keys apart: 1 and true are equal in Python and two keys here."""
    return tuple(map(hash_key, key))
