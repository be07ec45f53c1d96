"""What connections may take together: callers known before their bodies, room in line, and an end to everything."""

from __future__ import annotations

import contextlib
import select
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pleiad import errors
from pleiad.server import memory
from pleiad.server.http import protocol
from pleiad.server.http.message import Request, Response, error_response
from tests.rooms.server.test_protocol import GET, echo
from tests.waiting import SECONDS_MAX, Latch, wait_until

Serve = Callable[..., Any]
KB = 1024


def post(length: int, *headers: bytes, target: bytes = b"/") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n%b\r\n" % (target, length, lines)


def gate(request: Request) -> Response | None:
    """Lets in who has a key."""
    if b"key" not in request.headers:
        return error_response(errors.UNAUTHORIZED(reason="no key"))
    request.proof = request.headers[b"key"]
    return None


async def who(request: Request) -> Response:
    return Response(200, b"", b"%r %d" % (request.proof, len(request.body)))


def sums(running: Any) -> tuple[int, int, int]:
    counted: tuple[int, int, int] = running.held_bytes()
    return counted


# -- the gate ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_caller_without_a_key_is_refused_before_its_body_is_sent(
    serve: Serve, tls: bool, chunked: bool
) -> None:
    running = serve(who, tls=tls, gate=gate)
    client = running.connect_tls() if tls else running.connect()
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" if chunked else post(4_000_000)
    answer = client.send(head).read()
    assert answer.status == 401
    assert answer.headers["connection"] == "close"
    assert wait_until(lambda: sums(running) == (0, 0, 0))


def test_the_refusal_can_be_read_though_the_body_is_sent(serve: Serve) -> None:
    client = serve(who, gate=gate).connect()
    client.send(post(1_000_000))
    with contextlib.suppress(ConnectionError):
        client.send(b"x" * 1_000_000)
    assert client.read().status == 401


def test_expect_100_gets_the_refusal_in_the_place_of_the_100(serve: Serve) -> None:
    running = serve(who, gate=gate)
    assert running.connect().send(post(5, b"Expect: 100-continue")).read().status == 401
    client = running.connect().send(post(5, b"Expect: 100-continue", b"key: k"))
    assert client.read_head()[0] == 100
    assert client.send(b"hello").read().body == b"b'k' 5"


def test_the_proof_goes_with_the_request_and_is_made_once(serve: Serve) -> None:
    asked: list[bytes] = []

    def counting(request: Request) -> Response | None:
        asked.append(request.target)
        return gate(request)

    client = serve(who, gate=counting).connect()
    client.send(post(200_000, b"key: k"))
    for _ in range(20):
        client.send(b"x" * 10_000)
    assert client.read().body == b"b'k' 200000"
    assert asked == [b"/"]
    # No proof is left for the next request of the connection, and what came whole is the handler's to check.
    assert client.send(post(2) + b"ab").read().body == b"None 2"
    assert asked == [b"/"]


def test_a_refusal_waits_for_the_answers_before_it(serve: Serve) -> None:
    client = serve(echo, gate=gate).connect().send(b"GET /50 HTTP/1.1\r\nHost: h\r\n\r\n" + post(50_000))
    assert client.read().body == b"GET /50|"
    assert client.read().status == 401
    assert client.is_closed_by_server()


# -- bodies --------------------------------------------------------------------------------------------


def test_bodies_beyond_the_budget_wait_for_room_and_all_arrive(serve: Serve) -> None:
    running = serve(who, bodies_bytes=256 * KB, request_bytes=300 * KB, request_read_seconds=60.0)
    highest = 0

    def send(_: int) -> int:
        nonlocal highest
        client = running.connect()
        client.send(post(250 * KB))
        for _ in range(250):
            client.send(b"x" * KB)
            highest = max(highest, sums(running)[1])
        return int(client.read().status)

    with ThreadPoolExecutor(12) as threads:
        statuses = list(threads.map(send, range(12)))
    assert statuses == [200] * 12
    assert highest < (256 + memory.OVERRUN_BODIES * 300) * KB
    assert wait_until(lambda: sums(running) == (0, 0, 0))


def test_senders_that_hold_the_room_lose_it_to_those_who_wait(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "PRESSED_SECONDS", 0.5)
    running = serve(who, bodies_bytes=200 * KB, request_bytes=150 * KB, request_read_seconds=20.0)
    holders = [running.connect().send(post(150 * KB) + b"x" * 140 * KB) for _ in range(3)]
    assert wait_until(lambda: sums(running)[1] > 200 * KB)
    client = running.connect()
    client.send(post(100 * KB))
    client.send(b"x" * 100 * KB)
    assert client.read().status == 200
    (readable, *_), _, _ = select.select([holder.socket for holder in holders], [], [], SECONDS_MAX)
    refused = next(holder for holder in holders if holder.socket is readable).read()
    assert refused.status == 503
    assert int(refused.headers["x-ms-retry-after-ms"]) > 0
    assert refused.headers["retry-after"] == "1"


def test_without_pressure_a_slow_body_has_its_whole_time(serve: Serve) -> None:
    running = serve(who, request_read_seconds=1_000.0)
    client = running.connect().send(post(3) + b"a")
    assert wait_until(lambda: sums(running)[1] > 0)
    running.pass_time(500)
    assert client.send(b"bc").read().body == b"None 3"


def test_where_there_is_no_room_at_all_a_request_is_refused_with_503(serve: Serve) -> None:
    latch = Latch()

    async def hold(request: Request) -> Response:
        await latch.passed()
        return Response(200)

    running = serve(hold, bodies_bytes=30 * KB, request_bytes=15 * KB)
    # Whole bodies, all being answered: nobody stands in line, and each is counted until its answer.
    whole = post(15 * KB) + b"x" * 15 * KB
    waiting = [running.connect().send(whole) for _ in range(5)]
    assert wait_until(lambda: sums(running)[1] > 75 * KB)
    refused = running.connect().send(whole).read()
    assert refused.status == 503
    assert sums(running)[1] < 90 * KB
    latch.open()
    assert [client.read().status for client in waiting] == [200] * 5
    assert wait_until(lambda: sums(running) == (0, 0, 0))
    assert running.connect().send(whole).read().status == 200


def test_who_waits_in_line_in_vain_is_told_so(serve: Serve) -> None:
    latch = Latch()

    async def hold(request: Request) -> Response:
        await latch.passed()
        return Response(200)

    running = serve(hold, bodies_bytes=30 * KB, request_bytes=60 * KB, request_read_seconds=60.0)
    running.connect().send(post(60 * KB) + b"x" * 60 * KB)
    assert wait_until(lambda: sums(running)[1] > 60 * KB)
    first = running.connect().send(post(50 * KB) + b"x" * 20 * KB)
    assert wait_until(lambda: sums(running)[1] > 80 * KB)
    second = running.connect().send(post(50 * KB) + b"x" * 20 * KB)

    def are_told() -> bool:
        running.pass_time(20)
        return len(select.select([first.socket, second.socket], [], [], 0)[0]) == 2

    assert wait_until(are_told)
    latch.open()
    assert {first.read().status, second.read().status} <= {503, 408}
    assert running.connect().send(GET).read().status == 200


def test_pipelined_requests_that_wait_are_counted_too(serve: Serve) -> None:
    latch = Latch()

    async def hold(request: Request) -> Response:
        await latch.passed()
        return Response(200)

    running = serve(hold)
    client = running.connect().send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    client.send((post(10 * KB) + b"x" * 10 * KB) * 20)
    assert wait_until(lambda: sums(running)[1] > 100 * KB)
    latch.open()
    for _ in range(21):
        assert client.read().status == 200
    assert wait_until(lambda: sums(running) == (0, 0, 0))


@pytest.mark.parametrize("tls", [False, True])
def test_what_a_lost_connection_held_is_given_back(serve: Serve, tls: bool) -> None:
    running = serve(who, tls=tls)
    clients = [running.connect_tls() if tls else running.connect() for _ in range(5)]
    for client in clients:
        client.send(post(300 * KB) + b"x" * 200 * KB)
    assert wait_until(lambda: sums(running)[1] >= 1000 * KB)
    for client in clients:
        client.socket.close()
    assert wait_until(lambda: sums(running) == (0, 0, 0))


# -- heads ---------------------------------------------------------------------------------------------


def test_headers_that_do_not_end_share_one_budget(serve: Serve) -> None:
    running = serve(who, heads_bytes=100 * KB)
    clients = [
        running.connect().send(b"GET / HTTP/1.1\r\nX: " + bytes([65 + number]) * 30 * KB)
        for number in range(5)
    ]
    assert wait_until(lambda: running.server.connections == 5 and sums(running)[0] > 60 * KB)
    assert sums(running)[0] <= 130 * KB
    assert clients[-1].read().status == 503
    assert running.connect().send(GET).read().status == 200, "who sends its headers at once is not concerned"
    for client in clients:
        client.socket.close()
    assert wait_until(lambda: sums(running) == (0, 0, 0))


@pytest.mark.parametrize("in_part", [False, True])
def test_more_headers_than_any_client_sends_are_refused(serve: Serve, in_part: bool) -> None:
    lines = b"".join(b"a%d: b\r\n" % number for number in range(300))
    client = serve(who).connect().send(b"GET / HTTP/1.1\r\n" + lines + (b"" if in_part else b"\r\n"))
    assert client.read().status == 431


def test_headers_read_in_part_are_given_back_when_they_end(serve: Serve) -> None:
    running = serve(who)
    client = running.connect().send(b"GET / HTTP/1.1\r\nHost: h\r\n")
    assert wait_until(lambda: sums(running)[0] > 0)
    assert client.send(b"\r\n").read().status == 200
    assert sums(running) == (0, 0, 0)


# -- answers -------------------------------------------------------------------------------------------


async def large(request: Request) -> Response:
    return Response(200, b"", b"x" * 8_000_000)


def is_answered(running: Any, tls: bool) -> bool:
    """Whether a client gets a long answer whole; on a busy machine it may read too slowly to be told apart."""
    reader = running.connect_tls() if tls else running.connect()
    try:
        return len(reader.send(GET).read().body) == 8_000_000
    except (EOFError, OSError):
        return False
    finally:
        reader.socket.close()


@pytest.mark.parametrize("tls", [False, True])
def test_answers_that_nobody_reads_have_one_budget(serve: Serve, tls: bool) -> None:
    running = serve(large, tls=tls, unsent_bytes=20_000_000)
    clients = [running.connect_tls() if tls else running.connect() for _ in range(8)]
    highest = 0
    for client in clients:
        client.send(GET)
        wait_until(lambda: sums(running)[2] > 0, 1.0)
        highest = max(highest, sums(running)[2])
    assert 0 < highest <= 28_000_000
    assert wait_until(lambda: is_answered(running, tls)), "who reads is answered"
    assert wait_until(lambda: running.server.connections < 9), "who reads nothing is cut"
    for client in clients:
        client.socket.close()
    assert wait_until(lambda: sums(running) == (0, 0, 0))


@pytest.mark.parametrize("tls", [False, True])
def test_of_answers_that_are_not_read_nothing_is_kept_but_what_is_counted(serve: Serve, tls: bool) -> None:
    """A transport keeps the whole of what it is given until its last byte is sent, and TLS made a copy of it."""
    running = serve(large, tls=tls)
    clients = [running.connect_tls() if tls else running.connect() for _ in range(4)]
    tracemalloc.start()
    try:
        for client in clients:
            before_bytes = sums(running)[2]
            client.send(GET)
            assert wait_until(lambda least=before_bytes: sums(running)[2] > least)  # type: ignore[misc]
        # What is counted may for a moment still be in the hands of who has just written it.
        assert wait_until(lambda: tracemalloc.get_traced_memory()[0] < sums(running)[2] + 1_000_000)
    finally:
        tracemalloc.stop()
    for client in clients:
        assert client.read().body == b"x" * 8_000_000
    assert wait_until(lambda: sums(running) == (0, 0, 0))


@pytest.mark.parametrize("tls", [False, True])
def test_a_long_answer_is_sent_whole_before_its_connection_is_closed(serve: Serve, tls: bool) -> None:
    running = serve(large, tls=tls)
    client = running.connect_tls() if tls else running.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert wait_until(lambda: sums(running)[2] > 0)
    assert len(client.read().body) == 8_000_000
    assert client.socket.recv(1) == b""


def test_a_refusal_behind_a_long_answer_comes_after_it(serve: Serve) -> None:
    running = serve(large)
    client = running.connect().send(GET + b"not HTTP at all\r\n\r\n")
    assert wait_until(lambda: sums(running)[2] > 0)
    assert len(client.read().body) == 8_000_000
    assert client.read().status == 400
    assert client.socket.recv(1) == b""


def test_a_client_that_reads_slowly_is_not_cut_for_others(serve: Serve) -> None:
    running = serve(large, unsent_bytes=20_000_000)
    silent = running.connect().send(GET)
    slow = running.connect().send(GET)
    assert wait_until(lambda: sums(running)[2] > 4_000_000)
    received = 0
    while received < 8_000_000:
        received += len(slow.socket.recv(200_000))
        threading.Event().wait(0.05)
    assert received >= 8_000_000
    silent.socket.close()


# -- HTTP/2 --------------------------------------------------------------------------------------------

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
WINDOW = b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x0f\x00\x01"
REQUEST = b"\x00\x00\x05\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x8a"
HTTP_1_1_REQUIRED = 13


def frames_of(received: bytes) -> list[tuple[int, int, bytes]]:
    """Kind, stream and payload of each frame."""
    frames = []
    while received:
        length = int.from_bytes(received[:3], "big")
        frames.append((received[3], int.from_bytes(received[5:9], "big"), received[9 : 9 + length]))
        received = received[9 + length :]
    return frames


@pytest.mark.parametrize("cut", [0, 1, 10, 20, 23, 24, 30, 40, 47, 52])
def test_a_client_that_begins_with_http_2_is_told_to_use_http_1_1(serve: Serve, cut: int) -> None:
    running = serve(who)
    client = running.connect()
    hello = PREFACE + SETTINGS + WINDOW + REQUEST
    for part in filter(None, (hello[:cut], hello[cut:])):
        client.send(part)
        threading.Event().wait(0.02)
    received = b""
    while piece := client.socket.recv(65536):
        received += piece
    settings, reset, goaway = frames_of(received)
    assert settings == (4, 0, b""), "settings first"
    assert reset == (3, 1, HTTP_1_1_REQUIRED.to_bytes(4, "big")), (
        "the request is reset, which is what its sender sees"
    )
    assert goaway == (7, 0, b"\x00\x00\x00\x01" + HTTP_1_1_REQUIRED.to_bytes(4, "big"))
    # The client goes on to send before it has read the answer; it must not be reset for that.
    client.send(b"\x00\x00\x05\x00\x01\x00\x00\x00\x01hello")
    assert running.connect().send(GET).read().status == 200


def test_a_client_that_begins_with_http_2_keeps_its_connection_until_its_request_is_there(
    serve: Serve,
) -> None:
    client = serve(who).connect()
    client.send(PREFACE + SETTINGS)
    assert client.socket.recv(65536) == SETTINGS
    client.send(WINDOW + REQUEST)
    assert [kind for kind, _, _ in frames_of(client.socket.recv(65536))] == [3, 7]


def test_http_2_behind_another_request_is_refused_behind_its_answer(serve: Serve) -> None:
    client = serve(who).connect()
    client.send(GET + PREFACE + SETTINGS + REQUEST)
    received = b""
    while piece := client.socket.recv(65536):
        received += piece
    assert received.startswith(b"HTTP/1.1 200")
    assert [kind for kind, _, _ in frames_of(received[-26:])] == [4, 7]
