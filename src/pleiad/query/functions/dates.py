"""Date and time functions over ISO 8601 text, ticks of 100 ns and milliseconds since 1970.

Anything that is no date in the text form, no part name or no whole number makes the result undefined. The
static functions read the moment the execution began; the others read the clock at each call.
"""

from __future__ import annotations

import math
import re
import time
from typing import Any

from pleiad.query.context import QueryContext
from pleiad.query.functions import clock
from pleiad.query.functions.clock import Fields
from pleiad.query.functions.numbers import double, whole, wrapped
from pleiad.query.functions.registry import check_text_chars, register
from pleiad.values.undefined import UNDEFINED

_FAMILY = "dates"
_TICKS_PER_MILLISECOND = 10_000
_SPAN_DIGITS_MAX = 18
_BIN_ORIGIN_TEXT = "1970-01-01T00:00:00.0000000Z"
_FORMAT_TOKEN = re.compile(r"\\(.?)|y+|M+|d+|H+|h+|m+|s+|t+|f+|F+|[^\\yMdHhmstfF]+", re.DOTALL)
_TIMESPAN = re.compile(r"(-?)([0-9]+)([^0-9].*)", re.DOTALL)


def _text(ticks: int | None) -> Any:
    rendered = None if ticks is None else clock.render(ticks)
    return UNDEFINED if rendered is None else rendered


@register(_FAMILY, "IS_DATETIME", 1, 1)
def is_datetime(value: Any) -> bool:
    return clock.parse(value) is not None


def is_timespan(text: Any) -> bool:
    """Whether a text begins as a span such as ``-2hour``: digits, with something behind them."""
    return type(text) is str and _TIMESPAN.fullmatch(text) is not None


def _add_span(text: Any, ticks: int | None, sign: int = 1) -> Any:
    span = _TIMESPAN.fullmatch(text) if type(text) is str else None
    if span is None or len(span[2]) > _SPAN_DIGITS_MAX:
        return UNDEFINED
    count = int(span[1] + span[2])
    return _add(span[3], count, ticks, sign)


@register(_FAMILY, "DATETIMEADD", 2, 3)
def date_time_add(part_or_span: Any, count_or_date: Any, *date_time: Any) -> Any:
    """A date moved by a count of parts, or by a span such as ``-2hour``."""
    if not date_time:
        return _add_span(part_or_span, clock.parse(count_or_date))
    return _add(part_or_span, count_or_date, clock.parse(date_time[0]))


def _add(part_name: Any, count_value: Any, ticks: int | None, sign: int = 1) -> Any:
    part, count = clock.part_of(part_name), whole(count_value)
    if part is None or count is None or ticks is None:
        return UNDEFINED
    return _text(clock.add(ticks, part, sign * count))


@register(_FAMILY, "DATETIMEBIN", 2, 4)
def date_time_bin(
    date_time: Any, part_name: Any, size_value: Any = 1, origin_text: Any = _BIN_ORIGIN_TEXT
) -> Any:
    """The start of the bin in which the date lies; bins may be a fraction of a part wide."""
    ticks, part, origin = clock.parse(date_time), clock.part_of(part_name), clock.parse(origin_text)
    size = whole(size_value)
    fraction = double(size_value) if size is None else None
    width = fraction if size is None else size
    if ticks is None or part not in clock.NANOSECONDS or origin is None or width is None:
        return UNDEFINED
    if not 0 < width < math.inf or (part == "nanosecond" and width < clock.NANOSECONDS_PER_TICK):
        return UNDEFINED
    if ticks == origin:
        return origin_text
    return _text(clock.bin_start(ticks, part, width, origin))


@register(_FAMILY, "DATETIMEDIFF", 3, 3)
def date_time_diff(part_name: Any, start_text: Any, end_text: Any) -> Any:
    part, start, end = clock.part_of(part_name), clock.parse(start_text), clock.parse(end_text)
    if part is None or part == "weekday" or start is None or end is None:
        return UNDEFINED
    return clock.boundaries_between(start, end, part)


def _format_token(token: re.Match[str], fields: Fields) -> str:
    """What stands for one specifier; a longer one than there is writes as much as the longest."""
    text = token[0]
    if token[1] is not None:
        return token[1]
    letter, length = text[0], len(text)
    if letter == "y":
        year, width = (fields.year, 4) if length > 3 else (fields.year % 100, min(length, 2))
        return f"{year:0{width}}"
    values = {
        "M": fields.month,
        "d": fields.day,
        "H": fields.hour,
        "h": (fields.hour + 11) % 12 + 1,
        "m": fields.minute,
        "s": fields.second,
    }
    if letter in values:
        return f"{values[letter]:02}" if length > 1 else str(values[letter])
    if letter in "fF":
        digits = f"{fields.fraction:07}"[:length]
        return digits if letter == "f" or digits.strip("0") else ""
    if letter == "t" and length > 1:
        return "AM" if fields.hour < 12 else "PM"
    return text


def _formatted(ticks: int | None, format_text: Any) -> Any:
    if ticks is None or type(format_text) is not str or not clock.TICKS_MIN <= ticks <= clock.TICKS_MAX:
        return UNDEFINED
    # No specifier writes more than four times its own length.
    check_text_chars(4 * len(format_text))
    fields = clock.to_fields(ticks)
    return _FORMAT_TOKEN.sub(lambda token: _format_token(token, fields), format_text) or UNDEFINED


@register(_FAMILY, "DATETIMEFORMAT", 2, 2)
def date_time_format(date_time: Any, format_text: Any) -> Any:
    """The date written after a pattern; a backslash makes the next character literal."""
    return _formatted(clock.parse(date_time), format_text)


@register(_FAMILY, "DATETIMEFROMPARTS", 3, 7)
def date_time_from_parts(*values: Any) -> Any:
    """Year, month and day, then as many of hour, minute, second and ticks as are given."""
    numbers = [whole(value) for value in values]
    given = [number for number in numbers if number is not None]
    if len(given) < len(values):
        return UNDEFINED
    # All but the fraction of a second have 32 bits.
    given[:6] = [wrapped(number, 32) for number in given[:6]]
    if len(given) == 7 and given[6] >= clock.TICKS_PER_SECOND:
        # More digits than a second has ticks are read as digits of the second.
        given[6] = int(str(given[6])[:7])
    return _text(clock.from_fields(Fields(*given, *[0] * (7 - len(given)))))


def _part_value(part: str, ticks: int) -> int:
    fields = clock.to_fields(ticks)
    if part == "millisecond":
        return fields.fraction // _TICKS_PER_MILLISECOND
    if part == "microsecond":
        return fields.fraction // 10
    if part == "nanosecond":
        return fields.fraction * clock.NANOSECONDS_PER_TICK
    if part == "weekday":
        return (ticks // clock.TICKS_PER_DAY + 4) % 7
    return int(getattr(fields, part))


@register(_FAMILY, "DATETIMEPART", 2, 2)
def date_time_part(part_name: Any, date_time: Any) -> Any:
    part, ticks = clock.part_of(part_name), clock.parse(date_time)
    return UNDEFINED if part is None or ticks is None else _part_value(part, ticks)


@register(_FAMILY, "YEAR", 1, 1)
def year(date_time: Any) -> Any:
    return date_time_part("year", date_time)


@register(_FAMILY, "MONTH", 1, 1)
def month(date_time: Any) -> Any:
    return date_time_part("month", date_time)


@register(_FAMILY, "DAY", 1, 1)
def day(date_time: Any) -> Any:
    return date_time_part("day", date_time)


@register(_FAMILY, "DATETIMETOTICKS", 1, 1)
def date_time_to_ticks(date_time: Any) -> Any:
    ticks = clock.parse(date_time)
    return UNDEFINED if ticks is None else ticks


@register(_FAMILY, "DATETIMETOTIMESTAMP", 1, 1)
def date_time_to_timestamp(date_time: Any) -> Any:
    ticks = clock.parse(date_time)
    if ticks is None:
        return UNDEFINED
    milliseconds = abs(ticks) // _TICKS_PER_MILLISECOND
    return milliseconds if ticks >= 0 else -milliseconds


@register(_FAMILY, "TICKSTODATETIME", 1, 2)
def ticks_to_date_time(value: Any, *format_text: Any) -> Any:
    """The date that many ticks after 1970, as ISO 8601 or after a pattern."""
    ticks = whole(value)
    return _formatted(ticks, format_text[0]) if format_text else _text(ticks)


@register(_FAMILY, "TIMESTAMPTODATETIME", 1, 2)
def timestamp_to_date_time(value: Any, *format_text: Any) -> Any:
    """The date that many milliseconds after 1970, as ISO 8601 or after a pattern."""
    milliseconds = whole(value)
    if milliseconds is None:
        return UNDEFINED
    ticks = milliseconds * _TICKS_PER_MILLISECOND
    return _formatted(ticks, format_text[0]) if format_text else _text(ticks)


def _clock_ticks() -> int:
    return time.time_ns() // clock.NANOSECONDS_PER_TICK


@register(_FAMILY, "GETCURRENTDATETIME", 0, 0, deterministic=False)
def get_current_date_time() -> Any:
    return _text(_clock_ticks())


@register(_FAMILY, "GETCURRENTTICKS", 0, 0, deterministic=False)
def get_current_ticks() -> int:
    return _clock_ticks()


@register(_FAMILY, "GETCURRENTTIMESTAMP", 0, 0, deterministic=False)
def get_current_timestamp() -> int:
    return _clock_ticks() // _TICKS_PER_MILLISECOND


@register(_FAMILY, "GETCURRENTDATETIMESTATIC", 0, 0, needs_context=True, deterministic=False)
def get_current_date_time_static(context: QueryContext) -> Any:
    return _text(clock.from_datetime(context.now))


@register(_FAMILY, "GETCURRENTTICKSSTATIC", 0, 0, needs_context=True, deterministic=False)
def get_current_ticks_static(context: QueryContext) -> int:
    return clock.from_datetime(context.now)


@register(_FAMILY, "GETCURRENTTIMESTAMPSTATIC", 0, 0, needs_context=True, deterministic=False)
def get_current_timestamp_static(context: QueryContext) -> int:
    return clock.from_datetime(context.now) // _TICKS_PER_MILLISECOND


@register(_FAMILY, "NOW", 0, 2, deterministic=False)
def now(*part_and_count: Any) -> Any:
    """The moment of the call, or that many parts after it."""
    if not part_and_count:
        return _text(_clock_ticks())
    if len(part_and_count) == 1:
        return _add_span(part_and_count[0], _clock_ticks())
    return _add(part_and_count[0], part_and_count[1], _clock_ticks())


@register(_FAMILY, "AGO", 1, 2, deterministic=False)
def ago(part_or_span: Any, *count_value: Any) -> Any:
    """The moment that many parts, or a span, before the call."""
    if not count_value:
        return _add_span(part_or_span, _clock_ticks(), sign=-1)
    return _add(part_or_span, count_value[0], _clock_ticks(), sign=-1)
