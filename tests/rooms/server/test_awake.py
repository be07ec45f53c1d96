"""When the loop of a server does not sleep: a client that asks again at once is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from pleiad.limits import Limits
from pleiad.server.connections import AWAKE_SECONDS, ConnectionTable

SOON, LATE = AWAKE_SECONDS / 2, AWAKE_SECONDS * 2
REQUESTS = 50
"""More than it takes to know a client."""


class Turns:
    """A loop whose turns and whose time a test goes through."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[Callable[[], object]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], object]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


class Asker:
    """A connection whose requests are answered at once."""

    def __init__(self, table: ConnectionTable, loop: Turns) -> None:
        self._table, self._loop = table, loop
        self.answers = 0

    def ask(self, pause_seconds: float) -> None:
        """Asks so long after the last answer, and is answered."""
        self._loop.now += pause_seconds
        self._table.answer_later(self)
        self._loop.turn()

    def take_turn(self) -> None:
        self._table.send_later(self)

    def send(self) -> None:
        self.answers += 1

    def abort(self) -> None:
        raise AssertionError("an answer failed")


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Turns:
    loop = Turns()
    monkeypatch.setattr(time, "perf_counter", loop.time)
    return loop


@pytest.fixture
def table(loop: Turns) -> ConnectionTable:
    return ConnectionTable(Limits(), cast(Any, loop))


def test_the_loop_stays_awake_for_a_client_that_asks_again_at_once(
    table: ConnectionTable, loop: Turns
) -> None:
    asker = Asker(table, loop)
    for _ in range(REQUESTS):
        asker.ask(SOON)
    assert asker.answers == REQUESTS
    for _ in range(3):
        assert loop.due  # it does not sleep, however many turns pass
        loop.turn()
    loop.now += AWAKE_SECONDS
    loop.turn()
    assert not loop.due


def test_the_loop_sleeps_where_a_client_takes_its_time(table: ConnectionTable, loop: Turns) -> None:
    asker = Asker(table, loop)
    for _ in range(REQUESTS):
        asker.ask(LATE)
        assert not loop.due


def test_the_loop_sleeps_again_where_a_client_begins_to_take_its_time(
    table: ConnectionTable, loop: Turns
) -> None:
    asker = Asker(table, loop)
    for _ in range(REQUESTS):
        asker.ask(SOON)
    for _ in range(REQUESTS):
        asker.ask(LATE)
    assert not loop.due


def test_the_loop_sleeps_where_two_clients_are_served(table: ConnectionTable, loop: Turns) -> None:
    askers = [Asker(table, loop) for _ in range(2)]
    for _ in range(REQUESTS):
        for asker in askers:
            asker.ask(SOON)
        assert not loop.due
