"""Dates and times as ticks of 100 ns since 1970-01-01 UTC, and the text and the parts of them.

All arithmetic is on integers; only the years 1601 to 9999 exist. Text that is read is YYYY-MM-DD, or that date, T or
a space, hh:mm:ss and up to seven digits of a second; then an optional Z, or an offset such as +01:30, +0130 or -01 up
to 14 hours, one space before it allowed. Text that is written always has seven digits and the Z.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from datetime import date, datetime
from typing import NamedTuple

TICKS_PER_SECOND = 10_000_000
TICKS_PER_DAY = 86_400 * TICKS_PER_SECOND
NANOSECONDS_PER_TICK = 100

_EPOCH_DAY = date(1970, 1, 1).toordinal()
YEAR_MIN = 1601
TICKS_MIN = (date(YEAR_MIN, 1, 1).toordinal() - _EPOCH_DAY) * TICKS_PER_DAY
TICKS_MAX = (date.max.toordinal() + 1 - _EPOCH_DAY) * TICKS_PER_DAY - 1

_TEXT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,7}))?)?"
    r"(?:Z| ?([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)
_OFFSET_MINUTES_MAX = 14 * 60

_PART_NAMES = {
    "year": ("year", "yyyy", "yy"),
    "month": ("month", "mm", "m"),
    "day": ("day", "dd", "d"),
    "hour": ("hour", "hh"),
    "minute": ("minute", "mi", "n"),
    "second": ("second", "ss", "s"),
    "millisecond": ("millisecond", "ms"),
    "microsecond": ("microsecond", "mcs"),
    "nanosecond": ("nanosecond", "ns"),
    "weekday": ("weekday", "dw"),
}
PARTS: dict[str, str] = {name: part for part, names in _PART_NAMES.items() for name in names}

NANOSECONDS: dict[str, int] = {
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}
MONTHS: dict[str, int] = {"year": 12, "month": 1}


class Fields(NamedTuple):
    """A moment by its calendar and clock fields; fraction counts ticks."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    fraction: int


def part_of(name: object) -> str | None:
    """The part of a date that a name such as "yyyy" or "MI" stands for."""
    return PARTS.get(name.lower()) if type(name) is str else None


def from_fields(fields: Fields) -> int | None:
    """Ticks of the moment, None when there is no such moment."""
    year, month, day, hour, minute, second, fraction = fields
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= fraction < TICKS_PER_SECOND):
        return None
    if not (YEAR_MIN <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        return None
    days = date(year, month, day).toordinal() - _EPOCH_DAY
    return ((days * 24 + hour) * 60 + minute) * 60 * TICKS_PER_SECOND + second * TICKS_PER_SECOND + fraction


def to_fields(ticks: int) -> Fields:
    """Calendar and clock fields of a moment between TICKS_MIN and TICKS_MAX."""
    days, rest = divmod(ticks, TICKS_PER_DAY)
    seconds, fraction = divmod(rest, TICKS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    day = date.fromordinal(days + _EPOCH_DAY)
    return Fields(day.year, day.month, day.day, hour, minute, second, fraction)


def parse(text: object) -> int | None:
    """Ticks of a date text, None for anything else."""
    match = _TEXT.fullmatch(text) if type(text) is str else None
    if match is None:
        return None
    *fields, fraction, sign, hours, minutes = match.groups(default="0")
    year, month, day, hour, minute, second = map(int, fields)
    ticks = from_fields(Fields(year, month, day, hour, minute, second, int(fraction.ljust(7, "0"))))
    if ticks is None or sign == "0":
        return ticks
    offset = int(hours) * 60 + int(minutes)
    if offset > _OFFSET_MINUTES_MAX or int(minutes) > 59:
        return None
    moved = ticks + (offset if sign == "-" else -offset) * 60 * TICKS_PER_SECOND
    return moved if TICKS_MIN <= moved <= TICKS_MAX else None


def render(ticks: int) -> str | None:
    """The text of a moment with seven digits of a second, None when its year cannot be written."""
    if not TICKS_MIN <= ticks <= TICKS_MAX:
        return None
    year, month, day, hour, minute, second, fraction = to_fields(ticks)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z"


def from_datetime(moment: datetime) -> int:
    """Ticks of an aware moment."""
    utc = moment.timetuple() if moment.utcoffset() is None else moment.utctimetuple()
    days = date(utc.tm_year, utc.tm_mon, utc.tm_mday).toordinal() - _EPOCH_DAY
    seconds = ((days * 24 + utc.tm_hour) * 60 + utc.tm_min) * 60 + utc.tm_sec
    return seconds * TICKS_PER_SECOND + moment.microsecond * 10


def add_months(ticks: int, months: int) -> int | None:
    """The moment that many months later; a day the month does not have becomes its last."""
    fields = to_fields(ticks)
    year, month = divmod(fields.year * 12 + fields.month - 1 + months, 12)
    if not YEAR_MIN <= year <= 9999:
        return None
    day = min(fields.day, monthrange(year, month + 1)[1])
    return from_fields(fields._replace(year=year, month=month + 1, day=day))


def add(ticks: int, part: str, count: int) -> int | None:
    """The moment that many parts later, to the nearest tick; None where there is no such moment or part."""
    if part in MONTHS:
        return add_months(ticks, MONTHS[part] * count)
    if part not in NANOSECONDS:
        return None
    nanoseconds = NANOSECONDS[part] * count
    step = (abs(nanoseconds) + NANOSECONDS_PER_TICK // 2) // NANOSECONDS_PER_TICK
    moved = ticks + step if nanoseconds >= 0 else ticks - step
    return moved if TICKS_MIN <= moved <= TICKS_MAX else None


def boundaries_between(start: int, end: int, part: str) -> int:
    """How many beginnings of a part lie between two moments, negative when the end comes first."""
    if part in MONTHS:
        first, last = to_fields(start), to_fields(end)
        if part == "year":
            return last.year - first.year
        return (last.year - first.year) * 12 + last.month - first.month
    size = NANOSECONDS[part]
    return end * NANOSECONDS_PER_TICK // size - start * NANOSECONDS_PER_TICK // size


def bin_start(ticks: int, part: str, size: int | float, origin: int) -> int | None:
    """The start of the bin of that many parts, counted from the origin, in which the moment lies."""
    offset = ticks - origin
    if part == "nanosecond":
        size, unit = int(size) // NANOSECONDS_PER_TICK, 1
    else:
        unit = NANOSECONDS[part] // NANOSECONDS_PER_TICK
    if isinstance(size, float):
        steps = math.floor(offset / (unit * size))
        start = origin + int(steps * (unit * size))
    else:
        # As words of 64 bits: a size beyond all dates wraps around.
        width = (unit * size + 2**63) % 2**64 - 2**63
        if width == 0:
            return None
        start = origin + offset // width * width
    return start if TICKS_MIN <= start <= TICKS_MAX else None
