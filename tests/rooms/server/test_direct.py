"""Direct mode on a real listener inside TLS, with an answerer that knows no database."""

from __future__ import annotations

import asyncio
import contextlib
import math
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson
import pytest

from attack.fuzzing.frames import FrameMaker
from attack.target import MASTER
from pleiad.heads.nosql.direct.protocol import ConnectionFacts, DirectProtocol
from pleiad.server.conversation import Conversation
from pleiad.server.http.message import ConnectionCut
from pleiad.server.http.site import HttpSite
from pleiad.server.listener import Recognition
from pleiad.server.memory import Memory
from pleiad.wire.rntbd.context import ContextFrame, read_context_response, write_context_request
from pleiad.wire.rntbd.frame import Frame, ResponseFrame, read_response, write_request, write_response
from pleiad.wire.rntbd.request_tokens import RequestToken
from pleiad.wire.rntbd.response_tokens import ResponseToken
from pleiad.wire.rntbd.token import TokenValue
from tests.rooms.server.conftest import Client, Running
from tests.rooms.server.test_protocol import GET, echo
from tests.waiting import SECONDS_MAX, wait_until

Serve = Callable[..., Running]
KB = 1024
ID = bytes(range(16))
CONTEXT = write_context_request(ContextFrame(ID, b"2020-07-15", b"a test"))


class TalkingClient(Client):
    """A client that sends on, as far as the server takes it, while it reads: in one thread, since the TLS of a
    connection is not made for two."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.socket)
        self.buffer = client.buffer
        self._unsent = b""
        self.socket.setblocking(False)

    def send(self, data: bytes) -> Client:
        self._unsent += data
        self._push()
        return self

    def _push(self) -> None:
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent[: 64 * KB]) :]

    def _more(self) -> bytes:
        while True:
            self._push()
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return super()._more()
            writers = [self.socket] if self._unsent else []
            if not any(select.select([self.socket], writers, [], SECONDS_MAX)):
                raise TimeoutError


class Asker:
    """A client of direct mode."""

    def __init__(self, client: Client, opens: bool = True) -> None:
        self.client = client
        if opens:
            client.send(CONTEXT)
            self.context = self.read_context()

    def _take(self, length: int) -> bytes:
        client = self.client
        while len(client.buffer) < length:
            if not client._more():
                raise EOFError(f"the connection ended after {client.buffer[:100]!r}")
        taken, client.buffer = client.buffer[:length], client.buffer[length:]
        return taken

    def _take_frame(self) -> bytes:
        length = self._take(4)
        return length + self._take(int.from_bytes(length, "little") - 4)

    def _take_payload(self) -> bytes:
        return self._take(int.from_bytes(self._take(4), "little"))

    def read_context(self) -> ResponseFrame:
        frame = read_context_response(self._take_frame())
        return frame if frame.status < 400 else frame._replace(payload=self._take_payload())

    def read(self) -> ResponseFrame:
        frame = read_response(self._take_frame())
        return frame._replace(payload=self._take_payload()) if frame.has_payload else frame

    def read_number(self) -> tuple[int, int]:
        """Status and number of the next answer."""
        frame = self.read()
        number = frame.tokens[ResponseToken.TRANSPORT_REQUEST_ID]
        assert isinstance(number, int)
        return frame.status, number

    def ask(self, number: int, payload: bytes = b"") -> None:
        self.client.send(request(number, payload))


def request(number: int, payload: bytes = b"") -> bytes:
    tokens: dict[int, TokenValue] = {
        RequestToken.TRANSPORT_REQUEST_ID: number,
        RequestToken.REPLICA_PATH: b"/path",
    }
    return write_request(3, 1, ID, tokens, payload)


def answered(frame: Frame, status: int = 200) -> bytes:
    number = frame.tokens[RequestToken.TRANSPORT_REQUEST_ID]
    return write_response(
        status, frame.activity_id, {ResponseToken.TRANSPORT_REQUEST_ID: number}, frame.payload
    )


async def say_back(frame: Frame, facts: ConnectionFacts) -> bytes:
    """Echoes the payload."""
    return answered(frame)


class Gate:
    """Lets requests go on when and in the order a test says; the others it has begun wait."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Event] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.cancelled = 0

    async def answer(self, frame: Frame, facts: ConnectionFacts) -> bytes:
        number = frame.tokens[RequestToken.TRANSPORT_REQUEST_ID]
        assert isinstance(number, int)
        self.loop = asyncio.get_running_loop()
        event = self.waiting[number] = asyncio.Event()
        try:
            await event.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return answered(frame)

    def open(self, number: int) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.waiting[number].set)


def direct(serve: Serve, answer: Any = say_back, **limits: Any) -> Running:
    return serve([DirectProtocol(answer), HttpSite(echo)], tls=True, **limits)


def memory_of(running: Running) -> Memory:
    assert running.server._table is not None
    return running.server._table.memory


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


# -- recognition -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", range(1, 8))
def test_the_first_bytes_are_waited_for_only_while_they_can_be_direct_mode(length: int) -> None:
    protocol = DirectProtocol(say_back)
    assert protocol.recognises(CONTEXT[:length], True) is Recognition.UNSURE
    assert protocol.recognises(CONTEXT[:length], False) is Recognition.NO
    is_told = length > 2
    assert protocol.recognises(b"GET /abc"[:length], True) is (
        Recognition.NO if is_told else Recognition.UNSURE
    )


@pytest.mark.parametrize(
    "first",
    [b"GET / HT", b"\x17\0\0\0\0\0\0\0", b"\0\0", b"\x8a\0\x01\0\0\0\0\0", b"\x8a\0\0\0\0\0\0\x01", GET],
)
def test_what_cannot_be_direct_mode_is_not_taken_for_it(first: bytes) -> None:
    assert DirectProtocol(say_back).recognises(first, True) is Recognition.NO


def test_http_https_and_direct_mode_share_a_port(serve_listeners: Serve) -> None:
    running = direct(serve_listeners)
    assert running.connect().send(GET).read().status == 200
    assert running.connect_tls().send(GET).read().status == 200
    asker = Asker(running.connect_tls())
    asker.ask(7, b"hello")
    assert asker.read().payload == b"hello"
    assert running.connect().send(CONTEXT).read().status == 400


# -- the context -----------------------------------------------------------------------------------


def test_the_context_is_answered_with_the_client_s_version(serve_listeners: Serve) -> None:
    seen: list[ConnectionFacts] = []

    async def look(frame: Frame, facts: ConnectionFacts) -> bytes:
        seen.append(facts)
        return answered(frame)

    asker = Asker(direct(serve_listeners, look).connect_tls())
    assert asker.context.status == 200
    assert asker.context.activity_id == ID
    assert asker.context.tokens == {0: 1, 1: b"2020-07-15", 2: b"Pleiad", 3: b"2.14.0.0"}
    asker.ask(1)
    asker.read()
    assert seen == [("127.0.0.1", "2020-07-15", "a test")]


@pytest.mark.parametrize(
    "first",
    [
        write_context_request(ContextFrame(ID, b"2020-07-15", b"a test"), protocol_version=2),
        CONTEXT.replace(b"\x02\x00\x07", b"\x05\x00\x08"),
        b"\x18" + bytes(7) + ID,
    ],
    ids=["version", "type", "empty"],
)
def test_a_context_that_is_not_understood_is_refused_in_words(serve_listeners: Serve, first: bytes) -> None:
    asker = Asker(direct(serve_listeners).connect_tls(), opens=False)
    asker.client.send(first + request(1))
    refused = asker.read_context()
    assert (refused.status, refused.activity_id) == (400, ID)
    assert orjson.loads(refused.payload)["code"] == "BadRequest"
    assert asker.client.is_closed_by_server()


def test_a_connection_must_say_what_it_is_in_time(serve_listeners: Serve) -> None:
    running = direct(serve_listeners, idle_seconds=math.inf)
    client = running.connect_tls().send(CONTEXT[:20])
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.request_read_seconds + 1)
    assert client.is_closed_by_server()


# -- frames ----------------------------------------------------------------------------------------


def test_several_frames_in_one_segment_are_all_answered(serve_listeners: Serve) -> None:
    asker = Asker(direct(serve_listeners).connect_tls(), opens=False)
    contents = [b"", b"a", b"x" * 100_000, b"", b"b"]
    asker.client.send(CONTEXT + b"".join(request(number, content) for number, content in enumerate(contents)))
    asker.read_context()
    answers = [asker.read() for _ in contents]
    assert [answer.payload for answer in answers] == contents


@pytest.mark.parametrize("size", [1, 7, 24])
def test_frames_may_come_in_any_pieces(serve_listeners: Serve, size: int) -> None:
    asker = Asker(direct(serve_listeners).connect_tls(), opens=False)
    asker.client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces(CONTEXT + request(1, b"hello") + request(2) + request(3, b"again"), size):
        asker.client.send(piece)
    asker.read_context()
    assert [asker.read().payload for _ in range(3)] == [b"hello", b"", b"again"]


def test_a_payload_that_is_announced_and_empty_is_an_empty_payload(serve_listeners: Serve) -> None:
    asker = Asker(direct(serve_listeners).connect_tls())
    announced = request(1, b"x")[:-5] + bytes(4)
    asker.client.send(announced + request(2, b"next"))
    assert [asker.read().payload for _ in range(2)] == [b"", b"next"]


def test_the_largest_payload_there_may_be_comes_back(serve_listeners: Serve) -> None:
    running = direct(serve_listeners, request_bytes=300 * KB, direct_discarded_bytes=0)
    asker = Asker(running.connect_tls())
    payload = bytes(300 * KB)
    asker.ask(1, payload)
    assert asker.read().payload == payload
    assert wait_until(lambda: memory_of(running).bodies_bytes == 0)


def test_a_hundred_in_flight_are_answered_as_they_are_done(serve_listeners: Serve) -> None:
    gate = Gate()
    running = direct(serve_listeners, gate.answer, direct_requests=100)
    asker = Asker(running.connect_tls())
    asker.client.send(b"".join(map(request, range(100))))
    assert wait_until(lambda: len(gate.waiting) == 100)
    for number in reversed(range(100)):
        gate.open(number)
        assert asker.read_number() == (200, number)


def test_beyond_so_many_at_once_requests_wait_and_then_are_not_read(serve_listeners: Serve) -> None:
    gate = Gate()
    running = direct(serve_listeners, gate.answer, direct_requests=4, request_bytes=64 * KB)
    asker = Asker(running.connect_tls())
    asker.client = TalkingClient(asker.client)
    asker.client.send(b"".join(request(number, bytes(8 * KB)) for number in range(400)))
    assert wait_until(lambda: len(gate.waiting) == 4)
    for _ in range(20):
        running.tasks()
    assert len(gate.waiting) == 4
    assert memory_of(running).bodies_bytes < 400 * KB
    for number in range(400):
        assert wait_until(partial(gate.waiting.__contains__, number))
        gate.open(number)
        assert asker.read_number() == (200, number)


# -- harm ------------------------------------------------------------------------------------------


def test_a_payload_over_the_limit_is_read_away_and_answered_413(serve_listeners: Serve) -> None:
    running = direct(serve_listeners, request_bytes=100 * KB, direct_discarded_bytes=1000 * KB)
    asker = Asker(running.connect_tls())
    for size in (100 * KB + 1, 1000 * KB):
        asker.ask(size, bytes(size))
        refused = asker.read()
        assert refused.status == 413
        assert refused.tokens[ResponseToken.TRANSPORT_REQUEST_ID] == size
        assert refused.tokens[ResponseToken.LSN] == refused.tokens[ResponseToken.LOCAL_LSN] == 1
        assert str(size) in orjson.loads(refused.payload)["message"]
    asker.ask(1, b"small")
    assert asker.read().payload == b"small"


def test_a_stranger_s_payload_is_not_kept(serve_listeners: Serve) -> None:
    asked: list[int] = []

    def refuse_odd_numbers(frame: Frame, facts: ConnectionFacts) -> bytes | None:
        number = frame.tokens[RequestToken.TRANSPORT_REQUEST_ID]
        assert isinstance(number, int)
        assert facts.user_agent == "a test"
        asked.append(number)
        if number == 9:
            raise ZeroDivisionError
        return answered(frame, 401) if number % 2 else None

    running = serve_listeners([DirectProtocol(say_back, refuse_odd_numbers), HttpSite(echo)], tls=True)
    asker = Asker(running.connect_tls())
    for number in (1, 2):
        whole = request(number, bytes(1000 * KB))
        asker.client.send(whole[:-1])
        assert wait_until(partial(asked.__contains__, number))
        for _ in range(20):
            running.tasks()
        assert (memory_of(running).bodies_bytes < 10 * KB) == (number == 1)
        asker.client.send(whole[-1:])
    first, second = asker.read(), asker.read()
    assert (first.status, first.payload) == (401, b"")
    assert (second.status, len(second.payload)) == (200, 1000 * KB)
    asker.ask(9, bytes(1000 * KB))
    assert asker.read_number() == (500, 9)
    # What has come whole is left to the answerer.
    asker.ask(3, b"small")
    assert asker.read_number() == (200, 3)
    assert asked == [1, 2, 9]
    assert wait_until(lambda: memory_of(running).bodies_bytes == 0)


def test_a_payload_that_is_read_away_takes_no_memory(serve_listeners: Serve) -> None:
    running = direct(serve_listeners, request_bytes=10 * KB, direct_discarded_bytes=4000 * KB)
    asker = Asker(running.connect_tls())
    whole = request(1, bytes(3000 * KB))
    asker.client.send(whole[:-1])
    memory = memory_of(running)
    assert wait_until(lambda: memory.bodies_bytes > 0)
    for _ in range(20):
        running.tasks()
    assert memory.bodies_bytes < 10 * KB
    asker.client.send(whole[-1:])
    assert asker.read().status == 413


@pytest.mark.parametrize(
    "harm",
    [
        bytes(4),
        b"\x17\0\0\0" + bytes(30),
        b"\xff\xff\xff\xff",
        (64 * KB + 1).to_bytes(4, "little"),
        request(1, b"x")[:-5] + b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        request(1).replace(b"\x13\x00\x08", b"\x13\x00\x00"),
        request(1).replace(b"\x13\x00\x08", b"\x13\xf0\x77"),
        CONTEXT,
    ],
    ids=["zero", "short", "endless", "long", "payload", "http", "type", "unknown type", "context again"],
)
def test_what_is_no_frame_ends_the_connection_and_no_other(serve_listeners: Serve, harm: bytes) -> None:
    running = direct(serve_listeners)
    other, asker = Asker(running.connect_tls()), Asker(running.connect_tls())
    asker.ask(5, b"good")
    assert asker.read().payload == b"good"
    asker.client.send(harm)
    assert asker.client.is_closed_by_server()
    other.ask(6)
    assert other.read_number() == (200, 6)


def test_whatever_is_bent_on_the_wire_hurts_only_itself(serve_listeners: Serve, caplog: Any) -> None:
    running = direct(serve_listeners)
    other = Asker(running.connect_tls())
    for seed in range(60):
        client = running.connect_tls()
        with contextlib.suppress(OSError):
            client.send(CONTEXT + FrameMaker(seed, MASTER, b"/path").bent())
        other.ask(seed)
        assert other.read_number() == (200, seed)
    # Those that wait for more are cut when their time is over.
    running.pass_time(running.limits.request_read_seconds + 1)
    assert wait_until(lambda: memory_of(running).bodies_bytes == 0)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("length", [1, 30, 60])
def test_half_a_frame_and_silence_ends_the_connection(serve_listeners: Serve, length: int) -> None:
    running = direct(serve_listeners, idle_seconds=math.inf)
    asker = Asker(running.connect_tls())
    asker.client.send(request(1, bytes(100))[:length])
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.request_read_seconds + 1)
    assert asker.client.is_closed_by_server()
    assert wait_until(lambda: memory_of(running).bodies_bytes == 0)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(serve_listeners: Serve) -> None:
    gate = Gate()
    running = direct(serve_listeners, gate.answer)
    busy, idle = Asker(running.connect_tls()), Asker(running.connect_tls())
    busy.ask(1)
    assert wait_until(lambda: gate.waiting)
    running.pass_time(running.limits.idle_seconds + 1)
    assert idle.client.is_closed_by_server()
    gate.open(1)
    assert busy.read_number() == (200, 1)


def test_a_failure_is_answered_for_its_request_alone(serve_listeners: Serve, caplog: Any) -> None:
    async def fail(frame: Frame, facts: ConnectionFacts) -> bytes:
        number = frame.tokens[RequestToken.TRANSPORT_REQUEST_ID]
        if number == 1:
            raise ZeroDivisionError
        if number == 2:
            await asyncio.sleep(0)
            raise RuntimeError
        if number == 3:
            raise asyncio.CancelledError
        return answered(frame)

    asker = Asker(direct(serve_listeners, fail).connect_tls())
    asker.client.send(b"".join(request(number, b"a secret") for number in range(5)))
    answers = {
        answer.tokens[ResponseToken.TRANSPORT_REQUEST_ID]: answer
        for answer in (asker.read() for _ in range(5))
    }
    assert {number: answer.status for number, answer in answers.items()} == {
        0: 200,
        1: 500,
        2: 500,
        3: 500,
        4: 200,
    }
    assert orjson.loads(answers[1].payload)["code"] == "InternalServerError"
    assert caplog.text.count("in direct mode failed") == 3
    assert "secret" not in caplog.text


def test_a_fault_on_demand_cuts_the_connection(serve_listeners: Serve, caplog: Any) -> None:
    async def cut(frame: Frame, facts: ConnectionFacts) -> bytes:
        raise ConnectionCut

    asker = Asker(direct(serve_listeners, cut).connect_tls())
    asker.ask(1)
    assert asker.client.is_closed_by_server()
    assert not caplog.records


def test_callers_that_nobody_knows_share_the_memory_there_is(serve_listeners: Serve) -> None:
    running = direct(serve_listeners, request_bytes=300 * KB, bodies_bytes=256 * KB)
    askers = [Asker(running.connect_tls()) for _ in range(8)]
    memory = memory_of(running)
    most = 0
    whole = request(1, bytes(290 * KB))
    senders = [threading.Thread(target=asker.client.send, args=(whole,)) for asker in askers]
    for sender in senders:
        sender.start()
    # An answer comes when all of its request was sent, and TLS is not made to read and to write at once.
    while any(sender.is_alive() for sender in senders):
        most = max(most, memory.bodies_bytes)
    for asker in askers:
        assert asker.read().payload == bytes(290 * KB)
    assert most <= memory._bodies_bytes_end
    assert wait_until(lambda: memory.bodies_bytes == 0)


def test_who_is_cut_in_the_middle_of_a_payload_leaves_nothing_behind(serve_listeners: Serve) -> None:
    running = direct(serve_listeners)
    asker = Asker(running.connect_tls())
    asker.client.send(request(1, bytes(500 * KB))[:-1])
    assert running.server._table is not None
    (conversation,) = running.server._table._connections
    assert isinstance(conversation, Conversation)
    assert wait_until(lambda: memory_of(running).bodies_bytes > 400 * KB)
    running.pass_time(running.limits.request_read_seconds + 1)
    assert asker.client.is_closed_by_server()
    assert wait_until(lambda: conversation.is_over)
    assert conversation._codec.held_bytes == 0


def test_a_client_that_does_not_read_is_not_read_from_and_then_cut(serve_listeners: Serve) -> None:
    begun = 0

    async def shout(frame: Frame, facts: ConnectionFacts) -> bytes:
        nonlocal begun
        begun += 1
        return answered(frame._replace(payload=bytes(100_000)))

    running = direct(serve_listeners, shout)
    asker = Asker(running.connect_tls())
    asker.client.socket.settimeout(0.5)
    with pytest.raises((TimeoutError, OSError)):  # noqa: PT012 - it goes on until it cannot
        while True:
            asker.client.send(request(1, bytes(1000)) * 100)
    assert begun < 1_000
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.idle_seconds + 1)
    memory = memory_of(running)
    assert (memory.bodies_bytes, memory.unsent_bytes) == (0, 0)


# -- the end ---------------------------------------------------------------------------------------


def test_a_cut_cancels_what_is_being_answered(serve_listeners: Serve) -> None:
    gate = Gate()
    running = direct(serve_listeners, gate.answer)
    asker = Asker(running.connect_tls())
    asker.client.send(b"".join(request(number, bytes(100)) for number in range(10)))
    assert wait_until(lambda: len(gate.waiting) == 10)
    asker.client.socket.close()
    assert wait_until(lambda: gate.cancelled == 10)
    assert wait_until(lambda: running.tasks() == 0)
    assert memory_of(running).bodies_bytes == 0


def test_draining_answers_what_was_asked_reads_no_more_and_closes(serve_listeners: Serve) -> None:
    gate = Gate()
    running = direct(serve_listeners, gate.answer)
    idle, busy = Asker(running.connect_tls()), Asker(running.connect_tls())
    busy.client.send(b"".join(map(request, range(5))))
    assert wait_until(lambda: len(gate.waiting) == 5)
    draining = asyncio.run_coroutine_threadsafe(running.server.drain(30), running.loop)
    assert idle.client.is_closed_by_server()
    busy.ask(5)
    busy.ask(6, bytes(100))
    for number in range(5):
        gate.open(number)
        assert busy.read_number() == (200, number)
    assert busy.client.is_closed_by_server()
    assert len(gate.waiting) == 5
    busy.client.socket.close()
    draining.result(SECONDS_MAX)


def test_draining_reads_the_rest_of_a_request_that_was_begun(serve_listeners: Serve) -> None:
    gate = Gate()
    running = direct(serve_listeners, gate.answer)
    asker = Asker(running.connect_tls())
    whole = request(2, bytes(1000))
    asker.client.send(request(1) + whole[:200])
    assert wait_until(lambda: 1 in gate.waiting)
    idle = Asker(running.connect_tls())
    draining = asyncio.run_coroutine_threadsafe(running.server.drain(30), running.loop)
    assert idle.client.is_closed_by_server()
    gate.open(1)
    assert asker.read_number() == (200, 1)
    asker.client.send(whole[200:])
    assert wait_until(lambda: 2 in gate.waiting)
    gate.open(2)
    assert asker.read_number() == (200, 2)
    assert asker.client.is_closed_by_server()
    asker.client.socket.close()
    draining.result(SECONDS_MAX)
