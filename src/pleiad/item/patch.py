"""Partial update of an item: the operations of a patch, checked once and applied to a copy.

Operations run in order and all or nothing: the first that does not fit the item ends the patch with an
error that names its index and path. What no patch may touch (the id, system properties, partition key paths
and the objects above them) is refused before any item is read.

Apply to a value from ``body.parse_exact`` and store ``body.dump_exact`` of the result, so that numbers the
patch does not touch keep their texts.

    add      property: create or replace; array: insert at the index, ``-`` appends
    set      property: create or replace; array: replace at the index, ``-`` appends
    replace  as set, but the target must exist
    remove   the target must exist
    incr     add to a number; a property that does not exist starts with the value given
    move     remove at ``from`` and add at ``path``
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.item import body as item_body
from pleiad.item.body import SYSTEM_PROPERTIES
from pleiad.limits import Limits

OPERATIONS: Final = ("add", "set", "replace", "remove", "incr", "move")

# An operation's value may nest as deep as an item; it stands below an array of operations in an object.
_DEPTH_AROUND_VALUE = 3
_NESTED = (dict, list)
_INTEGER_MIN = -(2**63)
_INTEGER_MAX = 2**64 - 1
_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")
_POINTER_ESCAPE = re.compile(r"~(?![01])")
_KEY_PATH_STEP = re.compile(r'/(?:"([^"]*)"|([^/]*))')

Steps = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One operation; ``source`` is the ``from`` of a move, ``value`` is None where the operation has none."""

    index: int
    op: str
    path: str
    steps: Steps
    value: Any = None
    source: Steps | None = None

    def failed(self, reason: str) -> PleiadError:
        """The refusal in the service's words; it counts operations from 1."""
        return errors.BAD_REQUEST(
            reason=f"For Operation({self.index + 1}): {reason} ({self.op} at '{self.path[:200]}')"
        )

    def no_way_to(self, step: str) -> PleiadError:
        kind = "Add" if self.op == "add" else "Given"
        return self.failed(
            f"{kind} Operation can only create a child object of an existing node(array or object) and cannot create "
            f"path recursively, no path found beyond: '{step[:100]}'. Learn more: https://aka.ms/cosmosdbpatchdocs"
        )

    def absent(self, step: str, wanted: str) -> PleiadError:
        return self.failed(
            f"Node({step[:100]}) to be {wanted} is absent, no path found beyond: '{step[:100]}'. Note: it might also "
            "have been removed earlier in the transaction."
        )


@dataclass(frozen=True, slots=True)
class Patch:
    """The checked operations of a patch request and its condition, the text after an implied ``SELECT *``."""

    operations: tuple[PatchOperation, ...]
    condition: str | None = None
    item_depth: int = Limits().item_depth

    @property
    def properties(self) -> int:
        """How many different properties the patch names, which is what its charge depends on."""
        return len({operation.steps for operation in self.operations})

    @property
    def may_deepen(self) -> bool:
        """Whether an item may nest deeper after it: by an object or array that it did not have at that place."""
        return any(
            operation.op == "move" or isinstance(operation.value, dict | list)
            for operation in self.operations
        )


def _key_path_steps(path: str | Steps) -> Steps:
    if isinstance(path, tuple):
        return path
    return tuple(quoted or plain for quoted, plain in _KEY_PATH_STEP.findall(path))


def _invalid(index: int, reason: str) -> PleiadError:
    return errors.BAD_REQUEST(
        reason=f"Invalid patch request: operation {index + 1} is not valid: {reason[:400]}"
    )


def _pointer_steps(index: int, name: str, path: object) -> Steps:
    if not isinstance(path, str):
        raise _invalid(index, f"it needs a '{name}' that is a string.")
    if not path.startswith("/") or path == "/":
        raise _invalid(index, f"the {name} '{path}' must start with '/' and name a property.")
    if _POINTER_ESCAPE.search(path) is not None:
        raise _invalid(
            index, f"in the {name} '{path}' a '~' must be written as '~0' and a '/' in a name as '~1'."
        )
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))


def _refuse_protected(index: int, path: object, steps: Steps, protected: frozenset[Steps]) -> None:
    if steps[0] == "id":
        raise _invalid(index, f"'{path}' is the item's id, which cannot be patched.")
    if steps[0] in SYSTEM_PROPERTIES:
        raise _invalid(index, f"'{path}' is a system property, which cannot be patched.")
    for key in protected:
        shared = min(len(key), len(steps))
        if key[:shared] == steps[:shared]:
            raise _invalid(
                index, f"'{path}' belongs to the partition key /{'/'.join(key)}, which cannot be patched."
            )


def _operation(index: int, given: object, limits: Limits, protected: frozenset[Steps]) -> PatchOperation:
    if not isinstance(given, dict):
        raise _invalid(index, "it must be an object with 'op' and 'path'.")
    op = given.get("op")
    if not isinstance(op, str) or op not in OPERATIONS:
        raise _invalid(index, f"its 'op' must be one of {', '.join(OPERATIONS)}.")
    path = given.get("path")
    steps = _pointer_steps(index, "path", path)
    _refuse_protected(index, path, steps, protected)
    value = given.get("value")
    source: Steps | None = None
    if op == "move":
        source = _pointer_steps(index, "from", given.get("from"))
        _refuse_protected(index, given["from"], source, protected)
        if len(source) < len(steps) and steps[: len(source)] == source:
            raise _invalid(index, f"'{given['from']}' cannot be moved into itself at '{path}'.")
    elif op == "incr":
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _invalid(index, "its 'value' must be a number.")
    elif op != "remove":
        if "value" not in given:
            raise _invalid(index, "it needs a 'value'.")
        if isinstance(value, _NESTED):
            item_body.count_members(value, limits.item_depth)
    return PatchOperation(index, op, str(path), steps, value, source)


def patch_from_value(given: object, limits: Limits, protected: Iterable[str | Steps]) -> Patch:
    """The patch in a parsed request: an object with operations and a condition, or operations alone."""
    condition: object = None
    operations = given
    if isinstance(given, dict):
        operations = given.get("operations")
        condition = given.get("condition")
    if not isinstance(operations, list) or not operations:
        raise errors.BAD_REQUEST(reason="A patch needs 'operations', an array that is not empty.")
    if len(operations) > limits.patch_operations:
        raise errors.BAD_REQUEST(
            reason=f"The number of patch operations can't exceed {limits.patch_operations}. This patch has "
            f"{len(operations)}."
        )
    if condition is not None and not isinstance(condition, str):
        raise errors.BAD_REQUEST(reason="The 'condition' of a patch must be a string.")
    keys = frozenset(_key_path_steps(path) for path in protected)
    checked = tuple(_operation(index, each, limits, keys) for index, each in enumerate(operations))
    return Patch(checked, condition or None, limits.item_depth)


def parse_patch(body: bytes, limits: Limits, protected: Iterable[str | Steps]) -> Patch:
    """The patch in a request body; ``protected`` are the partition key paths, as texts or as steps."""
    value = item_body.load(body)
    if not isinstance(value, _NESTED):
        raise errors.BAD_JSON(reason="a patch must be a JSON object.")
    item_body.check_depth(body, value, limits.item_depth + _DEPTH_AROUND_VALUE)
    return patch_from_value(item_body.exact(body, value), limits, protected)


def _copy(value: Any) -> Any:
    """A copy of a JSON value that shares only what cannot change; its depth is the item's, so bounded."""
    if isinstance(value, dict):
        return {name: _copy(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_copy(child) for child in value]
    return value


def _parent(item: dict[str, Any], operation: PatchOperation, steps: Steps) -> dict[str, Any] | list[Any]:
    """The object or array that holds the last step."""
    place: Any = item
    for step in steps[:-1]:
        if isinstance(place, dict) and step in place:
            place = place[step]
        elif isinstance(place, list):
            place = place[_index(place, operation, step)]
        else:
            raise operation.no_way_to(step)
    if not isinstance(place, _NESTED):
        raise operation.failed("the target's parent is neither an object nor an array.")
    return place


def _index(array: list[Any], operation: PatchOperation, step: str, *, past_end: bool = False) -> int:
    """The array index that a step names; one past the end only where an element may be inserted."""
    if _ARRAY_INDEX.fullmatch(step) is None:
        raise operation.failed(f"'{step[:100]}' is not an array index.")
    index = int(step)
    if index >= len(array) + past_end:
        raise operation.failed(
            f"Index({step}) to operate on is out of array bounds: the array has {len(array)} elements."
        )
    return index


def _add(item: dict[str, Any], operation: PatchOperation, value: Any) -> None:
    parent, last = _parent(item, operation, operation.steps), operation.steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_index(parent, operation, last, past_end=True), value)


def _set(item: dict[str, Any], operation: PatchOperation, value: Any) -> None:
    parent, last = _parent(item, operation, operation.steps), operation.steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent[_index(parent, operation, last)] = value


def _replace(item: dict[str, Any], operation: PatchOperation, value: Any) -> None:
    parent, last = _parent(item, operation, operation.steps), operation.steps[-1]
    if isinstance(parent, list):
        parent[_index(parent, operation, last)] = value
    elif last in parent:
        parent[last] = value
    else:
        raise operation.absent(last, "replaced")


def _remove(item: dict[str, Any], operation: PatchOperation, steps: Steps) -> Any:
    parent, last = _parent(item, operation, steps), steps[-1]
    if isinstance(parent, list):
        return parent.pop(_index(parent, operation, last))
    if last not in parent:
        raise operation.absent(last, "removed")
    return parent.pop(last)


def _sum(operation: PatchOperation, number: Any, increment: Any) -> int | float:
    """Integers stay integers while they fit 64 bits and are floats beyond."""
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise operation.failed(f"Node({operation.steps[-1][:100]}) is not a number.")
    total: int | float = number + increment
    if isinstance(total, int) and not _INTEGER_MIN <= total <= _INTEGER_MAX:
        return float(total)
    if isinstance(total, float) and not math.isfinite(total):
        raise operation.failed("the sum is beyond the range of numbers.")
    return total


def _increment(item: dict[str, Any], operation: PatchOperation) -> None:
    parent, last = _parent(item, operation, operation.steps), operation.steps[-1]
    if isinstance(parent, list):
        index = _index(parent, operation, last)
        parent[index] = _sum(operation, parent[index], operation.value)
    elif last in parent:
        parent[last] = _sum(operation, parent[last], operation.value)
    else:
        parent[last] = operation.value


def members(item: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Some properties of an item as they are now, whatever is done to it later."""
    return {name: _copy(item[name]) for name in names if name in item}


def apply(item: dict[str, Any], patch: Patch) -> dict[str, Any]:
    """A new item with the patch applied; BAD_REQUEST when an operation does not fit the item."""
    patched: dict[str, Any] = _copy(item)
    change(patched, patch)
    return patched


def change(patched: dict[str, Any], patch: Patch) -> None:
    """Applies the patch to an item itself, which is of no use any more after BAD_REQUEST."""
    for operation in patch.operations:
        if operation.op == "add":
            _add(patched, operation, _copy(operation.value))
        elif operation.op == "set":
            _set(patched, operation, _copy(operation.value))
        elif operation.op == "replace":
            _replace(patched, operation, _copy(operation.value))
        elif operation.op == "incr":
            _increment(patched, operation)
        elif operation.source is None:
            _remove(patched, operation, operation.steps)
        else:
            _add(patched, operation, _remove(patched, operation, operation.source))
    if patch.may_deepen:
        item_body.count_members(patched, patch.item_depth)
