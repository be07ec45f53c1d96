"""Whatever bytes arrive, the server stays well: no 500, no leak, and the next client is served."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.server.http.message import Request, Response
from tests.waiting import SECONDS_MAX, turns, wait_until

Serve = Callable[..., Any]
GET = b"GET / HTTP/1.1\r\n\r\n"

SEEDS = [
    GET,
    GET * 3,
    b"POST /w HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
    b"PUT / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok" + GET,
    b"HEAD /w HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"\x16\x03\x01\x00\x2a\x01\x00\x00\x26\x03\x03" + b"r" * 36,
]
TOKENS = [
    b"\r\n", b"\r\n\r\n", b"\x00", b"\xff", b":", b" ", b"0", b"-1", b"Content-Length: 9\r\n", b"HTTP/1.1",
    b"Transfer-Encoding: chunked\r\n", b"Upgrade: x\r\nConnection: upgrade\r\n", b"Expect: 100-continue\r\n",
    b"Connection: close\r\n", b"CONNECT a HTTP/1.1\r\n\r\n", b"x" * 3000,
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good message with bytes cut out, replaced and put in."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 6)))
        data = data[:start] + draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=4))) + data[end:]
    return data


async def handler(request: Request) -> Response:
    if request.raw_path == b"/w":
        await turns(10)
    return Response(200, b"", request.body)


def throw(port: int, data: bytes, cuts: list[int]) -> bytes:
    """Send the bytes in pieces, close the sending side, and return all that came back."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                connection.sendall(data[start:end])
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                received += piece
        except (ConnectionResetError, BrokenPipeError, OSError):
            pass
    return received


@pytest.mark.parametrize("tls", [False, True])
def test_no_bytes_can_harm_the_server(serve: Serve, caplog: pytest.LogCaptureFixture, tls: bool) -> None:
    running = serve(handler, tls=tls, header_bytes=2000, request_bytes=4000)
    answers: list[bytes] = []

    @settings(max_examples=120, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        st.one_of(mutated(), mutated(), st.binary(max_size=300)), st.lists(st.integers(0, 200), max_size=3)
    )
    def attack(data: bytes, cuts: list[int]) -> None:
        places = sorted({min(cut, len(data)) for cut in cuts})
        answers.append(throw(running.server.port, data, places))

    with caplog.at_level(logging.WARNING):
        attack()
    assert not any(b"HTTP/1.1 500" in answer for answer in answers)
    # Those that wait for more are cut when their time is over.
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.request_read_seconds + 1)
    assert running.connect().send(GET).read().status == 200
    memory = running.server._table.memory

    def is_quiet() -> bool:
        held = memory.heads_bytes or memory.bodies_bytes or memory.unsent_bytes
        return not held and running.tasks() == 0 and running.server.connections == 1

    assert wait_until(is_quiet)
    assert running.tasks() == 0
    assert running.server.connections == 1
    assert not caplog.records
    assert (memory.heads_bytes, memory.bodies_bytes, memory.unsent_bytes) == (0, 0, 0)
