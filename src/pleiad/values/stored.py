"""The form in which items keep values: JSON, and ``{"$t": code, "$v": …}`` for what JSON cannot say exactly.

Plain are strings, booleans, null, arrays, objects, integers and finite doubles; a double is written with a point or
an exponent, which tells it from an integer. The codes are those of the service's own form of table rows, and BSON's
where that has none. Codes from 64 on are of types that only CQL has.

An object of a client's own that has a ``$t`` is kept inside of code 3. Other heads write to the same containers, so
an object may also look like a tag and be none; only the exact form that ``to_stored`` writes is one, and everything
else is the object it is. So reading never fails, and nothing is lost: what was read is written back with the same
meaning.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from pleiad.values import scalars
from pleiad.values.refusal import RefusedValue
from pleiad.values.undefined import UNDEFINED, Undefined

DEPTH_MAX: Final = 128
"""How deeply arrays and objects may be nested; items are not deeper."""

TYPE: Final = "$t"
VALUE: Final = "$v"
SUBTYPE: Final = "$s"
_ESCAPE: Final = 3
_JSON_INTEGERS: Final = range(-(2**63), 2**64)
_PLAIN: Final = frozenset({str, bool, type(None)})
_TICKS_DIGITS: Final = 20
_DOUBLES: Final[Mapping[str, float]] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_stored(value: Any, depth: int = 0) -> Any:
    """The JSON value that an item keeps for a value; RefusedValue for what is no value, and for too deep a nesting."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind is int:
        if value not in _JSON_INTEGERS:
            raise RefusedValue("An integer of more than 64 bits has no form in JSON that every reader keeps.")
        return value
    if kind is float:
        return value if math.isfinite(value) else {TYPE: 1, VALUE: _double_text(value)}
    if depth >= DEPTH_MAX:
        raise RefusedValue(f"A value is nested deeper than {DEPTH_MAX} levels.")
    if kind is list or kind is tuple:
        return [to_stored(each, depth + 1) for each in value]
    if kind is dict:
        found = {name: to_stored(each, depth + 1) for name, each in value.items()}
        return {TYPE: _ESCAPE, VALUE: found} if TYPE in found else found
    if kind is scalars.CodeWithScope:
        return {
            TYPE: _CODE_WITH_SCOPE,
            VALUE: {"code": value.text, "scope": to_stored(value.scope, depth + 1)},
        }
    tag = _TAGS.get(kind)
    if tag is None:
        raise RefusedValue(f"There is no value of the type {kind.__name__}.")
    if kind is scalars.Binary and value.subtype:
        return {TYPE: tag.code, VALUE: tag.write(value), SUBTYPE: value.subtype}
    return {TYPE: tag.code, VALUE: tag.write(value)}


def from_stored(value: Any, depth: int = 0) -> Any:
    """The value that an item keeps as this JSON value; it never fails on JSON that is not nested too deeply."""
    kind = value.__class__
    if kind is list:
        if depth >= _STORED_DEPTH_MAX:
            raise RefusedValue(f"A value is nested deeper than {DEPTH_MAX} levels.")
        return [from_stored(each, depth + 1) for each in value]
    if kind is not dict:
        return value
    if depth >= _STORED_DEPTH_MAX:
        raise RefusedValue(f"A value is nested deeper than {DEPTH_MAX} levels.")
    if TYPE in value:
        found = _tagged(value, depth)
        if found is not None:
            return found[0]
    return {name: from_stored(each, depth + 1) for name, each in value.items()}


_STORED_DEPTH_MAX: Final = 2 * DEPTH_MAX + 2
"""Escapes and scopes put objects into objects."""


def _tagged(given: dict[str, Any], depth: int) -> tuple[Any] | None:
    """The value of an object that is exactly a tag, in a tuple; None for every other object."""
    code, body = given[TYPE], given.get(VALUE)
    if code.__class__ is not int or not 2 <= len(given) <= 3 or VALUE not in given:
        return None
    if code == _ESCAPE:
        if len(given) != 2 or body.__class__ is not dict or TYPE not in body:
            return None
        return ({name: from_stored(each, depth + 2) for name, each in body.items()},)
    if code == _CODE_WITH_SCOPE:
        return _code_with_scope(given, body, depth)
    read = _READERS.get(code)
    if read is None:
        return None
    try:
        value = read(body) if len(given) == 2 else scalars.Binary(_from_base64(body), given[SUBTYPE])
        is_exact = _same(to_stored(value), given)
    except (ValueError, TypeError, KeyError):
        return None
    return (value,) if is_exact else None


def _same(made: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether two tags are the same to the letter; to Python true is 1, and 1.0 is 1."""
    return bool(_typed(made) == _typed(given))


def _typed(value: Any) -> Any:
    if value.__class__ is dict:
        return {name: _typed(each) for name, each in value.items()}
    return (value.__class__, value)


def _code_with_scope(given: dict[str, Any], body: Any, depth: int) -> tuple[Any] | None:
    if len(given) != 2 or body.__class__ is not dict or body.keys() != {"code", "scope"}:
        return None
    scope = from_stored(body["scope"], depth + 2)
    if body["code"].__class__ is not str or scope.__class__ is not dict:
        return None
    return (scalars.CodeWithScope(body["code"], scope),)


# -- one tag for each type -----------------------------------------------------------------------


class _Tag:
    """A type's code, and its text or JSON value in both directions."""

    __slots__ = ("code", "read", "write")

    def __init__(self, code: int, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
        self.code, self.write, self.read = code, write, read


def _double_text(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _guid_text(value: scalars.Guid | scalars.TimeUuid) -> str:
    text = value.data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _guid_data(text: Any) -> bytes:
    return bytes.fromhex(_text(text, 36).replace("-", ""))


def _base64(value: scalars.Binary | scalars.Inet) -> str:
    return base64.b64encode(value.data).decode()


def _from_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(_text(text), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def _text(value: Any, length: int | None = None) -> str:
    if value.__class__ is not str or (length is not None and len(value) != length):
        raise ValueError("not a text of that length")
    found: str = value
    return found


def _integer(text: Any) -> int:
    if len(_text(text)) > _INTEGER_CHARS_MAX:
        raise ValueError("a number of too many digits")
    return int(text)


_INTEGER_CHARS_MAX: Final = 4_100


def _ticks_text(value: scalars.DateTime) -> str:
    """With zeros in front, so that the texts of usual dates have the order of the dates."""
    return f"{value.ticks:0{_TICKS_DIGITS}}" if value.ticks >= 0 else str(value.ticks)


def _int_tag(code: int, kind: Callable[[int], Any], attribute: str = "value") -> _Tag:
    return _Tag(code, lambda each: str(getattr(each, attribute)), lambda text: kind(_integer(text)))


def _empty_tag(code: int, value: Any) -> _Tag:
    return _Tag(code, lambda _: None, lambda _: value)


def _object_tag(code: int, kind: Callable[..., Any], fields: Mapping[str, str]) -> _Tag:
    """A type of parts: their names in the object, and those of the attributes."""

    def read(body: Any) -> Any:
        if body.__class__ is not dict or body.keys() != fields.keys():
            raise ValueError("not the parts of that type")
        return kind(*[body[name] for name in fields])

    return _Tag(code, lambda each: {name: getattr(each, field) for name, field in fields.items()}, read)


_CODE_WITH_SCOPE: Final = 15
_TAGS: Final[dict[type, _Tag]] = {
    scalars.Guid: _Tag(0, _guid_text, lambda text: scalars.Guid(_guid_data(text))),
    scalars.Binary: _Tag(5, _base64, lambda text: scalars.Binary(_from_base64(text))),
    Undefined: _empty_tag(6, UNDEFINED),
    scalars.MinKey: _empty_tag(-1, scalars.MinKey()),
    scalars.MaxKey: _empty_tag(127, scalars.MaxKey()),
    scalars.ObjectId: _Tag(
        7, lambda each: each.data.hex(), lambda text: scalars.ObjectId(bytes.fromhex(_text(text, 24)))
    ),
    scalars.DateTime: _Tag(9, _ticks_text, lambda text: scalars.DateTime(_integer(text))),
    scalars.Regex: _object_tag(11, scalars.Regex, {"pattern": "pattern", "options": "options"}),
    scalars.Code: _object_tag(13, scalars.Code, {"code": "text"}),
    scalars.Timestamp: _Tag(
        17, lambda each: f"{each.value:020}", lambda text: scalars.Timestamp(_integer(text))
    ),
    scalars.Int64: _int_tag(18, scalars.Int64),
    scalars.Decimal128: _Tag(19, lambda each: each.text, scalars.Decimal128),
    scalars.Varint: _int_tag(64, scalars.Varint),
    scalars.BigDecimal: _Tag(65, lambda each: each.text, scalars.BigDecimal),
    scalars.Inet: _Tag(66, _base64, lambda text: scalars.Inet(_from_base64(text))),
    scalars.Date: _int_tag(67, scalars.Date, "days"),
    scalars.Time: _int_tag(68, scalars.Time, "nanoseconds"),
    scalars.Duration: _object_tag(
        69, scalars.Duration, {"months": "months", "days": "days", "nanoseconds": "nanoseconds"}
    ),
    scalars.Float32: _Tag(
        70, lambda each: repr(each.value), lambda text: scalars.Float32(float(_text(text)))
    ),
    scalars.SmallInt: _int_tag(71, scalars.SmallInt),
    scalars.TinyInt: _int_tag(72, scalars.TinyInt),
    scalars.TimeUuid: _Tag(73, _guid_text, lambda text: scalars.TimeUuid(_guid_data(text))),
}
_READERS: Final[dict[int, Callable[[Any], Any]]] = {
    1: lambda text: _DOUBLES[_text(text)],
    **{tag.code: tag.read for tag in _TAGS.values()},
}
