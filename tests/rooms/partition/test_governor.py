"""The governor of a physical partition, by a clock that the tests turn: no test here waits."""

from __future__ import annotations

import random

import pytest

from pleiad.errors import PleiadError
from pleiad.heads.nosql.failures import substatus_of
from pleiad.limits import Limits
from pleiad.partition.governor import (
    LOW_PRIORITY_RESERVE,
    NORMAL,
    SHARE_SECONDS,
    SYSTEM,
    Buckets,
    Governor,
    Lane,
    Throttle,
    admit_all,
    spend_all,
)
from pleiad.server.http.failures import status_of

LOW = Lane(low_priority=True)


class Clock:
    """A clock that stands still until it is turned; it starts late in an hour."""

    def __init__(self) -> None:
        self.now = 3_500.0

    def __call__(self) -> float:
        return self.now


def governor(clock: Clock, rate_ru: float, *, enforced: bool = True, burst: bool = False) -> Governor:
    return Governor(rate_ru, Throttle(enforced=enforced, burst=burst, clock=clock))


def ask(asked: Governor, ru: float, lane: Lane = NORMAL) -> PleiadError | None:
    """One request that costs so much: None when it was served, else the refusal."""
    try:
        asked.admit(lane)
    except PleiadError as refusal:
        return refusal
    asked.spend(ru, lane)
    return None


def served_in(clock: Clock, asked: Governor, seconds: float, ru: float, lane: Lane = NORMAL) -> float:
    """Request units per second that a greedy client of such requests gets, asking every millisecond."""
    served = 0.0
    for _ in range(int(seconds * 1000)):
        while ask(asked, ru, lane) is None:
            served += ru
        clock.now += 0.001
    return served / seconds


@pytest.mark.requirement("R32", "R40")
def test_r40_a_greedy_client_gets_the_rate_and_is_refused_beyond_it() -> None:
    clock = Clock()
    asked = governor(clock, 10_000)
    assert served_in(clock, asked, 1, 5) > 10_000  # the full bucket, once
    assert served_in(clock, asked, 10, 5) == pytest.approx(10_000, rel=0.01)


def test_a_refusal_is_429_3200_with_the_first_millisecond_at_which_it_would_be_served() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    order = random.Random(7)
    for _ in range(500):
        refusal = ask(asked, order.uniform(1, 900))
        while refusal is not None:
            assert (status_of(refusal), substatus_of(refusal)) == (429, 3200)
            assert "Request rate is large" in refusal.message
            assert refusal.retry_after_ms is not None
            before = clock.now
            clock.now = before + (refusal.retry_after_ms - 1) / 1000
            assert not asked.is_open(), "it asked its client to wait too long"
            clock.now = before + refusal.retry_after_ms / 1000
            refusal = ask(asked, 1)
            assert refusal is None, "it asked its client to come again too early"


def test_a_request_larger_than_the_budget_is_served_and_its_debt_is_paid_off_first() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    assert ask(asked, 2_000) is None
    refusal = ask(asked, 1)
    assert refusal is not None
    assert refusal.retry_after_ms == 4_001
    clock.now += 3.9
    assert ask(asked, 1) is not None
    clock.now += 0.2
    assert ask(asked, 1) is None


def test_a_refused_request_costs_nothing() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    ask(asked, 600)
    level = asked.snapshot().level_ru
    for _ in range(1_000):
        assert ask(asked, 50) is not None
    figures = asked.snapshot()
    assert figures.level_ru == level
    assert (figures.requests, figures.ru, figures.refused) == (1, 600, 1_000)


def test_idle_time_saves_no_more_than_a_second_without_burst_capacity() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    clock.now += 3_600
    assert asked.snapshot().level_ru == 400


def test_observing_refuses_nothing_and_counts_what_enforcing_would_have_refused() -> None:
    enforcing, observing = Clock(), Clock()
    strict, lenient = governor(enforcing, 400), governor(observing, 400, enforced=False)
    refused = 0
    for _ in range(2_000):
        refused += ask(strict, 10) is not None
        assert ask(lenient, 10) is None
        enforcing.now += 0.001
        observing.now += 0.001
    assert refused > 1_000
    assert lenient.snapshot().over_budget == refused
    assert lenient.snapshot().ru == 20_000
    assert lenient.snapshot().refused == 0


def test_requests_of_one_moment_are_let_in_together_and_observed_as_they_would_be_charged() -> None:
    strict, lenient = governor(Clock(), 400), governor(Clock(), 400, enforced=False)
    for asked in (strict, lenient):
        asked.admit()
        assert asked.lets_all_in()
        assert not asked.lets_all_in(LOW)
        asked.spend(1_000, NORMAL, 100)
        assert not asked.lets_all_in()
        figures = asked.snapshot()
        assert (figures.requests, figures.ru, figures.level_ru) == (100, 1_000, -600)
    assert ask(strict, 10) is not None
    assert ask(lenient, 10) is None
    assert lenient.snapshot().over_budget == 1


def test_the_work_of_the_system_itself_is_neither_refused_nor_counted() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    ask(asked, 1_000)
    assert ask(asked, 5_000, SYSTEM) is None
    assert asked.snapshot().ru == 1_000


# -- burst capacity ---------------------------------------------------------------------------------------


def test_five_idle_minutes_of_100_ru_are_ten_seconds_at_3000_ru() -> None:
    clock = Clock()
    asked = governor(clock, 100, burst=True)
    clock.now += 1_000
    assert asked.snapshot().burst_ru == 30_000
    assert served_in(clock, asked, 10, 5) == pytest.approx(3_000, rel=0.02)
    served_in(clock, asked, 5, 5)
    assert served_in(clock, asked, 5, 5) == pytest.approx(100, rel=0.1)
    assert asked.snapshot().burst_spent_ru == pytest.approx(30_000, rel=0.01)


def test_a_refusal_in_a_burst_names_the_next_second() -> None:
    clock = Clock()
    asked = governor(clock, 100, burst=True)
    clock.now += 1_000.25
    while (refusal := ask(asked, 195)) is None:
        pass
    assert refusal.retry_after_ms == 751
    clock.now += 0.751
    assert ask(asked, 1) is None


def test_burst_capacity_is_a_switch_and_only_for_small_partitions() -> None:
    clock = Clock()
    off, large = governor(clock, 100), governor(clock, 3_000, burst=True)
    clock.now += 600
    assert off.snapshot().burst_ru == large.snapshot().burst_ru == 0


# -- priority and throughput buckets --------------------------------------------------------------------------


def test_low_priority_is_refused_first_and_gets_what_high_leaves() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    high = low = low_refused = 0
    for _ in range(20_000):
        clock.now += 0.001
        if random.Random(clock.now).random() < 0.6:
            assert ask(asked, 1) is None, "a request of high priority was refused"
            high += 1
        for _ in range(2):
            if ask(asked, 1, LOW) is None:
                low += 1
            else:
                low_refused += 1
    assert high == pytest.approx(12_000, rel=0.05)
    assert low == pytest.approx(20_000 - high + (1 - LOW_PRIORITY_RESERVE) * 1_000, rel=0.02)
    assert low_refused > 20_000


def test_the_refusal_of_low_priority_says_when_it_is_its_turn() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    ask(asked, 900)
    refusal = ask(asked, 1, LOW)
    assert refusal is not None
    assert refusal.retry_after_ms == 101
    assert ask(asked, 0) is None
    clock.now += 0.101
    assert ask(asked, 1, LOW) is None


def test_a_throughput_bucket_gets_its_percent_and_is_refused_with_3212_while_others_go_on() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    asked.allot(1_000, Throttle(clock=clock), Limits(), buckets=Buckets({1: 20, 3: 50}))
    assert served_in(clock, asked, 10, 1, Lane(bucket=1)) == pytest.approx(220, rel=0.02)
    ask(asked, 1, Lane(bucket=1))
    refusal = ask(asked, 1, Lane(bucket=1))
    assert refusal is not None
    assert (status_of(refusal), substatus_of(refusal)) == (429, 3212)
    assert ask(asked, 1) is None
    assert ask(asked, 1, Lane(bucket=3)) is None
    assert ask(asked, 1, Lane(bucket=5)) is None, "a bucket that is not defined is the container"


def test_requests_without_a_bucket_belong_to_the_default_bucket() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    asked.allot(1_000, Throttle(clock=clock), Limits(), buckets=Buckets({1: 50, 2: 10}, default=2))
    served = served_in(clock, asked, 10, 1)
    assert served == pytest.approx(110, rel=0.02)
    assert ask(asked, 1, Lane(bucket=1)) is None


def test_requests_in_a_bucket_do_not_burst() -> None:
    clock = Clock()
    asked = governor(clock, 100, burst=True)
    asked.allot(100, Throttle(burst=True, clock=clock), Limits(), buckets=Buckets({1: 100}))
    clock.now += 600
    assert served_in(clock, asked, 5, 1, Lane(bucket=1)) == pytest.approx(120, rel=0.02)
    assert asked.snapshot().burst_spent_ru == 0


# -- changes of the rate, background work, several partitions ----------------------------------------------------


def test_a_new_rate_holds_at_once_and_forgives_no_debt() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    ask(asked, 1_400)
    asked.allot(1_000, Throttle(clock=clock), Limits())
    assert asked.snapshot().level_ru == -400
    asked.allot(200, Throttle(clock=clock), Limits())
    assert asked.snapshot().level_ru == -400
    clock.now += 2.1
    assert ask(asked, 1) is None


def test_background_work_spends_only_what_no_request_used() -> None:
    clock = Clock()
    asked = governor(clock, 400)
    asked.spend_spare(400)
    ask(asked, 400)
    assert not asked.has_spare()
    for _ in range(1_000):
        clock.now += 0.01
        ask(asked, 4)
        assert not asked.has_spare(), "requests used everything"
    swept = 0.0
    for _ in range(1_000):
        clock.now += 0.01
        assert ask(asked, 1) is None, "background work held up a request"
        while asked.has_spare():
            asked.spend_spare(6)
            swept += 6
    assert swept == pytest.approx(3_000 - 400, abs=420)


def test_a_request_to_several_partitions_waits_for_the_slowest_and_is_divided_by_rows() -> None:
    clock = Clock()
    first, second, third = (governor(clock, 400) for _ in range(3))
    spend_all([(first, 0), (second, 30), (third, 10)], 900, 300, NORMAL)
    used = [each.snapshot().ru for each in (first, second, third)]
    assert used == pytest.approx([100, 550, 250])
    ask(third, 550)
    with pytest.raises(PleiadError) as caught:
        admit_all([each.admit for each in (first, second, third)], NORMAL)
    assert caught.value.retry_after_ms == 1_001


# -- figures ---------------------------------------------------------------------------------------------------


def test_the_figures_of_the_second_and_the_minute() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    for second in range(90):
        ask(asked, 900 if second == 20 else 100)
        if second == 85:
            ask(asked, 500)
        clock.now += 1
    figures = asked.snapshot()
    assert figures.rate_ru == 1_000
    assert figures.second_ru == 100
    assert figures.minute_ru == 60 * 100 + 500
    assert figures.normalized_percent == 60
    assert figures.requests == 91
    clock.now += 120
    later = asked.snapshot()
    assert (later.second_ru, later.minute_ru, later.normalized_percent) == (0, 0, 0)
    assert later.ru == figures.ru == 90 * 100 + 800 + 500


def test_normalized_use_is_at_most_100_percent_and_refusals_are_counted_by_the_minute() -> None:
    clock = Clock()
    asked = governor(clock, 100)
    ask(asked, 250)
    assert ask(asked, 1) is not None
    assert asked.snapshot().normalized_percent == 100
    assert asked.snapshot().refused_minute == 1
    clock.now += 62
    ask(asked, 1)
    assert asked.snapshot().refused_minute == 0
    assert asked.snapshot().refused == 1


def test_autoscale_stands_between_a_tenth_and_the_whole_and_only_steady_use_reaches_the_top() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    asked.allot(1_000, Throttle(clock=clock), Limits(), autoscale=True)
    assert asked.snapshot().scaled_ru == 100
    ask(asked, 1_000)  # the units of a short spike were there anyway
    clock.now += 1
    assert asked.snapshot().scaled_ru == 200
    served_in(clock, asked, 6, 5)
    assert asked.snapshot().scaled_ru == pytest.approx(1_000, rel=0.01)
    clock.now += 30
    assert asked.snapshot().scaled_ru == 100
    assert asked.snapshot().scaled_hour_ru == pytest.approx(1_000, rel=0.01)
    clock.now += 3_600
    assert asked.snapshot().scaled_hour_ru == 100


# -- several servers -----------------------------------------------------------------------------------


def test_governors_with_shares_of_one_rate_serve_it_together_and_hold_one_second_of_it() -> None:
    clock = Clock()
    parts = [governor(clock, 1_000), governor(clock, 1_000)]
    for asked, share in zip(parts, (0.7, 0.3), strict=True):
        asked.set_share(share, 2)
    assert [asked.snapshot().level_ru for asked in parts] == [700, 300]
    served = sum(served_in(clock, asked, 10, 5) for asked in parts)
    assert served == pytest.approx(1_000 * 11 / 10, rel=0.01)  # ten seconds, and a full bucket
    assert parts[0].snapshot().rate_ru == 1_000
    assert parts[0].snapshot().share == 0.7


def test_without_a_share_a_chunk_is_served_and_the_refusal_counts_on_the_even_part_that_comes() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    asked.set_share(0.0, 4)
    clock.now += 100
    assert [ask(asked, 50) for _ in range(2)] == [None, None]
    refusal = ask(asked, 50)
    assert refusal is not None
    assert refusal.retry_after_ms == int(SHARE_SECONDS * 1000) + 1
    clock.now += 100
    assert ask(asked, 50) is not None
    asked.set_share(0.5, 4)
    clock.now += 0.001
    assert ask(asked, 50) is None


def test_a_refusal_with_a_share_is_the_first_millisecond_at_which_that_share_serves_it() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    asked.set_share(0.5, 2)
    assert ask(asked, 600) is None
    refusal = ask(asked, 1)
    assert refusal is not None
    assert refusal.retry_after_ms == 201
    clock.now += 0.199
    assert ask(asked, 1) is not None
    clock.now += 0.002
    assert ask(asked, 1) is None


def test_burst_and_buckets_are_spent_in_the_share() -> None:
    clock = Clock()
    whole, half = governor(clock, 100, burst=True), governor(clock, 100, burst=True)
    half.set_share(0.5, 2)
    clock.now += 200
    assert half.snapshot().burst_ru == pytest.approx(whole.snapshot().burst_ru / 2, rel=0.01)
    assert served_in(clock, half, 1, 5) <= 3_000 / 2 + 100
    asked = governor(clock, 1_000)
    asked.allot(1_000, Throttle(clock=clock), Limits(), buckets=Buckets({1: 20}))
    asked.set_share(0.5, 2)
    assert served_in(clock, asked, 5, 5, Lane(bucket=1)) == pytest.approx(1_000 * 0.2 * 0.5 * 6 / 5, rel=0.05)


def test_what_a_governor_makes_of_its_budget_says_whether_a_share_is_of_use() -> None:
    clock = Clock()
    asked = governor(clock, 1_000)
    asked.set_share(0.0, 2)
    assert asked.demand() == (0.0, 0, False, True)
    ask(asked, 150)
    ask(asked, 5)
    assert asked.demand() == (150.0, 1, True, False)
    asked.set_share(1.0)
    clock.now += 2
    assert asked.demand().is_full
    asked.spend_spare(10)  # background work waits for units too
    assert not asked.demand().is_full
