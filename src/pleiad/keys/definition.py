"""The partition key of a container: its paths, how their values are hashed and how they are found in items.

A path is a list of property names behind slashes: ``/userId``, ``/address/city``. A name that holds anything
but letters, digits and ``_ - . $ @ :`` stands in double quotes: ``/"a/b"/c``; inside them ``\\"`` is a quote
and ``\\\\`` a backslash.

Invariants: a ``Hash`` key has one path; a ``MultiHash`` key (hierarchical) has one to
``Limits.partition_key_levels`` paths, all different, and version 2. A definition never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pleiad import errors
from pleiad.keys.value import KeyValue
from pleiad.limits import Limits
from pleiad.values.undefined import UNDEFINED

Kind = Literal["Hash", "MultiHash"]
Version = Literal[1, 2]

_PUNCTUATION_PLAIN = frozenset("_-.$@:")


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """Paths, kind and hash version of a container's partition key."""

    paths: tuple[str, ...]
    kind: Kind
    version: Version
    system_key: bool = False
    names_version: bool = field(default=False, compare=False)
    """Whether it was defined with a version, which then is told back."""
    is_sealed: bool = False
    """Whether items are kept by the seal of their key too, so that no other value has their place; version 2 only."""
    path_steps: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    name_at_top: str | None = field(init=False, repr=False, compare=False)
    """The property name when the key is one property at the top of the item: the common case, kept fast."""

    def __post_init__(self) -> None:
        steps = tuple(split_path(path) for path in self.paths)
        object.__setattr__(self, "path_steps", steps)
        at_top = len(steps) == 1 and len(steps[0]) == 1
        object.__setattr__(self, "name_at_top", steps[0][0] if at_top else None)

    @property
    def levels(self) -> int:
        """How many values a full key has."""
        return len(self.paths)

    @classmethod
    def from_json(cls, value: object, limits: Limits) -> KeyDefinition:
        """The definition a client sent as ``partitionKey``; an error row says what is wrong with it.

        A missing kind is Hash. A missing version is 1 for Hash, because that is how clients read such a
        definition back, and 2 for MultiHash, which has no other.
        """
        if value is None:
            raise errors.PARTITION_KEY_DEFINITION_MISSING()
        if not isinstance(value, dict):
            raise _refused("it must be an object with 'paths' and 'kind'")
        paths = value.get("paths")
        if paths is None or paths == []:
            raise errors.PARTITION_KEY_DEFINITION_MISSING()
        kind = _kind(value.get("kind"))
        version = _version(value.get("version"), kind)
        system_key = value.get("systemKey")
        if system_key is not None and not isinstance(system_key, bool):
            raise _refused("'systemKey' must be true or false")
        names_version = value.get("version") is not None
        return cls(_paths(paths, kind, limits), kind, version, system_key is True, names_version)

    def to_json(self) -> dict[str, Any]:
        """The definition as clients read it: as on the service, version 1 is told to who named it."""
        answer: dict[str, Any] = {"paths": list(self.paths), "kind": self.kind}
        if self.version != 1 or self.names_version:
            answer["version"] = self.version
        if self.system_key:
            answer["systemKey"] = True
        return answer

    def extract(self, item: Mapping[str, Any]) -> tuple[KeyValue, ...]:
        """The key values of an item; what is missing, an object or an array is UNDEFINED."""
        name = self.name_at_top
        if name is not None:
            value = item.get(name, UNDEFINED)
            if value.__class__ is dict or value.__class__ is list:
                return (UNDEFINED,)
            return (value,)
        return tuple([_value_at(item, steps) for steps in self.path_steps])


def split_path(path: str) -> tuple[str, ...]:
    """The property names of a path; BAD_REQUEST when it is not a partition key path."""
    if not path.startswith("/"):
        raise errors.BAD_REQUEST(
            reason=f"The partition key component definition path '{path}' could not be accepted, failed near position "
            "'0'. Partition key paths must contain only valid characters and not contain a trailing slash or wildcard "
            "character: they start with '/'."
        )
    steps: list[str] = []
    position = 0
    while position < len(path):
        position += 1  # the slash before this name
        if path[position : position + 1] in ('"', "'"):
            name, position = _quoted_name(path, position)
        else:
            name, position = _plain_name(path, position)
        if not name:
            raise _path_refused(path, "it has an empty name between slashes")
        steps.append(name)
    return tuple(steps)


def _plain_name(path: str, start: int) -> tuple[str, int]:
    end = path.find("/", start)
    if end < 0:
        end = len(path)
    name = path[start:end]
    for character in name:
        # Marks of non-Latin scripts are no letters to Python, so beyond ASCII everything visible is taken.
        beyond_ascii = character > "\x7f" and character.isprintable()
        if not (character.isalnum() or character in _PUNCTUATION_PLAIN or beyond_ascii):
            raise _path_refused(path, f"the character {character!r} is allowed in a quoted name only")
    return name, end


def _quoted_name(path: str, start: int) -> tuple[str, int]:
    quote = path[start]
    characters: list[str] = []
    position = start + 1
    while position < len(path):
        character = path[position]
        if character == quote:
            end = position + 1
            if end < len(path) and path[end] != "/":
                raise _path_refused(path, "a quoted name must be followed by '/' or the end")
            if "\0" in characters:
                raise _path_refused(path, "no name has the character U+0000")
            return "".join(characters), end
        if character == "\\" and path[position + 1 : position + 2] in (quote, "\\"):
            position += 1
            character = path[position]
        characters.append(character)
        position += 1
    raise _path_refused(path, "a quoted name is not closed")


def _value_at(item: Mapping[str, Any], steps: tuple[str, ...]) -> KeyValue:
    value: Any = item
    for name in steps:
        if not isinstance(value, Mapping):
            return UNDEFINED
        value = value.get(name, UNDEFINED)
    if isinstance(value, Mapping | list):
        return UNDEFINED
    return cast(KeyValue, value)


def _kind(value: object) -> Kind:
    if value is None or value == "Hash":
        return "Hash"
    if value == "MultiHash":
        return "MultiHash"
    raise _refused("'kind' must be 'Hash' or 'MultiHash'")


def _version(value: object, kind: Kind) -> Version:
    if value is None:
        return 1 if kind == "Hash" else 2
    if value in ("V1", "V2"):
        # As the Java client writes it.
        value = 1 if value == "V1" else 2
    if type(value) is not int or value not in (1, 2):
        raise _refused("'version' must be 1 or 2")
    if kind == "MultiHash" and value == 1:
        raise _refused("a MultiHash key has version 2")
    return 1 if value == 1 else 2


def _paths(value: object, kind: Kind, limits: Limits) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise _refused("'paths' must be an array of strings")
    paths = cast(list[str], value)
    if not paths:
        raise _refused("it has no path")
    if kind == "Hash" and len(paths) != 1:
        raise _refused(
            "Too many partition key paths: a Hash key has one, a hierarchical key is of kind 'MultiHash'"
        )
    if len(paths) > limits.partition_key_levels:
        raise _refused(
            f"Too many partition key paths ({len(paths)}) specified. "
            f"A maximum of {limits.partition_key_levels} is allowed"
        )
    steps = [split_path(path) for path in paths]
    if max(len(names) for names in steps) > limits.item_depth:
        raise _refused(f"a path has at most {limits.item_depth} names")
    if len(set(steps)) != len(steps):
        raise _refused("its paths must all be different")
    return tuple(paths)


def _refused(reason: str) -> errors.PleiadError:
    return errors.BAD_REQUEST(reason=f"The partition key definition is invalid: {reason}.")


def _path_refused(path: str, reason: str) -> errors.PleiadError:
    return errors.BAD_REQUEST(
        reason=f"The partition key component definition path '{path}' could not be accepted. Partition key paths must "
        f"contain only valid characters and not contain a trailing slash or wildcard character: {reason}."
    )


SYSTEM_KEY = KeyDefinition(("/_partitionKey",), "Hash", 2, system_key=True)
"""The key of a container that was made without one: no item has it, so all of them are one logical partition."""
