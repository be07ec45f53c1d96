"""A partition key that a container could have: a property, levels of properties, or a value made of properties.

As text, in the words of the command line and of the report:

====================  ==========================================================================================
``/tenantId``         the property at that path
``/tenantId,/user``   a hierarchical key with these levels
``concat(/a,/b)``     a property that clients put together of others: ``a-b``
``random(/a,400)``    the property and a random number of so many behind it: ``a.217``
``suffix(/a,/b,400)`` the property and a number computed from another one behind it, so that it can be found again
``day(/at)``          the time at that path rolled up to the ``hour``, the ``day`` or the ``month``
====================  ==========================================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from pleiad.errors import PleiadError
from pleiad.keys.definition import KeyDefinition, split_path
from pleiad.limits import Limits

ID_PATH = "/id"
SUFFIXES_MAX = 10_000
_BETWEEN_PATHS = re.compile(r',(?=/)(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A comma before a slash, unless it is inside the quotes of a name."""
_CALL = re.compile(r"(concat|random|suffix|hour|day|month)\((.*)\)", re.DOTALL)


class Kind(StrEnum):
    """How the value of a key comes about."""

    PATH = "path"
    HIERARCHY = "hierarchy"
    CONCAT = "concat"
    RANDOM = "random"
    SUFFIX = "suffix"
    ROLL_UP = "roll-up"


class KeyTextError(ValueError):
    """A text that names no key; its sentence says why."""


@dataclass(frozen=True, slots=True)
class Key:
    """One candidate."""

    kind: Kind
    paths: tuple[str, ...]
    count: int = 0
    """Of suffixes."""
    unit: str = ""
    """Of a roll-up: hour, day or month."""

    @property
    def text(self) -> str:
        listed = ",".join(self.paths)
        match self.kind:
            case Kind.PATH | Kind.HIERARCHY:
                return listed
            case Kind.ROLL_UP:
                return f"{self.unit}({listed})"
            case Kind.CONCAT:
                return f"concat({listed})"
            case _:
                return f"{self.kind.value}({listed},{self.count})"

    @property
    def is_synthetic(self) -> bool:
        """Whether clients have to write its value into a property of its own."""
        return self.kind not in (Kind.PATH, Kind.HIERARCHY)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of a table that it is made of."""
        return (self.text,) if self.kind is Kind.ROLL_UP else self.paths

    def definition(self, synthetic_path: str = "/partitionKey") -> KeyDefinition:
        """The partition key of a container that has it; what clients make is at ``synthetic_path``."""
        if self.kind is Kind.HIERARCHY:
            return KeyDefinition(self.paths, "MultiHash", 2)
        return KeyDefinition((synthetic_path,) if self.is_synthetic else self.paths, "Hash", 2)


def path_key(path: str) -> Key:
    """The key of one property."""
    return Key(Kind.PATH, (path,))


def hierarchy(*paths: str) -> Key:
    """A hierarchical key."""
    return Key(Kind.HIERARCHY, paths)


def parse(text: str, limits: Limits) -> Key:
    """The key that a text names; KeyTextError when it names none."""
    call = _CALL.fullmatch(text)
    if call is None:
        paths = _paths(text, text)
        if len(paths) > limits.partition_key_levels:
            raise KeyTextError(f"'{text}' has more than {limits.partition_key_levels} levels")
        return path_key(paths[0]) if len(paths) == 1 else Key(Kind.HIERARCHY, paths)
    name, inside = call.groups()
    if name in ("hour", "day", "month"):
        paths = _paths(inside, text)
        _check_count(text, paths, 1)
        return Key(Kind.ROLL_UP, paths, unit=name)
    if name == "concat":
        paths = _paths(inside, text)
        if len(paths) < 2:
            raise KeyTextError(f"'{text}' puts nothing together: name two properties or more")
        return Key(Kind.CONCAT, paths)
    listed, _, number = inside.rpartition(",")
    if not number.strip().isdecimal() or not 2 <= int(number) <= SUFFIXES_MAX:
        raise KeyTextError(f"'{text}' needs the number of suffixes at its end, from 2 to {SUFFIXES_MAX:,}")
    paths = _paths(listed, text)
    _check_count(text, paths, 1 if name == "random" else 2)
    return Key(Kind(name), paths, count=int(number))


def _paths(listed: str, text: str) -> tuple[str, ...]:
    paths = tuple(_BETWEEN_PATHS.split(listed))
    for path in paths:
        try:
            split_path(path)
        except PleiadError:
            raise KeyTextError(
                f"'{path}' in '{text}' is no path of a property, such as /address/city"
            ) from None
    if len(set(paths)) < len(paths):
        raise KeyTextError(f"'{text}' names a path twice")
    return paths


def _check_count(text: str, paths: tuple[str, ...], wanted: int) -> None:
    if len(paths) != wanted:
        raise KeyTextError(f"'{text}' names {len(paths)} paths, and takes {wanted}")
