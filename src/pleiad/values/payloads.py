"""What stands behind the rank of a scalar: its bytes in both directions, as one profile has them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from pleiad.values import ranks
from pleiad.values.number import decode_number, encode_number
from pleiad.values.ranks import BinaryOrder, GuidOrder, Kind, Profile, TextOrder
from pleiad.values.scalars import (
    BigDecimal,
    Binary,
    Code,
    Date,
    DateTime,
    Decimal128,
    Duration,
    Float32,
    Guid,
    Inet,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    SmallInt,
    Time,
    Timestamp,
    TimeUuid,
    TinyInt,
    Varint,
)
from pleiad.values.text import ended, read_ended, utf8_bytes, utf8_text, utf16_bytes, utf16_text
from pleiad.values.undefined import UNDEFINED

Payload = Callable[[Any], bytes]
Decoder = Callable[[bytes, int], tuple[Any, int]]

_DECIMAL128_DIGITS: Final = 34
_DECIMAL128_EXPONENT_MAX: Final = 6111
"""Numbers beyond it have zeros at the end of their digits instead."""
_TICKS_BYTES: Final = 10
_TICKS_BIAS: Final = 1 << 79
_SIGNED_BYTES: Final = bytes(byte ^ 0x80 for byte in range(256))
_LENGTH_FIRST = struct.Struct(">IB")
_DURATION = struct.Struct(">IIQ")


def _biased(attribute: str, size: int, bias: int) -> Payload:
    return lambda value: (getattr(value, attribute) + bias).to_bytes(size, "big")


def _data(value: Any) -> bytes:
    found: bytes = value.data
    return found


def _nothing(_: Any) -> bytes:
    return b""


def payloads(profile: Profile) -> dict[Kind, Payload]:
    """For each kind of scalars what makes its bytes."""
    text = utf16_bytes if profile.text is TextOrder.UTF_16 else utf8_bytes
    numbers: dict[Kind, Payload] = dict.fromkeys(ranks.NUMBERS, lambda each: encode_number(each.value))
    decimals: dict[Kind, Payload] = dict.fromkeys(
        (Kind.DECIMAL128, Kind.BIG_DECIMAL), lambda each: encode_number(each.number)
    )
    return {
        **dict.fromkeys((Kind.MIN_KEY, Kind.UNDEFINED, Kind.NULL, Kind.MAX_KEY), _nothing),
        **numbers,
        **decimals,
        Kind.INTEGER: encode_number,
        Kind.DOUBLE: encode_number,
        Kind.BOOLEAN: lambda each: b"\x01" if each else b"\x00",
        Kind.STRING: lambda each: ended(text(each)),
        Kind.BINARY: _length_first if profile.binary is BinaryOrder.LENGTH_FIRST else _ended_binary,
        Kind.OBJECT_ID: _data,
        Kind.DATE_TIME: _biased("ticks", _TICKS_BYTES, _TICKS_BIAS),
        Kind.TIMESTAMP: _biased("value", 8, 0),
        Kind.REGEX: lambda each: ended(text(each.pattern)) + ended(text(each.options)),
        Kind.CODE: lambda each: ended(text(each.text)),
        Kind.GUID: _by_version if profile.guids is GuidOrder.VERSION_FIRST else _data,
        Kind.TIME_UUID: lambda each: _timed(each.data)[:8] + each.data[8:].translate(_SIGNED_BYTES),
        Kind.INET: lambda each: ended(each.data),
        Kind.DATE: _biased("days", 4, 1 << 31),
        Kind.TIME: _biased("nanoseconds", 8, 0),
        Kind.DURATION: lambda each: _DURATION.pack(
            each.months + (1 << 31), each.days + (1 << 31), each.nanoseconds + (1 << 63)
        ),
    }


def _length_first(value: Binary) -> bytes:
    return _LENGTH_FIRST.pack(len(value.data), value.subtype) + value.data


def _ended_binary(value: Binary) -> bytes:
    return ended(value.data) + bytes([value.subtype])


def _timed(data: bytes) -> bytes:
    """A UUID of version 1 with its time from the highest byte to the lowest; the version stands first."""
    return data[6:8] + data[4:6] + data[0:4] + data[8:]


def _untimed(data: bytes) -> bytes:
    return data[4:8] + data[2:4] + data[0:2] + data[8:]


def _by_version(value: Guid) -> bytes:
    version = value.data[6] >> 4
    return bytes([version]) + (_timed(value.data) if version == 1 else value.data)


# -- and back ------------------------------------------------------------------------------------


def _fixed(size: int, make: Callable[[bytes], Any]) -> Decoder:
    def read(data: bytes, start: int) -> tuple[Any, int]:
        found = data[start : start + size]
        if len(found) < size:
            raise ValueError("a key that ends early")
        return make(found), start + size

    return read


def _number_at(size: int, bias: int, make: Callable[[int], Any]) -> Decoder:
    return _fixed(size, lambda found: make(int.from_bytes(found, "big") - bias))


def decoders(profile: Profile) -> dict[Kind, Decoder]:
    """For each kind of scalars what reads its bytes; ValueError, IndexError or struct.error where there are none."""
    text_of = utf16_text if profile.text is TextOrder.UTF_16 else utf8_text

    def texts(count: int, make: Callable[..., Any]) -> Decoder:
        def read(data: bytes, start: int) -> tuple[Any, int]:
            found = []
            for _ in range(count):
                part, start = read_ended(data, start)
                found.append(text_of(part))
            return make(*found), start

        return read

    is_length_first = profile.binary is BinaryOrder.LENGTH_FIRST
    return {
        Kind.MIN_KEY: _fixed(0, lambda _: MinKey()),
        Kind.UNDEFINED: _fixed(0, lambda _: UNDEFINED),
        Kind.NULL: _fixed(0, lambda _: None),
        Kind.MAX_KEY: _fixed(0, lambda _: MaxKey()),
        **{
            kind: number_as(kind) if _is_alone(kind, profile) else _number_of(profile)
            for kind in ranks.NUMBERS
        },
        Kind.BOOLEAN: _fixed(1, _boolean),
        Kind.STRING: texts(1, str),
        Kind.BINARY: _read_length_first if is_length_first else _read_binary,
        Kind.OBJECT_ID: _fixed(12, ObjectId),
        Kind.DATE_TIME: _number_at(_TICKS_BYTES, _TICKS_BIAS, DateTime),
        Kind.TIMESTAMP: _number_at(8, 0, Timestamp),
        Kind.REGEX: texts(2, Regex),
        Kind.CODE: texts(1, Code),
        Kind.GUID: _fixed(17, _guid_by_version)
        if profile.guids is GuidOrder.VERSION_FIRST
        else _fixed(16, Guid),
        Kind.TIME_UUID: _fixed(
            16, lambda found: TimeUuid(_untimed(found[:8] + found[8:].translate(_SIGNED_BYTES)))
        ),
        Kind.INET: _read_inet,
        Kind.DATE: _number_at(4, 1 << 31, Date),
        Kind.TIME: _number_at(8, 0, Time),
        Kind.DURATION: _fixed(16, _duration),
    }


def _number_of(profile: Profile) -> Decoder:
    """Numbers as values of the API: a decimal needs a type that holds it."""

    def read(data: bytes, start: int) -> tuple[Any, int]:
        number, end = decode_number(data, start)
        if not isinstance(number, Decimal):
            return number, end
        if Kind.BIG_DECIMAL in profile.ranks:
            return BigDecimal(str(number)), end
        if Kind.DECIMAL128 in profile.ranks:
            return _decimal128(number), end
        raise ValueError("a number that the API does not have")

    return read


def _is_alone(kind: Kind, profile: Profile) -> bool:
    return kind in profile.ranks and list(profile.ranks.values()).count(profile.ranks[kind]) == 1


def number_as(kind: Kind) -> Decoder:
    """Numbers of one known type."""
    make = _NUMBER_TYPES[kind]

    def read(data: bytes, start: int) -> tuple[Any, int]:
        number, end = decode_number(data, start)
        try:
            made = make(number)
        except (TypeError, OverflowError) as error:
            raise ValueError("a number of another type") from error
        if encode_number(getattr(made, "number", getattr(made, "value", made))) != data[start:end]:
            raise ValueError("a number of another type")
        return made, end

    return read


def _decimal128(number: int | float | Decimal) -> Decimal128:
    exact = Decimal(number)
    if exact.is_finite() and (
        len(exact.as_tuple().digits) > _DECIMAL128_DIGITS or exact.adjusted() > _DECIMAL128_EXPONENT_MAX
    ):
        exact = Decimal(f"{exact:.{_DECIMAL128_DIGITS - 1}E}")
    return Decimal128(str(exact))


_NUMBER_TYPES: Final[dict[Kind, Callable[[Any], Any]]] = {
    Kind.INTEGER: int,
    Kind.DOUBLE: float,
    Kind.INT64: Int64,
    Kind.DECIMAL128: _decimal128,
    Kind.SMALL_INT: SmallInt,
    Kind.TINY_INT: TinyInt,
    Kind.VARINT: lambda number: Varint(int(number)),
    Kind.BIG_DECIMAL: lambda number: BigDecimal(str(Decimal(number))),
    Kind.FLOAT32: lambda number: Float32(float(number)),
}


def _boolean(found: bytes) -> bool:
    if found[0] > 1:
        raise ValueError("neither true nor false")
    return bool(found[0])


def _read_length_first(data: bytes, start: int) -> tuple[Any, int]:
    size, subtype = _LENGTH_FIRST.unpack_from(data, start)
    return _fixed(size, lambda found: Binary(found, subtype))(data, start + _LENGTH_FIRST.size)


def _read_binary(data: bytes, start: int) -> tuple[Any, int]:
    found, end = read_ended(data, start)
    return Binary(found, data[end]), end + 1


def _read_inet(data: bytes, start: int) -> tuple[Any, int]:
    found, end = read_ended(data, start)
    return Inet(found), end


def _guid_by_version(found: bytes) -> Guid:
    guid = Guid(_untimed(found[1:]) if found[0] == 1 else found[1:])
    if guid.data[6] >> 4 != found[0]:
        raise ValueError("a UUID of another version")
    return guid


def _duration(found: bytes) -> Duration:
    months, days, nanoseconds = _DURATION.unpack(found)
    return Duration(months - (1 << 31), days - (1 << 31), nanoseconds - (1 << 63))
