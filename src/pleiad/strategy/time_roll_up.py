"""Keys of a moment rolled up to its hour, day, month or year, so that what happened in one of them is one partition.

It suits writes that are few and queries for spans of time; many writes at once would all go to the partition of now,
unless a suffix spreads them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pleiad.strategy.item_path import names_of, value_at
from pleiad.strategy.key_text import BadKeyPart
from pleiad.strategy.synthetic_key import SyntheticKey

PERIODS_MAX = 100_000
"""So many periods a span of time has at most."""


class Period(enum.Enum):
    """What moments are rolled up to, with the form of its text; texts sort as moments do."""

    HOUR = "%Y-%m-%dT%H"
    DAY = "%Y-%m-%d"
    MONTH = "%Y-%m"
    YEAR = "%Y"


class TimeRollUp(SyntheticKey):
    """The period of a moment in UTC: 2018-08-09T23:30:00-02:00 by day is "2018-08-10".

    The moment is a text in ISO 8601, in UTC where it names no offset, as the functions of the query language take it;
    or a number of seconds since 1970, as in `_ts`.
    """

    def __init__(self, path: str, period: Period = Period.DAY) -> None:
        names_of(path)
        self.path = path
        self.period = period

    def value_of(self, item: Mapping[str, Any]) -> str:
        return self.value_at(_moment(value_at(item, self.path), self.path))

    def value_at(self, moment: datetime) -> str:
        """The key value of a moment; ValueError when it does not say where on earth it is meant."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment.isoformat()} has no time zone: datetime.now(UTC) has one")
        # Years before 1000 have four digits on every platform only this way.
        at = moment.astimezone(UTC)
        return f"{at.year:04d}{at.strftime(self.period.value.removeprefix('%Y'))}"

    def values_between(self, begin: datetime, end: datetime) -> tuple[str, ...]:
        """The key values of all periods that have a moment from `begin` on and before `end`, in their order."""
        if begin.tzinfo is None or end.tzinfo is None:
            raise ValueError("the span has an end without a time zone: datetime.now(UTC) has one")
        values: list[str] = []
        for start in self._starts(begin.astimezone(UTC), end.astimezone(UTC)):
            if len(values) == PERIODS_MAX:
                raise ValueError(f"the span has more than {PERIODS_MAX:,} periods: roll up to longer ones")
            values.append(self.value_at(start))
        return tuple(values)

    def _starts(self, begin: datetime, end: datetime) -> Iterator[datetime]:
        start = begin.replace(minute=0, second=0, microsecond=0)
        if self.period is not Period.HOUR:
            start = start.replace(hour=0)
        if self.period in (Period.MONTH, Period.YEAR):
            start = start.replace(day=1)
        if self.period is Period.YEAR:
            start = start.replace(month=1)
        try:
            while start < end:
                yield start
                start = self._next(start)
        except (OverflowError, ValueError):
            return  # the calendar ends here

    def _next(self, start: datetime) -> datetime:
        match self.period:
            case Period.HOUR:
                return start + timedelta(hours=1)
            case Period.DAY:
                return start + timedelta(days=1)
            case Period.MONTH:
                return (start + timedelta(days=31)).replace(day=1)
            case Period.YEAR:
                return start.replace(year=start.year + 1)


def _moment(value: Any, path: str) -> datetime:
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise BadKeyPart(
        f"{path} is {str(value)[:60]!r}: a moment is a text such as 2018-08-09T12:00:00Z, or seconds since 1970"
    )
