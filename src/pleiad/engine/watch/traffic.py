"""What was asked of this account since it started: requests, charges and times, by operation and status.

Counting is on the way of every request, so it is one dictionary look-up and a few additions. Whoever shows the
figures does the rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

BOUNDS_SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""The upper ends of the classes of the latency histogram; one more class has no end."""


class Series:
    """The figures of one operation with one status."""

    __slots__ = ("buckets", "charge_ru", "operation", "requests", "seconds", "status")

    def __init__(self, operation: str, status: int) -> None:
        self.operation = operation
        self.status = status
        self.requests = 0
        self.charge_ru = 0.0
        self.seconds = 0.0
        self.buckets = [0] * (len(BOUNDS_SECONDS) + 1)


class Traffic:
    """The counters of an account."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, int], Series] = {}

    def note(self, operation: str, status: int, seconds: float, charge_ru: float) -> None:
        """Counts one answered request."""
        series = self._series.get((operation, status))
        if series is None:
            series = self._series[operation, status] = Series(operation, status)
        series.requests += 1
        series.charge_ru += charge_ru
        series.seconds += seconds
        series.buckets[bisect_left(BOUNDS_SECONDS, seconds)] += 1

    def __iter__(self) -> Iterator[Series]:
        """All series, by operation and status."""
        return iter([series for _, series in sorted(self._series.items())])
