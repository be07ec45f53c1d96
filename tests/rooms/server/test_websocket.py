"""WebSocket on a real listener: a real client of another make, and raw frames of hostile ones."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from pleiad.server.conversation import Conversation, Talk
from pleiad.server.http import websocket
from pleiad.server.http.message import Request, Response
from pleiad.server.http.site import HttpSite
from tests.rooms.server.conftest import Client
from tests.rooms.server.test_protocol import GET
from tests.rooms.server.test_tcp import flood
from tests.waiting import SECONDS_MAX, Latch, turns, wait_until

Serve = Callable[..., Any]
MESSAGE_BYTES_MAX = 100_000
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The example of RFC 6455."""
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def site(begin: Callable[[Conversation], Talk], concurrent_max: int = 1) -> HttpSite:
    async def handler(request: Request) -> Response:
        if request.raw_path == b"/late":
            await turns(50)
        if request.raw_path == b"/refused":
            return Response(403, b"", b"no")
        if websocket.is_offered(request):
            return websocket.accept(request, begin, MESSAGE_BYTES_MAX, ["graph", "chat"], concurrent_max)
        return Response(200, b"", request.body)

    return HttpSite(handler, switches=True)


def say_back(conversation: Conversation) -> Talk:
    async def talk(message: bytes | str) -> None:
        if isinstance(message, str) and message.isdigit():
            await turns(int(message))
        if message == "fail":
            raise ZeroDivisionError
        await conversation.say(message)

    return talk


def offer(path: bytes = b"/", **changed: bytes) -> bytes:
    headers = {
        b"Host": b"localhost",
        b"Upgrade": b"websocket",
        b"Connection": b"keep-alive, Upgrade",
        b"Sec-WebSocket-Version": b"13",
        b"Sec-WebSocket-Key": KEY,
        **{name.replace("_", "-").encode(): value for name, value in changed.items()},
    }
    lines = b"".join(b"%b: %b\r\n" % pair for pair in headers.items() if pair[1])
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (path, lines)


def masked(kind: int, payload: bytes = b"", first: int = 0x80, length: bytes | None = None) -> bytes:
    """A frame as a client sends it."""
    key = b"\x37\xfa\x21\x3d"
    if length is None:
        size = len(payload)
        if size < 126:
            length = bytes([size | 0x80])
        elif size < 65536:
            length = bytes([126 | 0x80]) + struct.pack("!H", size)
        else:
            length = bytes([127 | 0x80]) + struct.pack("!Q", size)
    mask = key * (len(payload) // 4 + 1)
    return bytes([first | kind]) + length + key + bytes(a ^ b for a, b in zip(payload, mask, strict=False))


def read_frame(client: Client) -> tuple[int, bytes]:
    def take(count: int) -> bytes:
        while len(client.buffer) < count:
            if not client._more():
                raise EOFError(f"the connection ended after {client.buffer[:100]!r}")
        taken, client.buffer = client.buffer[:count], client.buffer[count:]
        return taken

    head = take(2)
    assert not head[1] & 0x80, "a server does not mask"
    size = head[1]
    if size == 126:
        (size,) = struct.unpack("!H", take(2))
    elif size == 127:
        (size,) = struct.unpack("!Q", take(8))
    return head[0] & 0x0F, take(size)


def opened(client: Client, path: bytes = b"/") -> Client:
    client.send(offer(path))
    assert client.read_head()[0] == 101
    return client


def close_code(client: Client) -> int:
    kind, payload = read_frame(client)
    assert kind == CLOSE
    return int(struct.unpack("!H", payload[:2])[0])


# -- the handshake -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [b"/", b"/late"])
@pytest.mark.parametrize("encrypted", [False, True])
def test_an_offer_is_accepted_and_frames_may_come_with_it(
    serve_listeners: Serve, encrypted: bool, path: bytes
) -> None:
    running = serve_listeners([site(say_back)], tls=True)
    client = running.connect_tls() if encrypted else running.connect()
    client.send(b"GET /before HTTP/1.1\r\n\r\n" + offer(path) + masked(TEXT, b"hello"))
    assert client.read().status == 200
    status, headers = client.read_head()
    assert (status, headers["sec-websocket-accept"]) == (101, ACCEPT)
    assert (headers["upgrade"], headers["connection"]) == ("websocket", "Upgrade")
    assert "sec-websocket-extensions" not in headers
    assert read_frame(client) == (TEXT, b"hello")
    client.send(masked(BINARY, b"\0" * 70_000))
    assert read_frame(client) == (BINARY, b"\0" * 70_000)


def test_the_first_subprotocol_known_is_agreed_on(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)])
    client = running.connect().send(offer(Sec_WebSocket_Protocol=b"soap, chat, graph"))
    assert client.read_head()[1]["sec-websocket-protocol"] == "chat"
    client = running.connect().send(offer(Sec_WebSocket_Protocol=b"soap"))
    assert "sec-websocket-protocol" not in client.read_head()[1]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Sec_WebSocket_Version": b"8"}, 426),
        ({"Sec_WebSocket_Version": b""}, 426),
        ({"Sec_WebSocket_Key": b""}, 400),
        ({"Sec_WebSocket_Key": b"short"}, 400),
        ({"Sec_WebSocket_Key": b"!" * 24}, 400),
        ({"Sec_WebSocket_Key": b"A" * 6000}, 400),
    ],
)
def test_half_an_offer_is_refused_in_http_and_the_connection_goes_on(
    serve_listeners: Serve, changed: dict[str, bytes], status: int
) -> None:
    client = serve_listeners([site(say_back)]).connect().send(offer(**changed) + GET + GET)
    answer = client.read()
    assert answer.status == status
    if status == 426:
        assert answer.headers["sec-websocket-version"] == "13"
    assert (client.read().status, client.read().status) == (200, 200)


def test_a_handler_may_refuse_an_offer(serve_listeners: Serve) -> None:
    client = serve_listeners([site(say_back)]).connect().send(offer(b"/refused") + GET)
    assert client.read().status == 403
    assert client.read().status == 200
    opened(client).send(masked(TEXT, b"then"))
    assert read_frame(client) == (TEXT, b"then")


def test_other_offers_and_offers_with_a_body_are_read_as_requests(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)])
    assert running.connect().send(offer(Upgrade=b"h2c")).read().status == 200
    post = offer(Content_Length=b"5").replace(b"GET", b"POST", 1) + b"hello"
    assert running.connect().send(post).read().status == 200


def test_a_site_that_does_not_switch_answers_in_http(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"", b"%d" % websocket.is_offered(request))

    assert serve(handler).connect().send(offer()).read().body == b"0"


def test_switching_where_nothing_was_offered_is_a_failure_of_the_server(serve_listeners: Serve) -> None:
    async def handler(request: Request) -> Response:
        request.headers = {
            b"upgrade": b"websocket",
            b"connection": b"upgrade",
            b"sec-websocket-version": b"13",
            b"sec-websocket-key": KEY,
        }
        return websocket.accept(request, say_back, 100)

    assert serve_listeners([HttpSite(handler, switches=True)]).connect().send(GET).read().status == 500


# -- frames --------------------------------------------------------------------------------------------


def test_a_client_of_another_make_talks_pings_and_says_goodbye(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)], tls=True)

    async def talk(scheme: str) -> None:
        url = f"{scheme}://localhost:{running.server.port}/gremlin"
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, compress=15, ssl=False, protocols=["graph"]) as opened_socket,
        ):
            assert opened_socket.protocol == "graph"
            assert not opened_socket.compress
            for text in ("", "hello", "größe", "x" * 90_000):
                await opened_socket.send_str(text)
                assert await opened_socket.receive_str() == text
            for data in (b"", b"\0\xff", b"y" * MESSAGE_BYTES_MAX):
                await opened_socket.send_bytes(data)
                assert await opened_socket.receive_bytes() == data
            await opened_socket.ping(b"are you there")
            await opened_socket.send_str("after")
            assert await opened_socket.receive_str() == "after"
            await opened_socket.close(code=1000)
            assert opened_socket.close_code == 1000

    for scheme in ("ws", "wss"):
        asyncio.run(talk(scheme))
    assert wait_until(lambda: running.server.connections == 0)


def test_a_message_may_come_in_fragments_with_pings_between(serve_listeners: Serve) -> None:
    client = opened(serve_listeners([site(say_back)]).connect())
    euro = "€".encode()
    client.send(masked(TEXT, b"a" + euro[:1], first=0) + masked(PING, b"p") + masked(0, euro[1:], first=0))
    assert read_frame(client) == (PONG, b"p")
    client.send(masked(0, b"z"))
    assert read_frame(client) == (TEXT, "a€z".encode())


def test_messages_are_answered_in_order_or_at_once(serve_listeners: Serve) -> None:
    both = masked(TEXT, b"300") + masked(TEXT, b"quick")
    client = opened(serve_listeners([site(say_back)]).connect()).send(both)
    assert [read_frame(client)[1] for _ in range(2)] == [b"300", b"quick"]
    latch = Latch()

    def when_open(conversation: Conversation) -> Talk:
        async def talk(message: bytes | str) -> None:
            if message != "quick":
                await latch.passed()
            await conversation.say(message)

        return talk

    client = opened(serve_listeners([site(when_open, concurrent_max=2)]).connect()).send(both)
    assert read_frame(client)[1] == b"quick"
    latch.open()
    assert read_frame(client)[1] == b"300"


def test_a_goodbye_is_answered_with_its_code_and_the_end(serve_listeners: Serve) -> None:
    client = opened(serve_listeners([site(say_back)]).connect())
    client.send(masked(CLOSE, struct.pack("!H", 1000) + b"bye") + masked(TEXT, b"too late"))
    assert close_code(client) == 1000
    assert client.is_closed_by_server()


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (bytes([0x81, 5]) + b"hello", 1002),  # not masked
        (masked(3), 1002),  # no such kind
        (masked(11), 1002),
        (masked(TEXT, b"x", first=0xC0), 1002),  # a reserved bit: compressed, which was not agreed on
        (masked(0, b"x"), 1002),  # a continuation of nothing
        (masked(TEXT, b"x", first=0) + masked(TEXT, b"y"), 1002),  # a message inside another
        (masked(PING, b"x", first=0), 1002),  # a control frame in fragments
        (masked(PING, length=bytes([126 | 0x80]) + struct.pack("!H", 200)), 1002),
        (masked(CLOSE, b"x"), 1002),
        (masked(CLOSE, struct.pack("!H", 1005)), 1002),
        (masked(CLOSE, struct.pack("!H", 99)), 1002),
        (masked(CLOSE, struct.pack("!H", 1000) + b"\xff"), 1007),
        (masked(TEXT, b"\xff\xfe"), 1007),
        (masked(TEXT, b"x" * (MESSAGE_BYTES_MAX + 1)), 1009),
        (masked(BINARY, b"x" * 60_000, first=0) + masked(0, b"x" * 60_000), 1009),
        (masked(BINARY, b"x" * 150_000, length=bytes([255]) + struct.pack("!Q", 2**62)), 1009),
        (masked(BINARY, length=bytes([255]) + struct.pack("!Q", 2**64 - 1)), 1002),
        (masked(TEXT, "€".encode() * (MESSAGE_BYTES_MAX // 3 + 1)), 1009),
    ],

)  # fmt: skip
def test_a_broken_frame_is_told_and_the_connection_ends(
    serve_listeners: Serve, frames: bytes, code: int
) -> None:
    running = serve_listeners([site(say_back)])
    client = opened(running.connect()).send(masked(TEXT, b"good"))
    assert read_frame(client) == (TEXT, b"good")
    client.send(frames)
    assert close_code(client) == code
    assert client.is_closed_by_server()
    assert read_frame(opened(running.connect()).send(masked(TEXT, b"other"))) == (TEXT, b"other")
    assert running.server._table.memory.bodies_bytes == 0


def test_what_a_client_sends_behind_its_refusal_is_thrown_away(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)])
    client = opened(running.connect()).send(masked(BINARY, b"x" * 150_000, first=0))
    assert close_code(client) == 1009
    for _ in range(50):
        client.send(b"x" * 10_000)
    assert wait_until(lambda: running.server._table.memory.bodies_bytes == 0)


def test_an_answer_that_fails_is_told_as_such(serve_listeners: Serve) -> None:
    client = opened(serve_listeners([site(say_back)]).connect()).send(masked(TEXT, b"fail"))
    assert close_code(client) == 1011


def throw(client: Client, data: bytes) -> None:
    """Send bytes and the end, and read until the server's end."""
    client.send(data)
    client.socket.shutdown(socket.SHUT_WR)
    while True:
        read_frame(client)


def test_random_bytes_never_hurt(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)])
    for seed in range(60):
        client = opened(running.connect())
        with pytest.raises((EOFError, OSError)):
            throw(client, random.Random(seed).randbytes(200 + seed))
    assert read_frame(opened(running.connect()).send(masked(TEXT, b"still here"))) == (TEXT, b"still here")


# -- limits --------------------------------------------------------------------------------------------


def test_an_idle_client_is_pinged_and_stays_while_it_answers(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)], idle_seconds=100.0)
    client = opened(running.connect())
    for _ in range(3):
        running.pass_time(60)
        assert read_frame(client) == (PING, b"")
        client.send(masked(PONG) + masked(TEXT, b"here"))
        assert read_frame(client) == (TEXT, b"here")
    running.pass_time(60)
    assert read_frame(client) == (PING, b"")
    running.pass_time(60)
    assert close_code(client) == 1001
    client.send(masked(CLOSE, struct.pack("!H", 1001)))
    assert client.is_closed_by_server()


def test_a_message_in_part_has_its_time(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)])
    client = opened(running.connect())
    client.send(masked(TEXT, b"begun", first=0))
    assert wait_until(lambda: any(running.held_bytes()))
    running.pass_time(running.limits.request_read_seconds + 1)
    assert close_code(client) == 1013


def test_a_client_that_does_not_read_is_cut(serve_listeners: Serve) -> None:
    running = serve_listeners([site(say_back)])
    client = opened(running.connect())
    client.socket.settimeout(0.3)
    with pytest.raises((TimeoutError, ConnectionError)):
        flood(client, masked(PING, b"p" * 125) * 50 + masked(BINARY, b"x" * 90_000))
    memory = running.server._table.memory
    assert memory.unsent_bytes < 3_000_000
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.idle_seconds + 1)
    assert (memory.bodies_bytes, memory.unsent_bytes) == (0, 0)


def test_drain_says_goodbye_to_the_idle_and_answers_the_busy(serve_listeners: Serve) -> None:
    latch = Latch()

    def begin(conversation: Conversation) -> Talk:
        async def talk(message: bytes | str) -> None:
            await latch.passed()
            await conversation.say(message)

        return talk

    running = serve_listeners([site(begin)], tls=True)
    idle, busy = opened(running.connect_tls()), opened(running.connect())
    busy.send(masked(TEXT, b"busy"))
    assert wait_until(lambda: running.tasks() > 0)
    draining = asyncio.run_coroutine_threadsafe(running.server.drain(SECONDS_MAX), running.loop)
    assert close_code(idle) == 1001
    idle.send(masked(CLOSE, struct.pack("!H", 1001)))
    assert idle.is_closed_by_server()
    latch.open()
    assert read_frame(busy) == (TEXT, b"busy")
    assert close_code(busy) == 1001
    busy.socket.close()
    draining.result(SECONDS_MAX)


def test_a_disconnect_cancels_the_talk(serve_listeners: Serve) -> None:
    cancelled = threading.Event()

    def begin(conversation: Conversation) -> Talk:
        async def talk(message: bytes | str) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        return talk

    running = serve_listeners([site(begin)])
    client = opened(running.connect()).send(masked(TEXT, b"x"))
    assert wait_until(lambda: running.tasks() == 1)
    client.socket.close()
    assert cancelled.wait(SECONDS_MAX)
    assert wait_until(lambda: running.server.connections == 0)
