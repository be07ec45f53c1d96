"""Scalars beyond JSON: one frozen class for each type that some API has and JSON has not.

A class holds its value in the one form it has, checked when it is made; two are equal when type and value are the
same to the letter, so Decimal 1.0 and 1.00 differ here. Which are equal as *values* is what ``encoding`` says.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pleiad.values.number import DIGITS_MAX, EXPONENT_MAX
from pleiad.values.refusal import RefusedValue

TICKS_OF_1970: Final = 621_355_968_000_000_000
TICKS_PER_MILLISECOND: Final = 10_000
_DECIMAL128_DIGITS: Final = 34
_DECIMAL128_EXPONENTS: Final = range(-6176, 6112)


def _check_bits(name: str, value: int, bits: int, signed: bool = True) -> None:
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if type(value) is not int or not low <= value < high:
        raise RefusedValue(f"{name} is an integer of {bits} bits.")


def _check_bytes(name: str, data: bytes, *sizes: int) -> None:
    if type(data) is not bytes or (sizes and len(data) not in sizes):
        raise RefusedValue(f"{name} is {' or '.join(map(str, sizes)) or 'a number of'} bytes.")


def _check_texts(name: str, *texts: str) -> None:
    if not all(type(text) is str for text in texts):
        raise RefusedValue(f"{name} is made of strings.")


@dataclass(frozen=True, slots=True)
class Int64:
    """An integer of 64 bits that is to stay one, also where it is small."""

    value: int

    def __post_init__(self) -> None:
        _check_bits("An Int64", self.value, 64)


@dataclass(frozen=True, slots=True)
class SmallInt:
    """An integer of 16 bits."""

    value: int

    def __post_init__(self) -> None:
        _check_bits("A smallint", self.value, 16)


@dataclass(frozen=True, slots=True)
class TinyInt:
    """An integer of 8 bits."""

    value: int

    def __post_init__(self) -> None:
        _check_bits("A tinyint", self.value, 8)


@dataclass(frozen=True, slots=True)
class Varint:
    """An integer of any length, up to the digits that a number may have."""

    value: int

    def __post_init__(self) -> None:
        if type(self.value) is not int or abs(self.value) >= _VARINT_END:
            raise RefusedValue(f"A varint is an integer of at most {DIGITS_MAX} digits.")


_VARINT_END: Final = 10**DIGITS_MAX


@dataclass(frozen=True, slots=True)
class Float32:
    """A number of 32 bits, as the double that it is."""

    value: float

    def __post_init__(self) -> None:
        if type(self.value) is not float:
            raise RefusedValue("A float is a number.")
        try:
            (nearest,) = struct.unpack(">f", struct.pack(">f", self.value))
        except OverflowError:
            nearest = None
        if nearest != self.value and self.value == self.value:
            raise RefusedValue("A float is a number of 32 bits.")

    def __eq__(self, other: object) -> bool:
        """Like every other class to the letter: NaN is NaN, and zero has a sign."""
        return isinstance(other, Float32) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Decimal128:
    """A decimal of 34 digits; the text keeps zeros at its end. NaN has neither sign nor payload."""

    text: str

    def __post_init__(self) -> None:
        number = _decimal(self.text)
        if number.is_finite():
            _, digits, exponent = number.as_tuple()
            if len(digits) > _DECIMAL128_DIGITS or exponent not in _DECIMAL128_EXPONENTS:
                raise RefusedValue("A Decimal128 has at most 34 digits and an exponent from -6176 to 6111.")

    @property
    def number(self) -> Decimal:
        return Decimal(self.text)


@dataclass(frozen=True, slots=True)
class BigDecimal:
    """A decimal with a scale of 32 bits, and as many digits as a number may have; it is always finite."""

    text: str

    def __post_init__(self) -> None:
        number = _decimal(self.text)
        if not number.is_finite():
            raise RefusedValue("A decimal is finite.")
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        if len(digits) > DIGITS_MAX or max(abs(exponent), abs(number.adjusted() + 1)) > EXPONENT_MAX:
            raise RefusedValue(f"A decimal has at most {DIGITS_MAX} digits and an exponent of 32 bits.")

    @property
    def number(self) -> Decimal:
        return Decimal(self.text)


def _decimal(text: str) -> Decimal:
    """The number of a text that is written as Python's decimals are, which is one text for each of them."""
    _check_texts("A decimal", text)
    if len(text) > DIGITS_MAX + 16:
        raise RefusedValue(f"A decimal has at most {DIGITS_MAX} digits.")
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("sNaN")
    if str(number) != text or number.is_snan() or (number.is_nan() and text != "NaN"):
        raise RefusedValue("A decimal is written as a number in its usual form.")
    return number


@dataclass(frozen=True, slots=True)
class DateTime:
    """A moment, in ticks of 100 ns since the beginning of year 1; those before it are negative.

    The range is that of 64 bits of milliseconds around 1970, which is more than 64 bits of ticks.
    """

    ticks: int

    def __post_init__(self) -> None:
        if type(self.ticks) is not int or not _TICKS_FIRST <= self.ticks < _TICKS_END:
            raise RefusedValue("A date is a moment that 64 bits of milliseconds around 1970 reach.")

    @classmethod
    def of_milliseconds(cls, milliseconds: int) -> DateTime:
        """The moment so many milliseconds after the beginning of 1970."""
        return cls(TICKS_OF_1970 + milliseconds * TICKS_PER_MILLISECOND)

    @property
    def milliseconds(self) -> int:
        """Whole milliseconds since the beginning of 1970."""
        return (self.ticks - TICKS_OF_1970) // TICKS_PER_MILLISECOND


_TICKS_FIRST: Final = TICKS_OF_1970 - 2**63 * TICKS_PER_MILLISECOND
_TICKS_END: Final = TICKS_OF_1970 + 2**63 * TICKS_PER_MILLISECOND


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The 64 bits of a replication time: seconds, and a number within the second."""

    value: int

    def __post_init__(self) -> None:
        _check_bits("A timestamp", self.value, 64, signed=False)


@dataclass(frozen=True, slots=True)
class Date:
    """A day, counted from the first of 1970."""

    days: int

    def __post_init__(self) -> None:
        _check_bits("A date", self.days, 32)


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day, in nanoseconds since midnight."""

    nanoseconds: int

    def __post_init__(self) -> None:
        if type(self.nanoseconds) is not int or not 0 <= self.nanoseconds < 86_400_000_000_000:
            raise RefusedValue("A time is less than a day.")


@dataclass(frozen=True, slots=True)
class Duration:
    """Months, days and nanoseconds, which no clock makes one of; durations have no order, only equality."""

    months: int
    days: int
    nanoseconds: int

    def __post_init__(self) -> None:
        _check_bits("A number of months", self.months, 32)
        _check_bits("A number of days", self.days, 32)
        _check_bits("A number of nanoseconds", self.nanoseconds, 64)


@dataclass(frozen=True, slots=True)
class Guid:
    """A UUID, its bytes in the order in which its text has them."""

    data: bytes

    def __post_init__(self) -> None:
        _check_bytes("A UUID", self.data, 16)


@dataclass(frozen=True, slots=True)
class TimeUuid:
    """A UUID of version 1, which an API with a type for it orders by its time."""

    data: bytes

    def __post_init__(self) -> None:
        _check_bytes("A UUID", self.data, 16)
        if self.data[6] >> 4 != 1:
            raise RefusedValue("A timeuuid is a UUID of version 1.")


@dataclass(frozen=True, slots=True)
class ObjectId:
    """The 12 bytes of a document's identity."""

    data: bytes

    def __post_init__(self) -> None:
        _check_bytes("An ObjectId", self.data, 12)


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes, with the subtype that some APIs give them."""

    data: bytes
    subtype: int = 0

    def __post_init__(self) -> None:
        _check_bytes("Binary data", self.data)
        _check_bits("A subtype", self.subtype, 8, signed=False)


@dataclass(frozen=True, slots=True)
class Inet:
    """An address of the internet: 4 bytes or 16."""

    data: bytes

    def __post_init__(self) -> None:
        _check_bytes("An address", self.data, 4, 16)


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression that is a value; it is never run here."""

    pattern: str
    options: str = ""

    def __post_init__(self) -> None:
        _check_texts("A regular expression", self.pattern, self.options)


@dataclass(frozen=True, slots=True)
class Code:
    """JavaScript that is a value; it is never run here."""

    text: str

    def __post_init__(self) -> None:
        _check_texts("Code", self.text)


@dataclass(frozen=True, slots=True)
class CodeWithScope:
    """JavaScript with the variables around it."""

    text: str
    scope: dict[str, Any]

    def __post_init__(self) -> None:
        _check_texts("Code", self.text)
        if type(self.scope) is not dict:
            raise RefusedValue("The scope of code is an object.")

    def __hash__(self) -> int:
        return hash(self.text)


@dataclass(frozen=True, slots=True)
class MinKey:
    """Less than every other value."""


@dataclass(frozen=True, slots=True)
class MaxKey:
    """Greater than every other value."""
