"""Answers that wait for one future and have no task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pleiad.server.http.message import Pending, Request, Response
from tests.rooms.server.conftest import Serve
from tests.waiting import wait_until

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Waits:
    """A handler whose answers wait until the test lets them go; it counts how often one has ended."""

    def __init__(self) -> None:
        self.ends = 0
        self.alone: list[bool] = []
        self.futures: list[asyncio.Future[None]] = []

    def handle(self, request: Request) -> Pending:
        self.alone.append(request.is_alone)
        self.futures.append(asyncio.get_running_loop().create_future())
        return Pending(self.futures[-1], self._end)

    def _end(self) -> Response:
        self.ends += 1
        return Response(200, b"", b"%d" % self.ends)

    def let_go(self) -> None:
        future = self.futures[-1]
        future.get_loop().call_soon_threadsafe(future.set_result, None)

    def has(self, requests: int) -> Callable[[], bool]:
        return lambda: len(self.futures) == requests


def test_an_answer_that_waits_for_a_future_is_sent_when_that_is_done_and_the_next_one_after_it(
    serve: Serve,
) -> None:
    waits = Waits()
    client = serve(waits.handle).connect()
    client.send(GET + GET)
    for number in (1, 2):
        assert wait_until(waits.has(number)), "one after the other"
        waits.let_go()
        assert client.read().body == b"%d" % number


def test_what_waits_for_a_future_comes_to_its_end_also_when_its_client_is_gone(serve: Serve) -> None:
    waits = Waits()
    running = serve(waits.handle)
    client = running.connect()
    client.send(GET)
    assert wait_until(waits.has(1))
    client.socket.close()
    assert wait_until(lambda: not running.server.connections)
    assert not waits.futures[0].cancelled()
    waits.let_go()
    assert wait_until(lambda: waits.ends == 1)


def test_a_pending_answer_that_fails_at_its_end_is_told_as_a_failure(serve: Serve) -> None:
    def fail() -> Response:
        raise RuntimeError("nobody foresaw this")

    def handle(_: Request) -> Pending:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return Pending(future, fail)

    assert serve(handle).connect().send(GET).read().status == 500


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_pending_answer_that_is_awaited_ends_once(is_cancelled: bool) -> None:
    waits = Waits()
    pending = waits.handle(Request("GET", b"/", {}))

    async def answer() -> Response:
        return await pending

    task = asyncio.ensure_future(answer())
    await asyncio.sleep(0)
    if is_cancelled:
        task.cancel()
    waits.let_go()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert waits.ends == 1
    assert task.cancelled() is is_cancelled


def test_a_connection_that_had_the_last_turns_to_itself_is_alone_until_another_one_asks(serve: Serve) -> None:
    alone: list[bool] = []

    def handle(request: Request) -> Response:
        alone.append(request.is_alone)
        return Response(200)

    running = serve(handle)
    first, second = running.connect(), running.connect()
    for _ in range(12):
        first.send(GET).read()
    assert alone[-1]
    assert not alone[0]
    second.send(GET).read()
    assert not alone[-1]
    first.send(GET).read()
    assert not alone[-1]
