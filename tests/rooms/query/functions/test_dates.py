"""Date and time functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.query.functions import clock
from pleiad.values.undefined import UNDEFINED

U = UNDEFINED
MOMENT = "2022-02-28T13:45:30.1250000Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-12-12", True),
        ("2024-12-12Z", True),
        ("2024-12-12 20:21:25", True),
        ("2024-12-12T20:21:25Z", True),
        ("2024-12-12T20:21:25.1234567Z", True),
        ("2024-02-29", True),
        ("2023-02-29", False),
        ("2024-1-02", False),
        ("2024-01-02T03:04:05.12345678", False),
        ("2024-12-12T20Z", False),
        ("2024-12-12 20:21:25.", False),
        ("2024-12-12T24:00:00", False),
        ("2024-12-12T20:21:60", False),
        ("2024-12-12T20:21:25+00:00", True),
        ("0000-01-01", False),
        ("٢٠٢٤-01-01", False),
        ("2024-12-12\n", False),
        (20241212, False),
        (None, False),
    ],
)
def test_a_date_is_recognised_by_its_form(text: Any, expected: bool, call: Callable[..., Any]) -> None:
    assert call("IS_DATETIME", text) is expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("DATETIMEADD", ("d", 3, "2024-02-27"), "2024-03-01T00:00:00.0000000Z"),
        ("DATETIMEADD", ("m", 1, "2023-01-31T10:00:00Z"), "2023-02-28T10:00:00.0000000Z"),
        ("DATETIMEADD", ("n", -1, "2023-01-01T00:00:00Z"), "2022-12-31T23:59:00.0000000Z"),
        ("DATETIMEADD", ("YYYY", -1, "2024-02-29"), "2023-02-28T00:00:00.0000000Z"),
        ("DATETIMEADD", ("ns", 250, "2023-01-01"), "2023-01-01T00:00:00.0000003Z"),
        ("DATETIMEADD", ("ns", -250, "2023-01-01"), "2022-12-31T23:59:59.9999997Z"),
        ("DATETIMEADD", ("mcs", 1, "2023-01-01"), "2023-01-01T00:00:00.0000010Z"),
        ("DATETIMEADD", ("d", 1.5, "2023-01-01"), U),
        ("DATETIMEADD", ("week", 1, "2023-01-01"), U),
        ("DATETIMEADD", ("yyyy", 8000, "2023-01-01"), U),
        ("DATETIMEADD", ("d", 2**62, "2023-01-01"), U),
        ("DATETIMEADD", ("d", 1, "soon"), U),
        ("DATETIMEBIN", (MOMENT, "hh", 6), "2022-02-28T12:00:00.0000000Z"),
        ("DATETIMEBIN", ("2022-02-28T13:45:30Z", "dd", 3), "2022-02-27T00:00:00.0000000Z"),
        ("DATETIMEBIN", (MOMENT, "ms"), MOMENT),
        ("DATETIMEBIN", (MOMENT, "dd", 0), U),
        ("DATETIMEBIN", (MOMENT, "hh", 1.5), "2022-02-28T13:30:00.0000000Z"),
        ("DATETIMEBIN", (MOMENT, "dd", 1, "1600-12-31"), U),
        ("DATETIMEBIN", (MOMENT, "yyyy", 5), U),
        ("DATETIMEBIN", (MOMENT, "mm", 1, "2020-01-29"), U),
        ("DATETIMEBIN", ("2022-03-15", "dd", 7, "2022-03-15T00:00:00Z"), "2022-03-15T00:00:00Z"),
        ("DATETIMEADD", ("-2hour", "2020-01-01"), "2019-12-31T22:00:00.0000000Z"),
        ("DATETIMEADD", ("1x", "2020-01-01"), U),
        ("DATETIMEADD", ("yy", -420, "2020-01-01"), U),
        ("DATETIMETOTICKS", ("2020-01-01T00:00:00 +0130",), 15778314000000000),
        ("DATETIMETOTICKS", ("2020-01-01T00:00:00+14:30",), U),
        ("DATETIMEPART", ("dw", "2020-01-01"), 3),
        ("TICKSTODATETIME", (0, "yyyy"), "1970"),
        ("TIMESTAMPTODATETIME", (0, ""), U),
        ("DATETIMEBIN", ("1969-12-31T23:59:59Z", "dd"), "1969-12-31T00:00:00.0000000Z"),
        ("DATETIMEDIFF", ("yyyy", "2022-12-31T23:59:00Z", "2023-01-01T00:00:00Z"), 1),
        ("DATETIMEDIFF", ("mi", "2022-12-31T23:59:00Z", "2023-01-01T00:00:00Z"), 1),
        ("DATETIMEDIFF", ("dd", "2023-01-02", "2023-01-01"), -1),
        ("DATETIMEDIFF", ("ns", "2023-01-01", "2023-01-01T00:00:00.0000001Z"), 100),
        ("DATETIMEDIFF", ("dd", "1969-12-31T23:00:00Z", "1970-01-01T01:00:00Z"), 1),
        ("DATETIMEDIFF", ("dd", None, "2023-01-01"), U),
        ("DATETIMEFORMAT", ("2024-05-06 07:08:09", "dd/MM/yyyy HH:mm"), "06/05/2024 07:08"),
        ("DATETIMEFORMAT", ("2024-10-10 14:40:20", "yyyy-MM-dd [HH:mm:ss]"), "2024-10-10 [14:40:20]"),
        ("DATETIMEFORMAT", ("2024-10-10 14:40:20", "On \\da\\y yyyy.fff"), "On day 2024.000"),
        ("DATETIMEFORMAT", ("2024-10-10 14:40:20.1200000", "ss.FFF"), "20.120"),
        ("DATETIMEFORMAT", ("2024-10-10 14:40:20", "h:m tt \\"), "2:40 PM "),
        ("DATETIMEFORMAT", ("2004-10-10", "y yy yyy yyyy yyyyy"), "4 04 04 2004 2004"),
        ("DATETIMEFORMAT", ("2000-10-10", "y"), "0"),
        ("DATETIMEFORMAT", ("2024-10-10", 5), U),
        ("DATETIMEFROMPARTS", (2023, 2, 28), "2023-02-28T00:00:00.0000000Z"),
        ("DATETIMEFROMPARTS", (2023, 2, 30), U),
        ("DATETIMEFROMPARTS", (2023, -(2**40 - 1), 2**32 + 2), "2023-01-02T00:00:00.0000000Z"),
        ("DATETIMEFROMPARTS", (2023, 1, 1, 2**63 - 1), U),
        ("DATETIMEFROMPARTS", (2023, 1, 1, 0, 0, 0, 5), "2023-01-01T00:00:00.0000005Z"),
        ("DATETIMEFROMPARTS", (2023, 1, 1, 24), U),
        ("DATETIMEFROMPARTS", (2023, 1, 1, U), U),
        ("DATETIMEPART", ("yy", MOMENT), 2022),
        ("DATETIMEPART", ("ms", MOMENT), 125),
        ("DATETIMEPART", ("mcs", MOMENT), 125000),
        ("DATETIMEPART", ("ns", MOMENT), 125000000),
        ("DATETIMEPART", ("m", MOMENT), 2),
        ("DATETIMEPART", ("n", MOMENT), 45),
        ("DATETIMEPART", (5, MOMENT), U),
        ("YEAR", ("2024-07-09",), 2024),
        ("MONTH", ("2024-07-09",), 7),
        ("DAY", ("2024-07-09",), 9),
        ("DAY", ("2024-07-39",), U),
        ("DATETIMETOTICKS", (MOMENT,), 16460559301250000),
        ("DATETIMETOTIMESTAMP", (MOMENT,), 1646055930125),
        ("DATETIMETOTIMESTAMP", ("1969-12-31T23:59:59.9999Z",), 0),
        ("TIMESTAMPTODATETIME", (0,), "1970-01-01T00:00:00.0000000Z"),
        ("TIMESTAMPTODATETIME", (-11644473600000,), "1601-01-01T00:00:00.0000000Z"),
        ("TIMESTAMPTODATETIME", (2**62,), U),
        ("TIMESTAMPTODATETIME", ("0",), U),
        ("TICKSTODATETIME", (10,), "1970-01-01T00:00:00.0000010Z"),
        ("TICKSTODATETIME", (16460559301250001,), "2022-02-28T13:45:30.1250001Z"),
    ],
)
def test_date_function(
    name: str, arguments: tuple[Any, ...], expected: Any, call: Callable[..., Any]
) -> None:
    assert call(name, *arguments) == expected


def test_static_functions_tell_the_moment_the_execution_began(call: Callable[..., Any]) -> None:
    assert call("GETCURRENTDATETIMESTATIC") == "2024-05-06T07:08:09.1234560Z"
    assert call("GETCURRENTTICKSSTATIC") == 17149792891234560
    assert call("GETCURRENTTIMESTAMPSTATIC") == 1714979289123


def test_current_functions_tell_the_clock(call: Callable[..., Any]) -> None:
    before = time.time_ns() // 1_000_000
    timestamps = [
        call("GETCURRENTTIMESTAMP"),
        call("GETCURRENTTICKS") // 10_000,
        call("DATETIMETOTIMESTAMP", call("GETCURRENTDATETIME")),
        call("DATETIMETOTIMESTAMP", call("NOW")),
        call("DATETIMETOTIMESTAMP", call("NOW", "hh", 1)) - 3_600_000,
        call("DATETIMETOTIMESTAMP", call("AGO", "dd", 1)) + 86_400_000,
    ]
    after = time.time_ns() // 1_000_000
    assert all(before <= timestamp <= after for timestamp in timestamps)
    assert call("AGO", "dd", 0.5) is U


def test_now_and_ago_take_a_span_or_a_count_of_parts(call: Callable[..., Any]) -> None:
    assert call("NOW", "-1day") < call("AGO", "dd", 0) < call("NOW", "hh", 1)
    assert call("AGO", "1week") is U


@settings(max_examples=200, deadline=None)
@given(st.integers(clock.TICKS_MIN, clock.TICKS_MAX))
def test_every_tick_reads_back_from_its_text(ticks: int) -> None:
    text = clock.render(ticks)
    assert clock.parse(text) == ticks


@settings(max_examples=200, deadline=None)
@given(st.datetimes(datetime(1604, 1, 1), datetime(9997, 1, 1)), st.integers(-1000, 1000))
def test_adding_days_agrees_with_the_calendar(moment: datetime, days: int) -> None:
    ticks = clock.parse(moment.isoformat(sep="T", timespec="microseconds"))
    assert ticks is not None
    moved = clock.add(ticks, "day", days)
    expected = moment + timedelta(days=days)
    assert moved == clock.parse(expected.isoformat(sep="T", timespec="microseconds"))
