"""Date and time functions over ISO 8601 text, ticks of 100 ns and milliseconds since 1970.

Anything that is no date in the text form, no part name or no whole number makes the result undefined. The
static functions read the moment the execution began; the others read the clock at each call.
"""

from __future__ import annotations

import re
import time
from typing import Any

from pleiad import errors
from pleiad.keys.undefined import UNDEFINED
from pleiad.query.context import QueryContext
from pleiad.query.functions import clock
from pleiad.query.functions.clock import Fields
from pleiad.query.functions.numbers import whole
from pleiad.query.functions.registry import check_text_chars, register

_FAMILY = "dates"
_TICKS_PER_MILLISECOND = 10_000
_BIN_ORIGIN_YEAR_MIN = 1601
_BIN_ORIGIN_TEXT = "1970-01-01T00:00:00.000000Z"
_FORMAT_TOKEN = re.compile(
    r"\\(.)|yyyy|yy|y|MM|M|dd|d|HH|H|hh|h|mm|m|ss|s|tt|f{1,7}|F{1,7}|[^\\yMdHhmstfF]+|.", re.DOTALL
)


def _text(ticks: int | None) -> Any:
    rendered = None if ticks is None else clock.render(ticks)
    return UNDEFINED if rendered is None else rendered


@register(_FAMILY, "IS_DATETIME", 1, 1)
def is_datetime(value: Any) -> bool:
    return clock.parse(value) is not None


@register(_FAMILY, "DATETIMEADD", 3, 3)
def date_time_add(part_name: Any, count_value: Any, date_time: Any) -> Any:
    return _add(part_name, count_value, clock.parse(date_time))


def _add(part_name: Any, count_value: Any, ticks: int | None, sign: int = 1) -> Any:
    part, count = clock.part_of(part_name), whole(count_value)
    if part is None or count is None or ticks is None:
        return UNDEFINED
    return _text(clock.add(ticks, part, sign * count))


@register(_FAMILY, "DATETIMEBIN", 2, 4)
def date_time_bin(
    date_time: Any, part_name: Any, size_value: Any = 1, origin_text: Any = _BIN_ORIGIN_TEXT
) -> Any:
    ticks, part, size, origin = (
        clock.parse(date_time),
        clock.part_of(part_name),
        whole(size_value),
        clock.parse(origin_text),
    )
    if ticks is None or part is None or size is None or origin is None:
        return UNDEFINED
    if size <= 0 or clock.to_fields(origin).year < _BIN_ORIGIN_YEAR_MIN:
        return UNDEFINED
    return _text(clock.bin_start(ticks, part, size, origin))


@register(_FAMILY, "DATETIMEDIFF", 3, 3)
def date_time_diff(part_name: Any, start_text: Any, end_text: Any) -> Any:
    part, start, end = clock.part_of(part_name), clock.parse(start_text), clock.parse(end_text)
    if part is None or start is None or end is None:
        return UNDEFINED
    return clock.boundaries_between(start, end, part)


def _format_token(token: re.Match[str], fields: Fields) -> str:
    text = token[0]
    if token[1] is not None:
        return token[1]
    values = {
        "y": fields.year % 100 if len(text) < 3 else fields.year,
        "M": fields.month,
        "d": fields.day,
        "H": fields.hour,
        "h": (fields.hour + 11) % 12 + 1,
        "m": fields.minute,
        "s": fields.second,
    }
    letter = text[0]
    if letter in values:
        return f"{values[letter]:0{len(text)}}"
    if letter in "fF":
        digits = f"{fields.fraction:07}"[: len(text)]
        return digits if letter == "f" else digits.rstrip("0")
    if text == "tt":
        return "AM" if fields.hour < 12 else "PM"
    return text


@register(_FAMILY, "DATETIMEFORMAT", 2, 2)
def date_time_format(date_time: Any, format_text: Any) -> Any:
    """The date written after a pattern; a backslash makes the next character literal."""
    ticks = clock.parse(date_time)
    if ticks is None or type(format_text) is not str:
        return UNDEFINED
    # No specifier writes more than four times its own length.
    check_text_chars(4 * len(format_text))
    fields = clock.to_fields(ticks)
    return _FORMAT_TOKEN.sub(lambda token: _format_token(token, fields), format_text)


@register(_FAMILY, "DATETIMEFROMPARTS", 3, 7)
def date_time_from_parts(*values: Any) -> Any:
    """Year, month and day, then as many of hour, minute, second and ticks as are given."""
    numbers = [whole(value) for value in values]
    given = [number for number in numbers if number is not None]
    if len(given) < len(values):
        return UNDEFINED
    return _text(clock.from_fields(Fields(*given, *[0] * (7 - len(given)))))


def _part_value(part: str, ticks: int) -> int:
    fields = clock.to_fields(ticks)
    if part == "millisecond":
        return fields.fraction // _TICKS_PER_MILLISECOND
    if part == "microsecond":
        return fields.fraction // 10
    if part == "nanosecond":
        return fields.fraction * clock.NANOSECONDS_PER_TICK
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
    return UNDEFINED if ticks is None else ticks // _TICKS_PER_MILLISECOND


@register(_FAMILY, "TICKSTODATETIME", 1, 1)
def ticks_to_date_time(value: Any) -> Any:
    return _text(whole(value))


@register(_FAMILY, "TIMESTAMPTODATETIME", 1, 1)
def timestamp_to_date_time(value: Any) -> Any:
    milliseconds = whole(value)
    return UNDEFINED if milliseconds is None else _text(milliseconds * _TICKS_PER_MILLISECOND)


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
        raise errors.QUERY_ERROR(reason="The NOW function requires 0 or 2 argument(s).")
    return _add(part_and_count[0], part_and_count[1], _clock_ticks())


@register(_FAMILY, "AGO", 2, 2, deterministic=False)
def ago(part_name: Any, count_value: Any) -> Any:
    """The moment that many parts before the call."""
    return _add(part_name, count_value, _clock_ticks(), sign=-1)
