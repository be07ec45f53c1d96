"""Moments rolled up to periods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.strategy import BadKeyPart, Period, TimeRollUp

moments = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
periods = st.sampled_from(list(Period))


@pytest.mark.requirement("R101")
@pytest.mark.parametrize(
    ("period", "value"),
    [
        (Period.HOUR, "2018-08-10T01"),
        (Period.DAY, "2018-08-10"),
        (Period.MONTH, "2018-08"),
        (Period.YEAR, "2018"),
    ],
)
def test_a_moment_is_rolled_up_in_utc(period: Period, value: str) -> None:
    key = TimeRollUp("at", period)
    for moment in ("2018-08-09T23:30:00-02:00", "2018-08-10T01:30:00Z", "2018-08-10T01:30:00", 1_533_864_600):
        assert key.value_of({"at": moment}) == value
    assert TimeRollUp("/at").value_of({"at": "2018-08-10"}) == "2018-08-10"


@given(begin=moments, length=st.timedeltas(timedelta(0), timedelta(days=40)), period=periods, data=st.data())
def test_the_periods_of_a_span_have_every_moment_of_it(
    begin: datetime, length: timedelta, period: Period, data: st.DataObject
) -> None:
    key = TimeRollUp("at", period)
    end = min(begin + length, datetime(9999, 12, 30, tzinfo=UTC)) if begin.year < 9999 else begin
    values = key.values_between(begin, end)
    assert list(values) == sorted(set(values))
    assert bool(values) == (begin < end)
    if values:
        moment = begin + (end - begin) * data.draw(st.floats(0, 0.999))
        assert key.value_at(moment) in values
        assert (values[0], values[-1]) == (key.value_at(begin), key.value_at(end - timedelta(microseconds=1)))


@given(first=moments, second=moments, period=periods)
def test_values_sort_as_moments_do(first: datetime, second: datetime, period: Period) -> None:
    key = TimeRollUp("at", period)
    earlier, later = sorted((first, second))
    assert key.value_at(earlier) <= key.value_at(later)


@pytest.mark.parametrize("value", ["yesterday", "", None, True, {}, 1_533_864_600_000, float("nan"), 1e300])
def test_what_is_no_moment_is_refused(value: Any) -> None:
    with pytest.raises(BadKeyPart, match="a moment is"):
        TimeRollUp("at").value_of({"at": value})


def test_a_moment_without_a_time_zone_and_an_endless_span_are_refused() -> None:
    key = TimeRollUp("at", Period.HOUR)
    with pytest.raises(ValueError, match="no time zone"):
        key.value_at(datetime(2018, 8, 9))
    with pytest.raises(ValueError, match="without a time zone"):
        key.values_between(datetime(2018, 8, 9), datetime.now(UTC))
    with pytest.raises(ValueError, match="longer ones"):
        key.values_between(datetime(2018, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))


def test_the_end_of_the_calendar_ends_a_span() -> None:
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    assert TimeRollUp("at", Period.YEAR).values_between(last, last + timedelta(minutes=20)) == ("9999",)
    assert (
        TimeRollUp("at").value_at(datetime(2018, 8, 10, tzinfo=timezone(timedelta(hours=2)))) == "2018-08-09"
    )
