"""Answers whose bodies are made while they are sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from pleiad import errors
from pleiad.server.http.message import Request, Response, StreamedResponse
from tests.rooms.server.conftest import Client
from tests.rooms.server.test_protocol import GET
from tests.waiting import SECONDS_MAX, Latch, turns, wait_until

Serve = Callable[..., Any]
TEXT = b"Content-Type: text/plain\r\n"


def streamed(source: Callable[[], AsyncGenerator[bytes, None]], seconds: float = 20.0) -> Any:
    """A handler whose answer at /stream comes from a source; elsewhere it is the path."""

    async def handler(request: Request) -> Response:
        if request.raw_path == b"/stream":
            return StreamedResponse(200, TEXT, source(), seconds)
        return Response(200, b"", request.raw_path)

    return handler


async def three() -> AsyncGenerator[bytes, None]:
    for part in (b"one", b"", b"two", b"three"):
        yield part
        await turns()


STREAM = b"GET /stream HTTP/1.1\r\n\r\n"


def read_chunk(client: Client) -> bytes:
    while b"\r\n" not in client.buffer:
        if not client._more():
            raise EOFError(f"the connection ended after {client.buffer!r}")
    size, _, client.buffer = client.buffer.partition(b"\r\n")
    length = int(size, 16)
    while len(client.buffer) < length + 2:
        if not client._more():
            raise EOFError("the connection ended inside a chunk")
    chunk, end, client.buffer = (
        client.buffer[:length],
        client.buffer[length : length + 2],
        client.buffer[length + 2 :],
    )
    assert end == b"\r\n"
    return chunk


def read_chunks(client: Client) -> list[bytes]:
    chunks = []
    while chunk := read_chunk(client):
        chunks.append(chunk)
    return chunks


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_streamed_answer_comes_in_chunks_and_the_connection_stays(serve: Serve, encrypted: bool) -> None:
    running = serve(streamed(three), tls=True)
    client = running.connect_tls() if encrypted else running.connect()
    client.send(STREAM + STREAM + GET)
    for _ in range(2):
        status, headers = client.read_head()
        assert (status, headers["transfer-encoding"], headers["content-type"]) == (
            200,
            "chunked",
            "text/plain",
        )
        assert "content-length" not in headers
        assert read_chunks(client) == [b"one", b"two", b"three"]
    assert client.read().body == b"/"


def test_an_empty_stream_is_an_empty_body(serve: Serve) -> None:
    async def nothing() -> AsyncGenerator[bytes, None]:
        return
        yield b""

    client = serve(streamed(nothing)).connect().send(STREAM + GET)
    assert client.read_head()[0] == 200
    assert read_chunks(client) == []
    assert client.read().body == b"/"


@pytest.mark.parametrize("keep", [b"", b"Connection: keep-alive\r\n"])
def test_http_1_0_gets_the_plain_body_and_its_end(serve: Serve, keep: bytes) -> None:
    client = serve(streamed(three)).connect().send(b"GET /stream HTTP/1.0\r\n" + keep + b"\r\n")
    status, headers = client.read_head()
    assert (status, headers["connection"]) == (200, "close")
    assert "transfer-encoding" not in headers
    while client._more():
        pass
    assert client.buffer == b"onetwothree"


def test_head_has_the_headers_alone_and_the_source_is_not_asked(serve: Serve) -> None:
    asked = threading.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        asked.set()
        yield b"x"

    client = serve(streamed(source)).connect().send(b"HEAD /stream HTTP/1.1\r\n\r\n" + GET)
    assert client.read_head()[1]["transfer-encoding"] == "chunked"
    assert client.read().body == b"/"
    assert not asked.is_set()


def test_connection_close_is_honoured(serve: Serve) -> None:
    client = serve(streamed(three)).connect().send(b"GET /stream HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert client.read_head()[1]["connection"] == "close"
    assert read_chunks(client) == [b"one", b"two", b"three"]
    assert client.is_closed_by_server()


def test_a_failure_before_the_first_chunk_is_an_answer(serve: Serve) -> None:
    async def source() -> AsyncGenerator[bytes, None]:
        raise errors.BAD_REQUEST(reason="no")
        yield b""

    client = serve(streamed(source)).connect().send(STREAM + GET)
    assert client.read().status == 400
    assert client.read().status == 200


def test_a_failure_after_it_leaves_the_body_without_its_end(serve: Serve) -> None:
    async def source() -> AsyncGenerator[bytes, None]:
        yield b"begun"
        raise ZeroDivisionError

    running = serve(streamed(source))
    client = running.connect().send(STREAM)
    assert client.read_head()[0] == 200
    assert read_chunk(client) == b"begun"
    with pytest.raises((EOFError, ConnectionResetError)):
        read_chunk(client)
    assert running.connect().send(GET).read().status == 200


def test_a_stream_that_is_late_is_refused_or_cut(serve: Serve) -> None:
    async def never() -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""

    async def once() -> AsyncGenerator[bytes, None]:
        yield b"begun"
        await asyncio.Event().wait()

    client = serve(streamed(never, 0.2)).connect().send(STREAM + GET)
    assert client.read().status == 408
    assert client.read().status == 200
    client = serve(streamed(once, 0.2)).connect().send(STREAM)
    assert client.read_head()[0] == 200
    assert read_chunk(client) == b"begun"
    with pytest.raises((EOFError, ConnectionResetError)):
        read_chunk(client)


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_source_is_asked_at_the_pace_of_the_client(serve: Serve, encrypted: bool) -> None:
    made = 0

    async def source() -> AsyncGenerator[bytes, None]:
        nonlocal made
        for _ in range(1_000):
            made += 1
            yield b"x" * 50_000

    running = serve(streamed(source), tls=True)
    client = running.connect_tls() if encrypted else running.connect()
    client.send(STREAM)
    assert client.read_head()[0] == 200
    before = -1
    while made > before or made == 0:  # until nothing more is made though others are answered
        before = made
        assert running.connect().send(GET).read().status == 200
    assert made < 500
    assert sum(map(len, read_chunks(client))) == 50_000_000


def test_a_client_that_never_reads_is_cut_and_its_source_closed(serve: Serve) -> None:
    closed = threading.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x" * 50_000
        finally:
            closed.set()

    running = serve(streamed(source))
    running.connect().send(STREAM)
    assert wait_until(lambda: running.held_bytes()[2] > 0)

    def is_cut() -> bool:
        running.pass_time(running.limits.idle_seconds)
        return closed.is_set()

    assert wait_until(is_cut)
    assert wait_until(lambda: running.server.connections == 0)
    assert running.server._table.memory.unsent_bytes == 0


def test_a_client_that_goes_closes_the_source(serve: Serve) -> None:
    closed = threading.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield b"begun"
            await asyncio.Event().wait()
        finally:
            closed.set()

    running = serve(streamed(source))
    client = running.connect().send(STREAM)
    assert client.read_head()[0] == 200
    client.socket.close()
    assert closed.wait(SECONDS_MAX)
    assert wait_until(lambda: running.tasks() == 0)


def test_a_source_that_never_waits_does_not_hold_up_others(serve: Serve) -> None:
    stop = threading.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        while not stop.is_set():
            yield b""

    running = serve(streamed(source))
    client = running.connect().send(STREAM)
    try:
        for _ in range(20):
            assert running.connect().send(GET).read().status == 200
    finally:
        stop.set()
    assert client.read_head()[0] == 200
    assert read_chunks(client) == []


def test_drain_lets_a_stream_end(serve: Serve) -> None:
    latch = Latch()

    async def source() -> AsyncGenerator[bytes, None]:
        yield b"first"
        await latch.passed()
        yield b"last"

    running = serve(streamed(source))
    client = running.connect().send(STREAM)
    assert client.read_head()[0] == 200
    assert read_chunk(client) == b"first"
    draining = asyncio.run_coroutine_threadsafe(running.server.drain(SECONDS_MAX), running.loop)
    latch.open()
    assert read_chunks(client) == [b"last"]
    assert client.is_closed_by_server()
    draining.result(SECONDS_MAX)
