"""Answers that are made once a second at most."""

from __future__ import annotations

import asyncio

import pytest

from pleiad.heads.admin.once import FRESH_SECONDS, OnceASecond


class Kitchen:
    """Makes answers, and counts them."""

    def __init__(self) -> None:
        self.made = 0
        self.now = 100.0
        self.once = OnceASecond(lambda: self.now)
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.fails = False

    async def make(self) -> bytes:
        self.made += 1
        number = self.made
        await self.may_go_on.wait()
        if self.fails:
            raise RuntimeError("not today")
        return str(number).encode()

    async def ask(self, place: str = "a") -> bytes:
        return await self.once.get(place, self.make)


async def test_however_many_ask_one_answer_is_made_a_second() -> None:
    kitchen = Kitchen()
    assert {await kitchen.ask() for _ in range(50)} == {b"1"}
    kitchen.now += FRESH_SECONDS
    assert {await kitchen.ask() for _ in range(50)} == {b"2"}
    assert kitchen.made == 2


async def test_who_comes_while_it_is_made_waits_for_it() -> None:
    kitchen = Kitchen()
    kitchen.may_go_on.clear()
    waiting = [asyncio.ensure_future(kitchen.ask()) for _ in range(20)]
    await asyncio.sleep(0)
    kitchen.now += 5 * FRESH_SECONDS
    waiting.append(asyncio.ensure_future(kitchen.ask()))
    await asyncio.sleep(0)
    waiting[0].cancel()
    kitchen.may_go_on.set()
    assert {await each for each in waiting[1:]} == {b"1"}
    assert kitchen.made == 1


async def test_places_have_answers_of_their_own() -> None:
    kitchen = Kitchen()
    assert (await kitchen.ask("a"), await kitchen.ask("b"), await kitchen.ask("a")) == (b"1", b"2", b"1")


async def test_a_failure_is_told_and_not_kept() -> None:
    kitchen = Kitchen()
    kitchen.fails = True
    with pytest.raises(RuntimeError):
        await kitchen.ask()
    kitchen.fails = False
    assert await kitchen.ask() == b"2"


async def test_what_is_remembered_is_bounded() -> None:
    kitchen = Kitchen()
    for number in range(3_000):
        kitchen.now += FRESH_SECONDS
        await kitchen.ask(str(number))
    assert len(kitchen.once._made) <= 1_000
