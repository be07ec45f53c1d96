"""Plain TCP protocols on real listeners, with clients that keep to the protocol and clients that do not."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.server.conversation import Conversation, ConversationOver, Refusal, Talk
from pleiad.server.http.site import HttpSite
from pleiad.server.listener import Recognition
from pleiad.server.tcp import TcpProtocol
from tests.rooms.server.conftest import Client
from tests.rooms.server.test_protocol import GET, echo
from tests.waiting import SECONDS_MAX, Latch, turns, wait_until

Serve = Callable[..., Any]
KB = 1024
HEAD_BYTES = 4


def length_of(head: bytes) -> int:
    return int.from_bytes(head, "little")


def frame(content: bytes) -> bytes:
    return (len(content) + HEAD_BYTES).to_bytes(HEAD_BYTES, "little") + content


def read_frame(client: Client) -> bytes:
    while len(client.buffer) < HEAD_BYTES or len(client.buffer) < length_of(client.buffer[:HEAD_BYTES]):
        if not client._more():
            raise EOFError(f"the connection ended after {client.buffer[:100]!r}")
    length = length_of(client.buffer[:HEAD_BYTES])
    content, client.buffer = client.buffer[HEAD_BYTES:length], client.buffer[length:]
    return content


def flood(client: Client, data: bytes) -> None:
    """Send the same bytes again and again, until that cannot go on."""
    while True:
        client.send(data)


def answering(answer: Callable[[Conversation, bytes], Any], **settings: Any) -> TcpProtocol:
    def begin(conversation: Conversation) -> Talk:
        async def talk(message: bytes) -> None:
            await answer(conversation, message[HEAD_BYTES:])

        return talk

    return TcpProtocol(head_bytes=HEAD_BYTES, length_of=length_of, begin=begin, **settings)


async def say_back(conversation: Conversation, content: bytes) -> None:
    """Echoes; a number waits so many turns of the loop first."""
    if content.isdigit():
        await turns(int(content))
    await conversation.say(frame(content))


def waiting_for(latch: Latch) -> Callable[[Conversation, bytes], Any]:
    """Echoes, what is busy when the latch is open."""

    async def answer(conversation: Conversation, content: bytes) -> None:
        if content == b"busy":
            await latch.passed()
        await conversation.say(frame(content))

    return answer


@pytest.mark.parametrize("encrypted", [False, True])
def test_frames_are_answered_in_their_order(serve_listeners: Serve, encrypted: bool) -> None:
    running = serve_listeners([answering(say_back)], tls=True)
    client = running.connect_tls() if encrypted else running.connect()
    contents = [b"30", b"a", b"", b"5", b"x" * 100_000, b"b"]
    client.send(b"".join(map(frame, contents)))
    assert [read_frame(client) for _ in contents] == contents


def test_frames_may_come_in_any_pieces(serve_listeners: Serve) -> None:
    client = serve_listeners([answering(say_back)]).connect()
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in frame(b"hello") + frame(b"again"):
        client.send(bytes([byte]))
    assert (read_frame(client), read_frame(client)) == (b"hello", b"again")


def test_several_at_once_are_answered_as_they_are_done(serve_listeners: Serve) -> None:
    latch = Latch()
    client = serve_listeners([answering(waiting_for(latch), concurrent_max=2)]).connect()
    client.send(frame(b"busy") + frame(b"quick") + frame(b"next"))
    assert [read_frame(client) for _ in range(2)] == [b"quick", b"next"]
    latch.open()
    assert read_frame(client) == b"busy"


def test_one_frame_may_have_many_answers_or_none(serve_listeners: Serve) -> None:
    async def count(conversation: Conversation, content: bytes) -> None:
        for number in range(int(content)):
            await conversation.say(frame(b"%d" % number))

    client = serve_listeners([answering(count)]).connect().send(frame(b"3") + frame(b"0") + frame(b"1"))
    assert [read_frame(client) for _ in range(4)] == [b"0", b"1", b"2", b"0"]


@pytest.mark.parametrize("length", [0, 1, 3, 1001, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_length_that_cannot_be_is_cut_before_anything_is_read(serve_listeners: Serve, length: int) -> None:
    running = serve_listeners([answering(say_back)], request_bytes=1000)
    client = running.connect().send(frame(b"good"))
    assert read_frame(client) == b"good"
    client.send(length.to_bytes(4, "little") + b"x" * 50)
    assert client.is_closed_by_server()
    assert read_frame(running.connect().send(frame(b"others"))) == b"others"


def test_a_protocol_may_refuse_with_a_last_word(serve_listeners: Serve) -> None:
    async def refuse(conversation: Conversation, content: bytes) -> None:
        raise Refusal(frame(b"goodbye"))

    client = serve_listeners([answering(refuse)]).connect().send(frame(b"x") + frame(b"y" * 50_000))
    assert read_frame(client) == b"goodbye"
    assert client.is_closed_by_server()


def test_an_answer_that_fails_ends_the_connection_and_no_other(serve_listeners: Serve, caplog: Any) -> None:
    async def fail(conversation: Conversation, content: bytes) -> None:
        if content == b"bad":
            raise ZeroDivisionError
        await say_back(conversation, content)

    running = serve_listeners([answering(fail)])
    other = running.connect().send(frame(b"1"))
    client = running.connect().send(frame(b"bad"))
    assert client.is_closed_by_server()
    assert read_frame(other) == b"1"
    assert "answering a message failed" in caplog.text
    assert "bad" not in caplog.text


def test_a_frame_in_part_has_its_time_though_a_byte_comes_now_and_then(serve_listeners: Serve) -> None:
    running = serve_listeners([answering(say_back)], request_read_seconds=0.3)
    client = running.connect().send(frame(b"x" * 10_000)[:6])
    ended = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not ended.wait(0.02):
                client.send(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert client.is_closed_by_server()
    finally:
        ended.set()
        thread.join()
    assert wait_until(lambda: running.server.connections == 0)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(serve_listeners: Serve) -> None:
    latch = Latch()
    running = serve_listeners([answering(waiting_for(latch))], idle_seconds=60.0)
    idle = running.connect().send(frame(b"a"))
    busy = running.connect().send(frame(b"busy"))
    assert read_frame(idle) == b"a"
    assert wait_until(lambda: running.tasks() == 1)
    running.pass_time(61)
    assert idle.is_closed_by_server()
    latch.open()
    assert read_frame(busy) == b"busy"


def test_a_client_that_does_not_read_is_not_read_from_and_then_cut(serve_listeners: Serve) -> None:
    answered = 0

    async def shout(conversation: Conversation, content: bytes) -> None:
        nonlocal answered
        answered += 1
        await conversation.say(frame(b"x" * 100_000))

    running = serve_listeners([answering(shout)])
    client = running.connect()
    client.socket.settimeout(0.5)
    with pytest.raises((TimeoutError, ConnectionError)):
        flood(client, frame(b"y" * 1000) * 100)
    assert answered < 1_000
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.idle_seconds + 1)
    memory = running.server._table.memory
    assert (memory.bodies_bytes, memory.unsent_bytes) == (0, 0)


def test_say_waits_for_the_client_and_ends_with_it(serve_listeners: Serve) -> None:
    said = 0
    over = threading.Event()

    async def talk_on(conversation: Conversation, content: bytes) -> None:
        nonlocal said
        try:
            while True:
                await conversation.say(frame(b"x" * 50_000))
                said += 1
        except (ConversationOver, asyncio.CancelledError):
            over.set()
            raise

    running = serve_listeners([answering(talk_on)])
    client = running.connect().send(frame(b"go"))
    assert len(read_frame(client)) == 50_000
    before = -1
    while said > before:
        before = said
        running.tasks()
    client.socket.close()
    assert over.wait(SECONDS_MAX)
    assert wait_until(lambda: running.tasks() == 0)


def test_a_flood_of_frames_waits_in_the_socket(serve_listeners: Serve) -> None:
    begun = 0
    latch = Latch()

    async def slow(conversation: Conversation, content: bytes) -> None:
        nonlocal begun
        begun += 1
        await latch.passed()
        await conversation.say(frame(b"ok"))

    running = serve_listeners([answering(slow, concurrent_max=4)], request_bytes=64 * KB)
    client = running.connect()
    sender = threading.Thread(target=client.send, args=(frame(b"x" * 10 * KB) * 500,))
    sender.start()
    assert wait_until(lambda: begun == 4)
    for _ in range(20):
        running.tasks()
    assert running.server._table.memory.bodies_bytes < 1_000 * KB
    latch.open()
    assert [read_frame(client) for _ in range(500)] == [b"ok"] * 500
    sender.join()
    assert wait_until(lambda: running.server._table.memory.bodies_bytes == 0)


def test_a_message_waits_for_room_and_has_it_in_the_end(serve_listeners: Serve) -> None:
    running = serve_listeners([answering(say_back)], request_bytes=300 * KB, bodies_bytes=256 * KB)
    parts = [running.connect() for _ in range(6)]
    whole = frame(b"z" * 250 * KB)
    for client in parts:
        client.send(whole[: 200 * KB])
    assert wait_until(lambda: running.server._table.memory.bodies_bytes > 256 * KB)
    senders = [threading.Thread(target=client.send, args=(whole[200 * KB :],)) for client in parts]
    for sender in senders:
        sender.start()
    for client in parts:
        assert len(read_frame(client)) == 250 * KB
    for sender in senders:
        sender.join()
    assert wait_until(lambda: running.server._table.memory.bodies_bytes == 0)


def test_a_disconnect_cancels_what_is_being_answered(serve_listeners: Serve) -> None:
    cancelled = threading.Event()

    async def wait(conversation: Conversation, content: bytes) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    running = serve_listeners([answering(wait)])
    client = running.connect().send(frame(b"x"))
    assert wait_until(lambda: running.tasks() == 1)
    client.socket.close()
    assert cancelled.wait(SECONDS_MAX)
    assert running.server._table.memory.bodies_bytes == 0


def test_drain_answers_what_was_begun_and_closes(serve_listeners: Serve) -> None:
    latch = Latch()
    running = serve_listeners([answering(waiting_for(latch))])
    idle = running.connect().send(frame(b"a"))
    assert read_frame(idle) == b"a"
    busy = running.connect().send(frame(b"busy") + frame(b"last"))
    assert wait_until(lambda: running.tasks() > 0)
    draining = asyncio.run_coroutine_threadsafe(running.server.drain(SECONDS_MAX), running.loop)
    assert idle.is_closed_by_server()
    latch.open()
    assert (read_frame(busy), read_frame(busy)) == (b"busy", b"last")
    assert busy.is_closed_by_server()
    draining.result(SECONDS_MAX)


# -- listeners and first bytes -------------------------------------------------------------------------


def begins_with_zeros(first: bytes, secure: bool) -> Recognition:
    """As in direct mode: bytes 4 to 7 are zero, and only inside TLS."""
    if not secure or any(first[4:8]):
        return Recognition.NO
    return Recognition.YES if len(first) >= 8 else Recognition.UNSURE


def zeros_protocol() -> TcpProtocol:
    return answering(say_back, recognises=begins_with_zeros)


ZEROS = frame(b"\0\0\0\0zeros")


def test_bytes_tell_protocols_on_one_port_apart_also_inside_tls(serve_listeners: Serve) -> None:
    running = serve_listeners([zeros_protocol(), HttpSite(echo)], tls=True)
    assert running.connect().send(GET).read().status == 200
    assert running.connect_tls().send(GET).read().status == 200
    client = running.connect_tls().send(ZEROS)
    assert read_frame(client) == b"\0\0\0\0zeros"
    # On a plain connection it is not that protocol, and the last one says so in its own words.
    assert running.connect().send(ZEROS).read().status == 400


def test_first_bytes_may_come_one_by_one(serve_listeners: Serve) -> None:
    running = serve_listeners([zeros_protocol(), HttpSite(echo)], tls=True)
    for data, read in ((GET, lambda client: client.read().status == 200), (ZEROS, read_frame)):
        client = running.connect_tls()
        for byte in data:
            client.send(bytes([byte]))
        assert read(client)


def test_a_first_byte_whose_length_looks_like_tls_is_not_tls(serve_listeners: Serve) -> None:
    content = b"x" * (0x0116 - HEAD_BYTES)
    assert frame(content)[:2] == b"\x16\x01"
    client = serve_listeners([answering(say_back)], tls=True).connect().send(frame(content))
    assert read_frame(client) == content


@pytest.mark.parametrize("encrypted", [False, True])
def test_who_never_says_what_it_is_is_cut(serve_listeners: Serve, encrypted: bool) -> None:
    running = serve_listeners([zeros_protocol(), HttpSite(echo)], tls=True, idle_seconds=math.inf)
    client = running.connect_tls() if encrypted else running.connect()
    if encrypted:
        client.send(ZEROS[:3])
    assert wait_until(lambda: running.server.connections == 1)
    running.pass_time_until(lambda: running.server.connections == 0, running.limits.request_read_seconds + 1)
    assert client.is_closed_by_server()


def test_a_protocol_that_is_never_sure_is_not_waited_for_without_end(serve_listeners: Serve) -> None:
    unsure = answering(say_back, recognises=lambda first, secure: Recognition.UNSURE)
    running = serve_listeners([unsure, HttpSite(echo)])
    assert running.connect().send(b"GET /" + b"x" * 100 + b" HTTP/1.1\r\n\r\n").read().status == 200


def test_listeners_share_places_and_draining(serve_listeners: Serve) -> None:
    running = serve_listeners([HttpSite(echo)], [answering(say_back)], connections=2)
    assert set(running.server.ports) == {"0", "1"}
    assert running.server.address("1") == f"localhost:{running.server.ports['1']}"
    page, talk = running.connect(), running.connect(listener=1)
    assert page.send(GET).read().status == 200
    talk.send(frame(b"a"))
    assert read_frame(talk) == b"a"
    assert running.connect().send(GET).read().status == 503
    assert running.connect(listener=1).send(frame(b"b")).is_closed_by_server()
    running.call(running.server.drain(SECONDS_MAX))
    assert page.is_closed_by_server()
    assert talk.is_closed_by_server()
    for port in running.server.ports.values():
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_protocol_that_is_spoken_inside_tls_only_is_not_answered_without(serve_listeners: Serve) -> None:
    protocol = answering(say_back)
    running = serve_listeners([protocol], tls=True, plain=())
    plain = running.connect()
    plain.send(frame(b"hello"))
    assert plain.is_closed_by_server()
    secure = running.connect_tls()
    secure.send(frame(b"hello"))
    assert read_frame(secure) == b"hello"


def test_beside_http_a_protocol_inside_tls_only_leaves_plain_clients_to_http(serve_listeners: Serve) -> None:
    site = HttpSite(echo, plain_paths=frozenset({b"/open"}))
    running = serve_listeners([zeros_protocol(), site], tls=True, plain=(site,))
    assert running.connect().send(GET).read().status == 403
    assert running.connect().send(GET.replace(b"/ ", b"/open ")).read().status == 200
    assert running.connect().send(frame(b"hello")).read().status == 400, "it is read as HTTP"
    assert running.connect_tls().send(GET).read().status == 200
    assert read_frame(running.connect_tls().send(ZEROS))
