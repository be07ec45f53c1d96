"""The JSON text of an item: reading it strictly, keeping it exactly, giving it back with system properties.

Strings come back to clients byte for byte as they were sent, and integers of 64 bits digit for digit. So what is
stored is the client's own text (``stored_body``), in which only numbers that are not in their shortest form are
written anew (``numbers``); the parsed value is only for looking at. A patched item is the one case where a whole text
is written anew; ``parse_exact`` and ``dump_exact`` then carry the text of every untouched number through.

Limits: nesting up to ``Limits.item_depth`` levels, the item's own object being the first. The size of an
item is checked by the caller, who knows it before parsing.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.item import scan
from pleiad.limits import Limits

SYSTEM_PROPERTIES: Final = frozenset({"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"})

_SPACE_BEFORE_COLON = re.compile(rb'"[ \t\r\n]+:')
# A name that starts with an underscore shows it as such or escaped.
_LEADING_UNDERSCORE = re.compile(rb'"(?:_|\\u005)')
_NUL = b"\\u0000"
"""As any JSON text has to write it."""
_INTEGER_MIN = -(2**63)
_INTEGER_MAX = 2**64 - 1


class ExactFloat(float):
    """A number that remembers the text it was written as; arithmetic on it gives plain floats."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> ExactFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number


def _json_error(error: Exception) -> PleiadError:
    """The table's error for a parser's complaint, in words a client can act on."""
    text = str(error)
    if "depth limit" in text or "recursion" in text:
        return errors.BAD_REQUEST(reason="The JSON is nested too deeply.")
    if "UTF-8" in text and "byte order mark" not in text:
        return errors.BAD_JSON(reason="the text is not valid UTF-8.")
    if "surrogate" in text:
        position = text.partition(": ")[2]
        return errors.BAD_JSON(
            reason=f"a string has a lone surrogate escape, which is no character: {position}"
        )
    return errors.BAD_JSON(reason=text)


def load(raw: bytes) -> Any:
    """The value of a strict JSON text of any type; BAD_JSON when it is malformed."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _json_error(error) from error


def count_members(value: dict[str, Any] | list[Any], depth_max: int) -> int:
    """The number of object members in a value at all levels; BAD_REQUEST when it nests too deeply."""
    count = 0
    depth = 0
    level: list[Any] = [value]
    while level:
        depth += 1
        if depth > depth_max:
            raise errors.BAD_REQUEST(
                reason=f"The JSON is nested deeper than the limit of {depth_max} levels."
            )
        below: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                count += len(container)
                container = container.values()
            below += [child for child in container if child.__class__ is dict or child.__class__ is list]
        level = below
    return count


def check_names(raw: bytes, value: Any) -> None:
    """Refuse a name with U+0000: SQLite takes it for the end of the name, and with it one property for another."""
    if _NUL not in raw:
        return
    level = [value]
    while level:
        below: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                if any("\0" in name for name in container):
                    raise errors.BAD_JSON(reason="the name of a property has the character U+0000.")
                container = container.values()
            below += [child for child in container if child.__class__ is dict or child.__class__ is list]
        level = below


def with_names_once(raw: bytes, members: int) -> bytes:
    """The text in which no object names a property twice; ``members`` is what its parsed value holds.

    Where one does, its last value counts, as on the service and in most parsers, and the text is written anew: stores
    and clients differ in which value they would take.

    Each member of the text has one quote followed by a colon, unless white space stands between them. When
    the parsed value holds as many members as there are such pairs, no member was lost to a duplicate. Only
    a text that fails this count (a string may contain the pair as well) is parsed a second time to be sure.
    """
    if raw.count(b'":') == members and _SPACE_BEFORE_COLON.search(raw) is None:
        return raw
    is_repeated = False

    def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_repeated
        named = dict(pairs)
        is_repeated = is_repeated or len(named) < len(pairs)
        return named

    value = json.loads(raw, object_pairs_hook=named_once, parse_int=_exact_integer, parse_float=ExactFloat)
    return dump_exact(value) if is_repeated else raw


def check_depth(raw: bytes, value: dict[str, Any] | list[Any], depth_max: int) -> None:
    """Refuse a text, whose value is given with it, that nests too deeply."""
    if not _is_plainly_shallow(raw, depth_max):
        count_members(value, depth_max)


def check_names_unique(raw: bytes, members: int) -> None:
    """Refuse a text in which an object names a property twice, where no value may be lost."""
    if with_names_once(raw, members) is not raw:
        raise errors.BAD_JSON(reason="a property name occurs twice in one object.")


def _is_plainly_shallow(raw: bytes, depth_max: int) -> bool:
    """Whether some counting shows already that a text does not nest too deeply.

    Nothing nests deeper than there are brackets, be they in strings or not.
    """
    return raw.count(b"{") + raw.count(b"[") <= depth_max


def _is_plainly_named(raw: bytes, written: bytes) -> bool:
    """Whether what is written of the value of a text shows already that its names are good, and each of them once.

    Without a backslash no name has U+0000, and each quote begins or ends a string; a member that was lost to a
    duplicate is not written, so then quotes are missing.
    """
    return raw.find(b"\\") < 0 and (raw == written or raw.count(b'"') == written.count(b'"'))


def is_plain(written: bytes, limits: Limits) -> bool:
    """Whether `read` would give the text of an object that `dump` has written back as it is."""
    return written.find(b"\\") < 0 and _is_plainly_shallow(written, limits.item_depth)


def parse(raw: bytes, limits: Limits) -> tuple[bytes, dict[str, Any]]:
    """The item in a request body, as its text and for looking at; ``stored_body`` is what to keep."""
    return read(raw, limits)[:2]


def read(raw: bytes, limits: Limits) -> tuple[bytes, dict[str, Any], bytes]:
    """The same, and the compact text of the value: the very text that is given back, where it is compact and plain.

    BAD_JSON for malformed text, text that is not UTF-8, numbers beyond an IEEE double, lone surrogates, names with
    U+0000 and a value that is not an object; BAD_REQUEST for nesting over the limit. Of a property named twice in one
    object the last value counts, in the text as well.
    """
    try:
        item = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _json_error(error) from error
    if item.__class__ is not dict:
        raise errors.BAD_JSON(reason="an item must be a JSON object.")
    checked: dict[str, Any] = item
    if _is_plainly_shallow(raw, limits.item_depth):
        written = dump(checked)
        if _is_plainly_named(raw, written):
            return raw, checked, raw if raw == written else written
    members = count_members(item, limits.item_depth)
    check_names(raw, item)
    return with_names_once(raw, members), checked, dump(checked)


def strip_system(item: dict[str, Any]) -> None:
    """Remove, in place, the system properties that a client sends back with an item it has read."""
    for name in SYSTEM_PROPERTIES.intersection(item):
        del item[name]


def stored_body(raw: bytes, item: dict[str, Any]) -> bytes:
    """The text to store for an item: the client's own, without system properties and outer white space.

    ``raw`` and ``item`` come from ``parse``, the value before or after ``strip_system``.
    """
    if not item:
        return b"{}"
    if _LEADING_UNDERSCORE.search(raw) is None:
        return raw.strip()
    members = scan.members(raw)
    kept = [text for name, _, text in members if name not in SYSTEM_PROPERTIES]
    if len(kept) == len(members):
        return raw.strip()
    return b"{" + b",".join(kept) + b"}"


def dump(item: dict[str, Any]) -> bytes:
    """The compact JSON text of a value made by the server itself."""
    return orjson.dumps(item)


def dump_if_plain(item: dict[str, Any], limits: Limits) -> bytes | None:
    """The same of a value with no ExactFloat, where `is_plain` holds of it."""
    try:
        written = orjson.dumps(item)
    except orjson.JSONEncodeError:
        return None
    return written if is_plain(written, limits) else None


def splice(stored: bytes | str, system: bytes) -> bytes:
    """The text of an object with further members, given with a leading comma and the closing brace."""
    if isinstance(stored, str):
        stored = stored.encode()
    if len(stored) == 2:
        return b"{" + system[1:]
    return stored[:-1] + system


def _exact_integer(text: str) -> int | ExactFloat:
    number = int(text)
    if _INTEGER_MIN <= number <= _INTEGER_MAX and text != "-0":
        return number
    return ExactFloat(text)


def parse_exact(raw: bytes | str) -> Any:
    """The value of a text that is known to be good (a stored body), its numbers keeping their texts.

    Integers of 64 bits are ints; every other number is a float that ``dump`` writes as it was, or else an ExactFloat.
    Look at such a value only through ``isinstance``; for queries and index terms use ``load`` of the text instead.
    """
    text = raw.encode() if isinstance(raw, str) else raw
    return exact(text, orjson.loads(text))


def exact(text: bytes, value: Any) -> Any:
    """The same of a text whose value was read already; that value, where it has all there is in the text."""
    if orjson.dumps(value) == text:
        return value
    return json.loads(text, parse_int=_exact_integer, parse_float=ExactFloat)


def _render_exact(value: Any) -> Any:
    if isinstance(value, ExactFloat):
        return orjson.Fragment(value.text)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def dump_exact(value: Any) -> bytes:
    """The compact text of a value from ``parse_exact``, each ExactFloat as it was written."""
    return orjson.dumps(value, default=_render_exact)
