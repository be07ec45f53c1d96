"""One connection as a client sees it: framing, order, keep-alive, limits, failures."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from pleiad.server.connections import TURN_SECONDS
from pleiad.server.http.failures import ROUTE_NOT_FOUND
from pleiad.server.http.message import ConnectionCut, Request, Response
from pleiad.server.http.protocol import LINGER_SECONDS
from tests.waiting import SECONDS_MAX, Latch, forever, turns, wait_until

Serve = Callable[..., Any]
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def echo(request: Request) -> Response:
    """Answer with what was received; a path of digits waits that many turns of the loop first."""
    digits = request.raw_path[1:]
    if digits.isdigit():
        await turns(int(digits))
    text = b"%b %b|%b" % (request.method.encode(), request.target, request.body)
    return Response(200, b"x-from: echo\r\n", text)


def error_code(body: bytes) -> str:
    error = json.loads(body)
    assert set(error) == {"code", "message"}
    return str(error["code"])


# -- framing -----------------------------------------------------------------------------------------


def test_a_response_has_server_date_length_and_the_handlers_headers(serve: Serve) -> None:
    began = time.time()
    answer = serve(echo).connect().send(GET).read()
    assert (answer.status, answer.body) == (200, b"GET /|")
    assert answer.headers["server"] == "Pleiad"
    assert answer.headers["x-from"] == "echo"
    assert "connection" not in answer.headers
    assert began - 2 < parsedate_to_datetime(answer.headers["date"]).timestamp() <= time.time()


def test_a_connection_serves_many_requests(serve: Serve) -> None:
    client = serve(echo).connect()
    for number in range(5):
        body = b"x" * number
        client.send(b"POST /p?%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (number, number, body))
        assert client.read().body == b"POST /p?%d|%b" % (number, body)


@pytest.mark.parametrize("cut", [3, 6, 7, 8, 10, 13, 20, 25, 30, 50])
def test_letters_beyond_ascii_in_a_path_are_taken_as_if_they_were_escaped(serve: Serve, cut: int) -> None:
    async def handler(request: Request) -> Response:
        answer = await echo(request)
        return Response(200, b"", answer.body + b"|" + request.headers.get(b"x-a", b""))

    client = serve(handler).connect()
    raw = "POST /äb日 HTTP/1.1\r\nX-A: ä\r\nContent-Length: 2\r\n\r\nä".encode()
    for pieces in ((raw[:cut], raw[cut:]), (raw,), [raw[at : at + 1] for at in range(len(raw))]):
        for piece in pieces:
            client.send(piece)
        assert client.read().body == "POST /%C3%A4b%E6%97%A5|ä|ä".encode()


def test_a_request_that_names_its_host_twice_is_refused_and_of_other_headers_the_last_counts(
    serve: Serve,
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"", request.header(b"x-a").encode())

    server = serve(handler)
    for second in (b"Host", b"hOST"):
        raw = b"GET / HTTP/1.1\r\nHost: localhost\r\n%b: evil.example\r\n\r\n" % second
        assert server.connect().send(raw).read().status == 400
    raw = b"GET / HTTP/1.1\r\nHost: h\r\nX-A: one\r\nx-a: two\r\n\r\n"
    assert server.connect().send(raw).read().body == b"two"


def test_a_request_may_arrive_byte_by_byte(serve: Serve) -> None:
    client = serve(echo).connect()
    for byte in b"PUT /slow HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc":
        client.send(bytes([byte]))
    assert client.read().body == b"PUT /slow|abc"


def test_a_chunked_body_is_joined_and_its_trailers_do_not_become_headers(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"", request.body + b"|" + request.header(b"authorization").encode())

    client = serve(handler).connect()
    client.send(b"POST / HTTP/1.1\r\nAuthorization: real\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.send(b"3\r\nabc\r\n").send(b"4;ext=1\r\ndefg\r\n2\r\nhi\r\n0\r\nAuthorization: forged\r\n\r\n")
    assert client.read().body == b"abcdefghi|real"
    assert client.send(GET).read().body == b"|"


def test_chunk_extensions_are_ignored(serve: Serve) -> None:
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = serve(echo).connect().send(head + b'3;a=b;c="d"\r\nabc\r\n0;e\r\n\r\n' + GET)
    assert client.read().body == b"POST /|abc"
    assert client.read().body == b"GET /|"


def test_head_gives_the_length_but_no_body(serve: Serve) -> None:
    client = serve(echo).connect()
    answer = client.send(b"HEAD /abc HTTP/1.1\r\n\r\n").read(with_body=False)
    assert answer.headers["content-length"] == str(len(b"HEAD /abc|"))
    assert client.send(GET).read().body == b"GET /|"


@pytest.mark.parametrize("status", [204, 304])
def test_no_content_and_not_modified_have_neither_body_nor_length(serve: Serve, status: int) -> None:
    async def handler(request: Request) -> Response:
        return Response(status if request.target == b"/none" else 200, b"", b"body")

    client = serve(handler).connect()
    answer = client.send(b"GET /none HTTP/1.1\r\n\r\n").read()
    assert answer.status == status
    assert "content-length" not in answer.headers
    assert client.send(GET).read().body == b"body"


def test_expect_100_is_answered_before_the_body_is_sent(serve: Serve) -> None:
    client = serve(echo).connect()
    client.send(b"POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert client.read_head()[0] == 100
    assert client.send(b"ok").read().body == b"POST /e|ok"


def test_expect_100_waits_for_the_responses_before_it(serve: Serve) -> None:
    client = serve(echo).connect()
    client.send(
        b"GET /60 HTTP/1.1\r\n\r\nPOST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    assert client.read().body == b"GET /60|"
    assert client.read_head()[0] == 100
    assert client.send(b"ok").read().body == b"POST /e|ok"


def test_expect_100_is_refused_at_once_when_the_body_would_be_too_large(serve: Serve) -> None:
    client = serve(echo, request_bytes=100).connect()
    client.send(b"POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n")
    assert client.read().status == 413


def test_an_offer_to_upgrade_is_ignored_and_the_request_answered(serve: Serve) -> None:
    client = serve(echo).connect()
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    client.send(b"POST /u HTTP/1.1\r\n" + offer + b"Content-Length: 4\r\n\r\nbo").send(b"dy" + GET)
    assert client.read().body == b"POST /u|body"
    assert client.read().body == b"GET /|"


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_offer_beside_the_wish_to_close_takes_nothing_from_the_body(serve: Serve, version: bytes) -> None:
    client = serve(echo).connect()
    offer = b"Connection: close, Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n" % len(GET)
    client.send(b"POST /u HTTP/%b\r\n" % version + offer + GET)
    answer = client.read()
    assert (answer.body, answer.headers["connection"]) == (b"POST /u|" + GET, "close")
    assert client.is_closed_by_server()


# -- order and keep-alive ----------------------------------------------------------------------------


def test_pipelined_responses_keep_the_order_of_the_requests(serve: Serve) -> None:
    client = serve(echo).connect()
    targets = [b"/80", b"/a", b"/10", b"/b", b"/c"]
    client.send(b"".join(b"GET %b HTTP/1.1\r\n\r\n" % target for target in targets))
    assert [client.read().body for _ in targets] == [b"GET %b|" % target for target in targets]


def test_a_thousand_pipelined_requests_are_all_answered(serve: Serve) -> None:
    client = serve(echo).connect()
    pad = b"p" * 200
    requests = b"".join(b"GET /n%d HTTP/1.1\r\nX-Pad: %b\r\n\r\n" % (n, pad) for n in range(1000))
    sender = threading.Thread(target=client.send, args=(requests,))
    sender.start()
    assert [client.read().body for _ in range(1000)] == [b"GET /n%d|" % n for n in range(1000)]
    sender.join()


def test_only_a_few_pipelined_requests_are_taken_while_a_handler_waits(serve: Serve) -> None:
    async def wait(request: Request) -> Response:
        await forever()
        return Response(200)

    client = serve(wait).connect(seconds=0.5)
    flood = b"GET /flood HTTP/1.1\r\nX-Pad: %b\r\n\r\n" % (b"p" * 8000)
    client.send(GET)
    with pytest.raises(TimeoutError):
        client.send(flood * 4000)  # more than every socket buffer holds


@pytest.mark.parametrize("waits", [0, 20])
def test_a_handler_may_cut_the_connection_and_earlier_answers_still_arrive(
    serve: Serve, waits: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def cut(request: Request) -> Response:
        await turns(waits)
        if request.raw_path == b"/cut":
            raise ConnectionCut
        return Response(200, b"", request.raw_path)

    running = serve(cut)
    client = running.connect()
    client.send(b"".join(b"GET /%b HTTP/1.1\r\n\r\n" % name for name in (b"a", b"cut", b"never")))
    assert client.read().body == b"/a"
    assert client.is_closed_by_server()
    assert running.connect().send(b"GET /b HTTP/1.1\r\n\r\n").read().body == b"/b"
    assert not caplog.records


def test_connection_close_is_honoured(serve: Serve) -> None:
    client = serve(echo).connect()
    client.send(b"GET /30 HTTP/1.1\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n")
    answer = client.read()
    assert (answer.body, answer.headers["connection"]) == (b"GET /30|", "close")
    assert client.is_closed_by_server()


def test_http_1_0_closes_unless_asked_to_stay(serve: Serve) -> None:
    running = serve(echo)
    client = running.connect().send(b"GET /old HTTP/1.0\r\n\r\n")
    assert client.read().headers["connection"] == "close"
    assert client.is_closed_by_server()
    client = running.connect().send(b"GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert client.read().headers["connection"] == "keep-alive"
    assert client.send(GET).read().status == 200


# -- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused_and_not_read_to_its_end(serve: Serve, chunked: bool) -> None:
    running = serve(echo, request_bytes=1000)
    client = running.connect()
    if chunked:
        client.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
    else:
        client.send(b"POST / HTTP/1.1\r\nContent-Length: 900000000000\r\n\r\n" + b"x" * 200_000)
    answer = client.read()
    assert (answer.status, error_code(answer.body)) == (413, "RequestEntityTooLarge")
    assert answer.headers["connection"] == "close"
    assert answer.headers["content-type"] == "application/json"
    assert client.is_closed_by_server()
    client.socket.close()
    assert wait_until(lambda: running.server.connections == 0)


def test_a_client_that_stays_after_a_refusal_is_cut(serve: Serve) -> None:
    running = serve(echo, request_bytes=1000)
    client = running.connect().send(b"POST / HTTP/1.1\r\nContent-Length: 900000000000\r\n\r\n")
    assert client.read().status == 413
    assert running.server.connections == 1
    running.pass_time(LINGER_SECONDS + 1)
    assert wait_until(lambda: running.server.connections == 0)


def test_a_body_of_exactly_the_limit_is_read(serve: Serve) -> None:
    client = serve(echo, request_bytes=50_000).connect()
    client.send(b"POST /b HTTP/1.1\r\nContent-Length: 50000\r\n\r\n" + b"y" * 50_000)
    assert client.read().body == b"POST /b|" + b"y" * 50_000


def test_headers_over_the_limit_are_refused(serve: Serve) -> None:
    running = serve(echo, header_bytes=2000)
    whole = running.connect().send(b"GET / HTTP/1.1\r\nX-Big: " + b"x" * 3000 + b"\r\n\r\n").read()
    assert (whole.status, error_code(whole.body)) == (431, "RequestHeaderFieldsTooLarge")
    endless = running.connect().send(b"GET / HTTP/1.1\r\nX-Big: " + b"x" * 40_000).read()
    assert endless.status == 431
    trailers = running.connect().send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-T: ")
    assert trailers.send(b"x" * 40_000).read().status == 431
    assert running.connect().send(b"GET / HTTP/1.1\r\nX: " + b"x" * 1500 + b"\r\n\r\n").read().status == 200


def test_a_client_that_drips_its_request_is_cut_off(serve: Serve) -> None:
    running = serve(echo, request_read_seconds=10.0)
    client = running.connect().send(b"GET / HT")
    other = running.connect().send(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n123")
    assert wait_until(lambda: all(running.held_bytes()[:2]))
    running.pass_time(11)
    for dripping in (client, other):
        answer = dripping.read()
        assert (answer.status, error_code(answer.body)) == (408, "RequestTimeout")
        assert dripping.is_closed_by_server()


def test_an_idle_connection_is_closed_but_a_busy_one_is_not(serve: Serve) -> None:
    latch = Latch()

    async def answer(request: Request) -> Response:
        if request.raw_path == b"/busy":
            await latch.passed()
        return Response(200)

    running = serve(answer, idle_seconds=60.0, request_read_seconds=60.0)
    silent = running.connect()
    used = running.connect().send(GET)
    assert used.read().status == 200
    busy = running.connect().send(b"GET /busy HTTP/1.1\r\n\r\n")
    assert wait_until(lambda: running.server.connections == 3 and running.tasks() == 1)
    running.pass_time(61)
    assert silent.is_closed_by_server()
    assert used.is_closed_by_server()
    latch.open()
    assert busy.read().status == 200


def test_blank_lines_do_not_keep_a_connection_alive(serve: Serve) -> None:
    running = serve(echo, idle_seconds=60.0)
    client = running.connect()

    def is_closed() -> bool:
        try:
            client.send(b"\r\n")
        except OSError:
            return True
        return bool(client.has_news())

    running.pass_time_until(is_closed, 20)
    assert client.is_closed_by_server()


def test_connections_over_the_limit_get_503(serve: Serve) -> None:
    running = serve(echo, connections=2)
    first, second = running.connect().send(GET), running.connect().send(GET)
    assert (first.read().status, second.read().status) == (200, 200)
    third = running.connect().send(GET)
    answer = third.read()
    assert (answer.status, error_code(answer.body)) == (503, "ServiceUnavailable")
    assert third.is_closed_by_server()
    first.socket.close()
    assert wait_until(lambda: running.server.connections == 1)
    assert running.connect().send(GET).read().status == 200


def test_a_client_that_does_not_read_stops_the_server_from_answering_it(serve: Serve) -> None:
    answered = 0

    async def large(request: Request) -> Response:
        nonlocal answered
        answered += 1
        return Response(200, b"", b"z" * 1_000_000)

    running = serve(large)
    client = running.connect()
    client.send(GET * 100)
    assert not wait_until(lambda: answered > 60, seconds_max=0.4)
    assert sum(len(client.read().body) for _ in range(100)) == 100_000_000
    assert answered == 100


def test_a_client_that_never_reads_is_cut(serve: Serve) -> None:
    async def large(request: Request) -> Response:
        return Response(200, b"", b"z" * 4_000_000)

    running = serve(large)
    running.connect().send(GET * 20)
    assert wait_until(lambda: running.held_bytes()[2] > 0)
    assert running.server.connections == 1

    def is_cut() -> bool:
        running.pass_time(running.limits.idle_seconds)
        return bool(running.server.connections == 0)

    assert wait_until(is_cut)
    assert wait_until(lambda: running.server.connections == 0)


# -- failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\r\n\r\n",
        b"\x00\x01\x02\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"CONNECT h:1 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        # What two servers in a row might read differently.
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        b"GET / HTTP/1.1\r\nA : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
        b"GET / HTTP/1.1\nA: b\n\n",
    ],
)
def test_a_malformed_request_gets_400_and_the_end(serve: Serve, garbage: bytes) -> None:
    client = serve(echo).connect().send(garbage)
    answer = client.read()
    assert (answer.status, error_code(answer.body)) == (400, "BadRequest")
    assert client.is_closed_by_server()


def test_good_requests_before_a_malformed_one_are_answered_first(serve: Serve) -> None:
    client = serve(echo).connect().send(b"GET /40 HTTP/1.1\r\n\r\n" + GET + b"!!!\r\n\r\n")
    assert [client.read().status for _ in range(3)] == [200, 200, 400]


def test_a_truncated_request_leaves_nothing_behind(serve: Serve) -> None:
    running = serve(echo)
    client = running.connect().send(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc")
    assert wait_until(lambda: running.server.connections == 1)
    client.socket.close()
    assert wait_until(lambda: running.server.connections == 0)
    assert running.tasks() == 0


@pytest.mark.parametrize("waits", [False, True])
def test_a_failing_handler_gives_500_and_a_log_without_headers(
    serve: Serve, caplog: pytest.LogCaptureFixture, waits: bool
) -> None:
    async def fail(request: Request) -> Response:
        if waits:
            await asyncio.sleep(0)
        raise ZeroDivisionError("the cause")

    client = serve(fail).connect()
    with caplog.at_level(logging.ERROR, "pleiad.server"):
        answer = client.send(b"GET /x HTTP/1.1\r\nAuthorization: secret-key\r\n\r\n").read()
    assert (answer.status, error_code(answer.body)) == (500, "InternalServerError")
    assert b"cause" not in answer.body
    assert "the cause" in caplog.text
    assert "Traceback" in caplog.text
    assert "secret-key" not in caplog.text
    assert client.send(GET).read().status == 500


def test_an_error_of_the_table_that_a_handler_lets_through_keeps_its_status(serve: Serve) -> None:
    async def missing(request: Request) -> Response:
        raise ROUTE_NOT_FOUND(path="/x")

    answer = serve(missing).connect().send(GET).read()
    assert (answer.status, error_code(answer.body)) == (404, "NotFound")


def test_a_handler_that_returns_nonsense_gives_500(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def nonsense(request: Request) -> Any:
        return Response(7) if request.target == b"/7" else None

    client = serve(nonsense).connect()
    assert client.send(GET).read().status == 500
    assert client.send(b"GET /7 HTTP/1.1\r\n\r\n").read().status == 500


def test_a_disconnect_cancels_the_waiting_handler(serve: Serve) -> None:
    ended: list[str] = []
    begun = threading.Event()

    async def wait(request: Request) -> Response:
        begun.set()
        try:
            await forever()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return Response(200)

    running = serve(wait)
    client = running.connect().send(GET)
    assert begun.wait(SECONDS_MAX)
    client.socket.close()
    assert wait_until(lambda: ended == ["cancelled"])
    assert running.tasks() == 0
    assert running.server.connections == 0


def test_a_handler_that_finishes_after_the_disconnect_breaks_nothing(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    begun, finished, latch = threading.Event(), threading.Event(), Latch()

    async def stubborn(request: Request) -> Response:
        begun.set()
        try:
            await latch.passed()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            finished.set()
        return Response(200, b"", b"ok")

    running = serve(stubborn)
    client = running.connect().send(GET + GET)
    assert begun.wait(SECONDS_MAX)
    client.socket.close()
    assert finished.wait(SECONDS_MAX)
    latch.open()
    assert running.connect().send(GET).read().status == 200
    assert not caplog.records


def test_a_short_request_waits_for_one_long_one_and_not_for_all(serve: Serve) -> None:
    order: list[bytes] = []
    all_sent, short_sent = threading.Event(), threading.Event()
    # A turn answers two of them at most: by the fifth, all that had been sent before the first one ended were read.
    held_until = {1: all_sent, 5: short_sent}

    async def work(request: Request) -> Response:
        order.append(request.raw_path)
        if request.raw_path == b"/long":
            if gate := held_until.get(len(order)):
                gate.wait(SECONDS_MAX)
            time.sleep(2 * TURN_SECONDS)  # it is busy for longer than a turn
        return Response(200)

    running = serve(work)
    long = [running.connect() for _ in range(20)]
    short = running.connect()
    for client in (short, *long):
        client.send(GET).read()
    order.clear()
    for client in long:
        client.send(b"GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
    all_sent.set()
    assert wait_until(lambda: len(order) == 5)
    short.send(GET)
    short_sent.set()
    assert all(client.read().status == 200 for client in (short, *long))
    assert order.index(b"/") < 8, "it waited for those under way, and the others came after it"
