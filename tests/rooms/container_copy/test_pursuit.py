"""Catching up with a source: when a copy takes more than its share, and when it gives up."""

from __future__ import annotations

import pytest

from pleiad.engine.traffic import AccountTraffic
from pleiad.job.copy.failure import CopyFailedError
from pleiad.job.copy.pacer import Pacer
from pleiad.job.copy.pursuit import LOOK_SECONDS, PATIENCE_SECONDS, Pursuit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CountedPacer(Pacer):
    """A pacer that tells how often it was hastened."""

    hastened = 0

    def hasten(self) -> bool:
        self.hastened += 1
        return super().hasten()


def pursuit(left: int, seconds_max: float = 10.0) -> tuple[Pursuit, CountedPacer, Clock]:
    clock = Clock()
    pacer = CountedPacer(0.5, AccountTraffic())
    return Pursuit(pacer, seconds_max, left, clock), pacer, clock


def test_a_copy_that_comes_nearer_in_time_keeps_to_its_share() -> None:
    pursued, pacer, clock = pursuit(1000)
    assert not pursued.is_due
    for left in (900, 800, 650, 500):
        clock.now += LOOK_SECONDS
        assert pursued.is_due
        pursued.look(left)
    assert not pacer.hastened


@pytest.mark.parametrize("left", [1000, 1001, 990])
def test_a_copy_that_comes_nearer_too_slowly_or_not_at_all_takes_more(left: int) -> None:
    pursued, pacer, clock = pursuit(1000)
    clock.now += 1
    pursued.look(left)
    assert pacer.hastened == 1


def test_a_copy_gives_up_when_it_comes_no_nearer_at_full_speed_for_long() -> None:
    pursued, pacer, clock = pursuit(1000)
    steps = 0
    while pacer.hasten():
        steps += 1
    assert steps == 2  # everything there is, and then no waiting for others
    clock.now += PATIENCE_SECONDS
    pursued.look(1000)
    clock.now += 1
    with pytest.raises(CopyFailedError, match="faster than it can be followed"):
        pursued.look(2000)


def test_a_copy_that_comes_nearer_now_and_then_goes_on() -> None:
    pursued, pacer, clock = pursuit(1000)
    while pacer.hasten():
        pass
    for left in range(999, 990, -1):
        clock.now += PATIENCE_SECONDS - 1
        pursued.look(left)
        pursued.look(left + 500)


def test_a_copy_that_comes_nearer_much_faster_than_it_has_to_takes_less_again() -> None:
    pursued, pacer, clock = pursuit(1000)
    while pacer.hasten():
        pass
    taken = []
    for left in (600, 300, 100):
        clock.now += 1
        pursued.look(left)
        taken.append(pacer.share)
    assert taken == [0.8, 0.64, 0.512]
    clock.now += 1
    pursued.look(10)
    assert pacer.share == 0.5  # what it was given, and no less


async def test_a_copy_rests_for_requests_that_are_answered_in_its_rests_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traffic, clock = AccountTraffic(), Clock()
    pacer = Pacer(0.25, traffic, clock)
    rests: list[float] = []

    async def sleep(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) < 3:
            traffic.note("create", 201, 0.001, 5.0)

    monkeypatch.setattr("pleiad.job.copy.pacer.asyncio.sleep", sleep)
    for _ in range(5):
        clock.now += 1  # a piece of work that waits for nothing, so that nobody else has a turn in it
        await pacer.rest()
    assert rests == [0, 3.0, 3.0, 0, 0]
