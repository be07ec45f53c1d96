"""Numbers of every type as bytes in their order, exactly: integers, doubles, decimals.

A number is the largest double that is not above it, in eight bytes that sort as doubles do, and one byte: 0 when it
is that double. All other numbers have a 1 there, and behind it their decimal exponent and their decimal digits, which
order the numbers between two neighbouring doubles; below zero these bytes are inverted. So 1, 1.0, Int64 1 and
Decimal 1.00 are the same nine bytes, and nothing is ever rounded.

NaN stands before all, then -Infinity. Zero has no sign. Numbers beyond the doubles need no case of their own: they
stand between the last double and infinity, or between zero and the first one.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Final

from pleiad.values.refusal import RefusedValue

DIGITS_MAX: Final = 4_096
"""Significant digits of a number."""
EXPONENT_MAX: Final = 2**31 - 1

_DOUBLE_EXACT: Final = 2**53
_DIGITS_BITS_MAX: Final = 13_610
"""An integer of more bits has more than DIGITS_MAX digits."""
_SIGN: Final = 2**63
_EXPONENT_BIAS: Final = 2**31
_EXACT: Final = b"\x00"
_BETWEEN: Final = b"\x01"
_NAN: Final = bytes(9)
_INVERTED: Final = bytes(range(255, -1, -1))
# Two digits are one byte, written as in hexadecimal, and one more than that: 0 is left for the end.
_PLUS_ONE: Final = bytes([*range(1, 256), 0])
_MINUS_ONE: Final = bytes([255, *range(255)])
_AS_TEXT: Final = b"0123456789".ljust(256)

_pack_double = struct.Struct(">d").pack
_unpack_double = struct.Struct(">d").unpack
_pack_bits = struct.Struct(">Q").pack
_pack_exact = struct.Struct(">QB").pack
_unpack_bits = struct.Struct(">Q").unpack
_unpack_bits_at = struct.Struct(">Q").unpack_from
_exponent = struct.Struct(">I")

Number = int | float | Decimal


def encode_number(value: Number) -> bytes:
    """The bytes of a number."""
    if type(value) is int and -_DOUBLE_EXACT <= value <= _DOUBLE_EXACT:
        value = float(value)
    if type(value) is float:
        if value != value:
            return _NAN
        (bits,) = _unpack_bits(_pack_double(value + 0.0))  # which makes -0.0 a plain zero
        return _pack_exact(bits ^ 0xFFFFFFFFFFFFFFFF if bits & _SIGN else bits | _SIGN, 0)
    return _encode_exactly(value)


def _encode_exactly(value: Number) -> bytes:
    """The bytes of an integer or a decimal that may be no double."""
    if isinstance(value, Decimal) and not value.is_finite():
        return encode_number(math.nan if value.is_nan() else math.copysign(math.inf, value))
    is_negative, digits, exponent = _decimal_digits(value)
    double = _floor(value)
    head = encode_number(double)
    if double == value:
        return head
    pairs = bytes.fromhex(digits if len(digits) % 2 == 0 else digits + "0")
    rest = _exponent.pack(exponent + _EXPONENT_BIAS) + pairs.translate(_PLUS_ONE) + b"\x00"
    return head[:8] + _BETWEEN + (rest.translate(_INVERTED) if is_negative else rest)


def _decimal_digits(value: Number) -> tuple[bool, str, int]:
    """Sign, digits without zeros at either end, and the exponent with which ``0.digits`` is the value."""
    if isinstance(value, Decimal):
        sign, parts, scale = value.as_tuple()
        assert isinstance(scale, int)
        if len(parts) > DIGITS_MAX:
            raise RefusedValue(f"A number has at most {DIGITS_MAX} digits.")
        digits = bytes(parts).translate(_AS_TEXT).decode().lstrip("0")
    else:
        assert isinstance(value, int)
        if value.bit_length() > _DIGITS_BITS_MAX:
            raise RefusedValue(f"A number has at most {DIGITS_MAX} digits.")
        sign, digits, scale = int(value < 0), str(abs(value)), 0
        if len(digits) > DIGITS_MAX:
            raise RefusedValue(f"A number has at most {DIGITS_MAX} digits.")
    exponent = len(digits) + scale if digits else 0
    if abs(exponent) > EXPONENT_MAX:
        raise RefusedValue("The exponent of a number has at most 31 bits.")
    return bool(sign), digits.rstrip("0"), exponent


def _floor(value: Number) -> float:
    """The largest double that is not above a finite value."""
    try:
        double = float(value)
    except OverflowError:  # an integer beyond all doubles
        double = math.inf if value > 0 else -math.inf
    return math.nextafter(double, -math.inf) if double > value else double


def decode_number(data: bytes, start: int) -> tuple[Number, int]:
    """The number at a place, and where its bytes end; ValueError when there is none.

    The type it was encoded from is not in the bytes. Of a double it is an int where that is an integer of 64 bits, else
    a float; every other number is an int where it is whole and not too long for one, else a Decimal.
    """
    (bits,) = _unpack_bits_at(data, start)
    mark, at = data[start + 8], start + 9
    if mark == 0:
        if bits == 0:
            return math.nan, at
        (double,) = _unpack_double(_pack_bits(bits ^ _SIGN if bits & _SIGN else bits ^ 0xFFFFFFFFFFFFFFFF))
        number: Number = double
        if -_SIGN <= double < _SIGN and double.is_integer():
            number = int(double)
    else:
        number, at = _decode_digits(data, at, is_negative=not bits & _SIGN)
    if encode_number(number) != data[start:at]:
        raise ValueError("not the bytes of a number")
    return number, at


def _decode_digits(data: bytes, start: int, is_negative: bool) -> tuple[Number, int]:
    end = data.index(b"\xff" if is_negative else b"\x00", start + 4) + 1
    if end - start > 5 + DIGITS_MAX // 2:
        raise ValueError("a number of too many digits")
    rest = data[start:end].translate(_INVERTED) if is_negative else data[start:end]
    digits = rest[4:-1].translate(_MINUS_ONE).hex().rstrip("0")
    exponent = _exponent.unpack(rest[:4])[0] - _EXPONENT_BIAS
    sign = "-" if is_negative else ""
    if not digits.isdecimal():
        raise ValueError("not the digits of a number")
    if len(digits) <= exponent <= DIGITS_MAX:
        return int(f"{sign}{digits}{'0' * (exponent - len(digits))}"), end
    return Decimal(f"{sign}{digits}E{exponent - len(digits)}"), end
