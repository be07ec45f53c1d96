"""How fast an import may go, on a clock that the test turns."""

from __future__ import annotations

import pytest

from pleiad.client.import_items import ImportOptions
from pleiad.client.rate import Rate


def test_work_of_any_size_goes_on_average_at_the_rate() -> None:
    now = 0.0
    rate = Rate(100, lambda: now)
    spent = 0
    while spent < 10_000:
        wait_seconds = rate.wait_seconds()
        if wait_seconds > 0:
            now += wait_seconds
            continue
        rate.spend(37)
        spent += 37
    assert now == pytest.approx(100, rel=0.01)


def test_what_was_not_used_is_not_saved_up() -> None:
    now = 0.0
    rate = Rate(100, lambda: now)
    now = 1_000.0
    assert rate.wait_seconds() == 0
    rate.spend(60)
    assert rate.wait_seconds() == pytest.approx(0.5, abs=0.01)


def test_without_a_figure_nothing_waits() -> None:
    rate = Rate(None)
    rate.spend(1e12)
    assert rate.wait_seconds() == 0


@pytest.mark.parametrize(
    ("items", "ru", "batch"),
    [(None, None, 100), (50, None, 5), (1, None, 1), (None, 1000, 20), (5000, 100, 2)],
)
def test_slow_imports_send_small_requests(items: float | None, ru: float | None, batch: int) -> None:
    assert ImportOptions(items_per_second=items, ru_per_second=ru).batch_items == batch
