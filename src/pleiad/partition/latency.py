"""How long requests take, counted in classes: what the hot path adds to, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence

BOUNDS_SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""The upper ends of the classes of the latency histogram; one more class has no end."""
CLASSES = len(BOUNDS_SECONDS) + 1


def percentile_ms(counts: Sequence[int], percent: float) -> float | None:
    """The time that so many percent of the requests stayed below; None without requests.

    Within a class requests are taken to be spread evenly; of the class without an end its beginning is told.
    """
    wanted = sum(counts) * percent / 100
    if wanted <= 0:
        return None
    below = 0
    for number, count in enumerate(counts):
        if below + count >= wanted and count:
            low = BOUNDS_SECONDS[number - 1] if number else 0.0
            high = BOUNDS_SECONDS[number] if number < len(BOUNDS_SECONDS) else low
            return round(1_000 * (low + (high - low) * (wanted - below) / count), 3)
        below += count
    return round(1_000 * BOUNDS_SECONDS[-1], 3)
