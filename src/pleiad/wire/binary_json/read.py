"""Reads binary JSON into plain values, or into the JSON text a client would have sent instead.

Members keep their order and numbers their exact values; a double that is whole is an integer, as in the shortest text.

Invariants: a container ends exactly where its length says and has as many entries as its count says; a name occurs
once in an object; a reference leads backwards to a string that is no reference itself. What can make much of little
(references, names that one byte stands for, arrays of bare numbers) never makes more text than the caller allows.
"""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

import orjson

from pleiad.wire import MalformedError
from pleiad.wire.binary_json import DEPTH_MAX, strings

SYSTEM_STRINGS: Final = (
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
)

_LENGTH_BYTES = (1, 2, 4)
_SAFE_INTEGER_MAX = 2.0**53
_BARE_NUMBERS = {0xD7: "B", 0xD8: "b", 0xD9: "h", 0xDA: "i", 0xDB: "q", 0xDC: "I", 0xCD: "f", 0xCE: "d"}
_NUMBERS = {0xC7: "Q", 0xC8: "B", 0xC9: "h", 0xCA: "i", 0xCB: "q", 0xCC: "d", **_BARE_NUMBERS}
_UNPACKERS = {marker: struct.Struct("<" + letter) for marker, letter in _NUMBERS.items()}
_SEPARATOR_BYTES = 3
"""What stands around a value in text: quotes or brackets, and a comma."""


class TextTooLongError(MalformedError):
    """The bytes stand for more text than the caller takes."""


def to_text(data: bytes, text_bytes_max: int) -> bytes:
    """The JSON text of a body in binary JSON."""
    try:
        text = orjson.dumps(to_value(data, text_bytes_max))
    except orjson.JSONEncodeError:
        raise MalformedError("it nests too deeply") from None
    if len(text) > text_bytes_max:
        raise TextTooLongError(f"its text has more than {text_bytes_max} bytes")
    return text


def to_value(data: bytes, text_bytes_max: int) -> Any:
    """The value of a body in binary JSON; `text_bytes_max` bounds what its repetitions make of it."""
    if data[:1] != b"\x80":
        raise MalformedError("it does not begin with the byte 80")
    reader = _Reader(data, text_bytes_max)
    try:
        value, end = reader.value(1, len(data), 0)
    except UnicodeDecodeError:
        raise MalformedError("a string in it is not UTF-8") from None
    if end != len(data):
        raise MalformedError(f"{len(data) - end} bytes follow its value")
    return value


class _Reader:
    """One body and what its repetitions may still add to the text."""

    __slots__ = ("data", "referred", "spare_bytes")

    def __init__(self, data: bytes, text_bytes_max: int) -> None:
        self.data = data
        self.spare_bytes = text_bytes_max
        self.referred: dict[bytes, str] = {}
        """The strings that references led to, by the places of their markers as they are written: numbers of a client
        could be chosen so that each look-up takes long."""

    def value(self, place: int, end: int, depth: int) -> tuple[Any, int]:
        """The value at a place, which must end before `end`, and the place behind it."""
        if place >= end:
            raise MalformedError(f"a value is missing at byte {place}")
        marker = self.data[place]
        return _READERS[marker](self, marker, place, end, depth)

    def name(self, place: int, end: int) -> tuple[str, int]:
        """The string at a place, and the place behind it."""
        if place >= end:
            raise MalformedError(f"a name is missing at byte {place}")
        marker = self.data[place]
        if not _IS_STRING[marker]:
            raise MalformedError(f"the name at byte {place} is not a string: its marker is {marker:02X}")
        name, place = _READERS[marker](self, marker, place, end, 0)
        return name, place

    def cut(self, place: int, size: int, end: int) -> tuple[bytes, int]:
        """The next bytes, once they are known to be there."""
        behind = place + size
        if behind > end:
            raise MalformedError(f"{size} bytes at byte {place} reach beyond the end")
        return self.data[place:behind], behind

    def number(self, place: int, size: int, end: int) -> tuple[int, int]:
        """A length, count or offset of so many bytes."""
        raw, place = self.cut(place, size, end)
        return int.from_bytes(raw, "little"), place

    def spend(self, size_bytes: int) -> None:
        """Counts text that is more than its bytes here."""
        self.spare_bytes -= size_bytes
        if self.spare_bytes < 0:
            raise TextTooLongError("its text is too long: it repeats too much")


# -- strings -----------------------------------------------------------------------------------------


def _short_string(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    behind = place + marker - 0x7F
    if behind > end:
        raise MalformedError(f"the string at byte {place} reaches beyond the end")
    return reader.data[place + 1 : behind].decode(), behind


def _long_string(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    size, place = reader.number(place + 1, _LENGTH_BYTES[marker - 0xC0], end)
    raw, place = reader.cut(place, size, end)
    return raw.decode(), place


def _system_string(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    text = SYSTEM_STRINGS[marker - 0x20]
    reader.spend(len(text) + _SEPARATOR_BYTES)
    return text, place + 1


def _reference(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    written, behind = reader.cut(place + 1, marker - 0xC2, end)
    text = reader.referred.get(written)
    if text is None:
        target = int.from_bytes(written, "little")
        aim = reader.data[target] if 0 < target < place else 0xFF
        if not _IS_STRING[aim] or 0xC3 <= aim <= 0xC6:
            raise MalformedError(f"the reference at byte {place} leads to byte {target}, where no string is")
        text, _ = _READERS[aim](reader, aim, target, place, 0)
        reader.referred[written] = text
    reader.spend(len(text) + _SEPARATOR_BYTES)
    return text, behind


def _base64(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    groups, place = reader.number(place + 1, 1 if marker in (0x71, 0x73) else 2, end)
    padding, place = reader.number(place, 1, end)
    raw, place = reader.cut(place, strings.base64_raw_bytes(groups, padding), end)
    return strings.base64_text(raw, padding, marker >= 0x73), place


def _guid_text(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    raw, place = reader.cut(place + 1, 16, end)
    text = strings.guid(raw, strings.UPPER_HEX if marker == 0x76 else strings.LOWER_HEX)
    return (f'"{text}"' if marker == 0x77 else text), place


_ALPHABETS = {0x78: strings.LOWER_HEX, 0x79: strings.UPPER_HEX, 0x7A: strings.DATE_TIME}


def _halved(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    count, place = reader.number(place + 1, 1, end)
    raw, place = reader.cut(place, (count + 1) // 2, end)
    return strings.halved(raw, count, _ALPHABETS[marker]), place


def _packed(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    count, place = reader.number(place + 1, 2 if marker == 0x7F else 1, end)
    bits, base = min(marker - 0x7B + 4, 7), 0
    if bits < 7:
        base, place = reader.number(place, 1, end)
    raw, place = reader.cut(place, (bits * count + 7) // 8, end)
    return strings.packed(raw, count, bits, base), place


def _no_dictionary(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    raise MalformedError(f"the string at byte {place} is in a dictionary that nobody has agreed upon")


# -- other values ------------------------------------------------------------------------------------


def _literal(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[Any, int]:
    return _LITERALS[marker](), place + 1


_LITERALS: dict[int, Callable[[], Any]] = {
    0xD0: lambda: None,
    0xD1: lambda: False,
    0xD2: lambda: True,
    0xE0: list,
    0xE8: dict,
}


def _small_integer(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[int, int]:
    return marker, place + 1


def _number(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[float, int]:
    unpacker = _UNPACKERS[marker]
    behind = place + 1 + unpacker.size
    if behind > end:
        raise MalformedError(f"the number at byte {place} reaches beyond the end")
    value = unpacker.unpack_from(reader.data, place + 1)[0]
    return (value if value.__class__ is int else _shortest(value)), behind


def _shortest(value: float) -> float:
    """A number without a fraction that says nothing; of a negative zero whoever stores it decides."""
    if value.__class__ is int:
        return value
    if not math.isfinite(value):
        raise MalformedError("a number in it is not finite")
    is_whole = value.is_integer() and -_SAFE_INTEGER_MAX <= value <= _SAFE_INTEGER_MAX
    return int(value) if is_whole and (value or math.copysign(1.0, value) > 0) else value


def _typed_guid(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    raw, place = reader.cut(place + 1, 16, end)
    return str(UUID(bytes_le=raw)), place


def _blob(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[str, int]:
    size, place = reader.number(place + 1, _LENGTH_BYTES[marker - 0xDD], end)
    raw, place = reader.cut(place, size, end)
    return b64encode(raw).decode("ascii"), place


# -- containers --------------------------------------------------------------------------------------


def _extent(reader: _Reader, form: int, place: int, end: int) -> tuple[int, int, int | None]:
    """Where the entries of a container begin and end, and how many it says there are.

    Forms from 2 on have a length, forms from 5 on a count behind it, in one, two or four bytes.
    """
    size_bytes = _LENGTH_BYTES[(form - 2) % 3]
    size, place = reader.number(place, size_bytes, end)
    count = None
    if form >= 5:
        count, place = reader.number(place, size_bytes, end)
    if size > end - place:
        raise MalformedError(f"the container at byte {place} reaches beyond its end")
    return place, place + size, count


def _check_depth(depth: int) -> None:
    if depth > DEPTH_MAX:
        raise MalformedError(f"it nests deeper than {DEPTH_MAX} levels")


def _check_count(place: int, count: int, wanted: int | None) -> None:
    if wanted is not None and count != wanted:
        raise MalformedError(f"the container that ends at byte {place} has {count} entries and not {wanted}")


def _array(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[list[Any], int]:
    _check_depth(depth := depth + 1)
    if marker == 0xE1:
        only, place = reader.value(place + 1, end, depth)
        return [only], place
    place, end, wanted = _extent(reader, marker - 0xE0, place + 1, end)
    data, items = reader.data, []
    while place < end:
        marker = data[place]
        item, place = _READERS[marker](reader, marker, place, end, depth)
        items.append(item)
    _check_count(place, len(items), wanted)
    return items, place


def _object(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[dict[str, Any], int]:
    _check_depth(depth := depth + 1)
    if marker == 0xE9:
        name, place = reader.name(place + 1, end)
        only, place = reader.value(place, end, depth)
        return {name: only}, place
    place, end, wanted = _extent(reader, marker - 0xE8, place + 1, end)
    data, members, count = reader.data, {}, 0
    while place < end:
        marker = data[place]
        behind = place + marker - 0x7F
        if 0x80 <= marker < 0xC0 and behind < end:
            # Nearly every name: the short string, read without a call.
            name = data[place + 1 : behind].decode()
            place = behind
        else:
            name, place = reader.name(place, end)
            if place >= end:
                raise MalformedError(f"a value is missing at byte {place}")
        marker = data[place]
        members[name], place = _READERS[marker](reader, marker, place, end, depth)
        count += 1
    _check_count(place, count, wanted)
    if len(members) != count:
        raise MalformedError("a property name occurs twice in one object")
    return members, place


def _bare_numbers(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[list[Any], int]:
    """An array of numbers of one type, or one of arrays of these, all of one length."""
    is_nested = marker >= 0xF2
    _check_depth(depth + 1 + is_nested)
    if is_nested:
        place += 1
        inner, _ = reader.number(place, 1, end)
        if inner != marker - 2:
            raise MalformedError(f"arrays of numbers at byte {place} hold the marker {inner:02X}")
    item, place = reader.number(place + 1, 1, end)
    letter = _BARE_NUMBERS.get(item)
    if letter is None:
        raise MalformedError(f"an array of numbers at byte {place} has items of the marker {item:02X}")
    count_bytes = 1 if marker in (0xF0, 0xF2) else 2
    count, place = reader.number(place, count_bytes, end)
    rows = 1
    if is_nested:
        rows, place = reader.number(place, count_bytes, end)
    raw, place = reader.cut(place, rows * count * struct.calcsize("<" + letter), end)
    reader.spend(_SEPARATOR_BYTES * rows * (1 + count))
    numbers = [_shortest(number) for number in struct.unpack(f"<{rows * count}{letter}", raw)]
    if not is_nested:
        return numbers, place
    return [numbers[row * count : (row + 1) * count] for row in range(rows)], place


# -- which marker is what ------------------------------------------------------------------------------


def _refused(reader: _Reader, marker: int, place: int, end: int, depth: int) -> tuple[Any, int]:
    raise MalformedError(f"there is no value with the marker {marker:02X}, at byte {place}")


_Read = Callable[[_Reader, int, int, int, int], tuple[Any, int]]

_STRING_FORMS: list[tuple[Iterable[int], _Read]] = [
    (range(0x20, 0x40), _system_string),
    (range(0x40, 0x68), _no_dictionary),
    (range(0x71, 0x75), _base64),
    (range(0x75, 0x78), _guid_text),
    (range(0x78, 0x7B), _halved),
    (range(0x7B, 0x80), _packed),
    (range(0x80, 0xC0), _short_string),
    (range(0xC0, 0xC3), _long_string),
    (range(0xC3, 0xC7), _reference),
]
_OTHER_FORMS: list[tuple[Iterable[int], _Read]] = [
    (range(0x00, 0x20), _small_integer),
    (_NUMBERS, _number),
    (_LITERALS, _literal),
    (range(0xD3, 0xD4), _typed_guid),
    (range(0xDD, 0xE0), _blob),
    (range(0xE1, 0xE8), _array),
    (range(0xE9, 0xF0), _object),
    (range(0xF0, 0xF4), _bare_numbers),
]
_IS_STRING = [any(marker in markers for markers, _ in _STRING_FORMS) for marker in range(256)]
_READERS: list[_Read] = [_refused] * 256
for _markers, _read in _STRING_FORMS + _OTHER_FORMS:
    for _marker in _markers:
        _READERS[_marker] = _read
