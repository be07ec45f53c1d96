"""Memory has an end: the whole list at once, bodies of strangers, results of scripts, and queries asked only once.

Peak is the resident memory of the server with its script processes. Strangers are callers without a key who announce
bodies of 4 MB, over HTTP and in direct mode, and send them slowly or wholly; what they sent must not be kept.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attack import direct
from attack.classes.stall import volley
from attack.ground import QUERY, key_header, make_container, point_reads, put
from attack.hostile.shots import prepare
from attack.report import Outcome
from attack.settings import Settings
from attack.target import READ_ONLY, Launch, Target, is_well, serving
from attack.watch import Watch
from attack.wire import LOOPBACK, NoAnswerError, path_of, request_bytes, trusting
from pleiad.wire.rntbd.codes import OperationType, ResourceType
from pleiad.wire.rntbd.frame import write_request
from pleiad.wire.rntbd.request_tokens import RequestToken
from pleiad.wire.rntbd.token import TokenValue

UNREAD_REQUESTS = 20
UNREAD_SECONDS = 2.0
OPEN_ITEMS = 40
OPEN_PAGE = (
    "SELECT k, COUNT(1) AS n FROM c JOIN x IN c.a JOIN (SELECT VALUE CONCAT(REPLICATE('k', 1500), c.id, "
    "ToString(x))) AS k GROUP BY k"
)
UNLIKE_CONTAINERS = 3
UNLIKE_CHARS = 1_500_000
UNLIKE_TERMS = 120
BODY_BYTES = 4 * 1024 * 1024 - 1000


def run(settings: Settings, store: str, data: Path) -> Outcome:
    """All hostile requests, two dozen at a time; then strangers with bodies."""
    outcome = Outcome(name="memory", store=store.partition(":")[0])
    limits = {"operation_seconds": settings.operation_seconds}
    with serving(Launch(data=data / "memory", store=store, limits=limits)) as target:
        connection = target.connect()
        reads = point_reads(connection)
        prepare(connection)
        connection.close()
        with Watch(target, reads) as watch:
            # The short run sends them once, to the class `stall`, which looks at the memory too.
            fired = [] if settings.brief else volley(target, settings)
            strangers = _strangers(_http_stranger, target, settings.bodies)
            if direct.is_spoken(target.port):
                strangers += _strangers(_direct_stranger, target, settings.bodies)
            strangers += _unread(target, settings.bodies)
            strangers += _open_pages(target, settings.bodies // 8)
            strangers += _never_alike(target, settings.bodies // 8 if settings.brief else settings.bodies)
        for each in fired:
            outcome.answered(each.status, each.name)
        outcome.requests += strangers
        # Two dozen hostile requests share what the server gives to one: point reads are slower, but none may fail.
        outcome.take(watch, settings, timed=False)
        if not is_well(target):
            outcome.breaks("the server did not recover")
        outcome.took_tracebacks(target.tracebacks(), target.said())
    return outcome


def _unread(target: Target, count: int) -> int:
    """So many clients who ask for large pages again and again and read none of them."""
    segments = ["dbs", "ground", "colls", "hostile", "docs"]
    asked = request_bytes("GET", path_of(segments), READ_ONLY.headers("GET", segments)) * UNREAD_REQUESTS
    held: list[socket.socket] = []
    for number in range(count):
        with contextlib.suppress(OSError):
            plain = socket.create_connection((LOOPBACK, target.port), timeout=5)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one = trusting().wrap_socket(plain) if number % 3 == 0 else plain
            one.settimeout(1)
            held.append(one)
            one.sendall(asked)
    time.sleep(UNREAD_SECONDS)
    for one in held:
        one.close()
    return len(held) * UNREAD_REQUESTS


def _open_pages(target: Target, count: int) -> int:
    """First pages of large results, of so many containers, whose next pages nobody asks for."""
    connection = target.connect()
    headers = {**QUERY, **key_header("p"), "x-ms-max-item-count": "10"}
    body = {"query": OPEN_PAGE}
    for place in range(count):
        container = make_container(connection, f"open{place}")
        for number in range(OPEN_ITEMS):
            put(connection, container, {"id": f"{number}", "pk": "p", "a": list(range(200))})
        connection.send(READ_ONLY, "POST", [*container, "docs"], body, headers)
    connection.close()
    return count


def _never_alike(target: Target, count: int) -> int:
    """Queries that are each asked once, so that remembering them is of no use: by texts, and by one long parameter."""
    connection = target.connect()
    headers = {**QUERY, **key_header("p")}
    sent = 0
    for place in range(UNLIKE_CONTAINERS):
        docs = [*make_container(connection, f"unlike{place}"), "docs"]
        for number in range(count):
            long = {"name": "@p", "value": f"{number}" + "x" * UNLIKE_CHARS}
            texts = " OR ".join(f"c.n={place}{number}{each}" for each in range(UNLIKE_TERMS))
            for body in (
                {"query": "SELECT * FROM c WHERE c.n = @p AND c.m != 2", "parameters": [long]},
                {"query": f"SELECT * FROM c WHERE {texts}"},
            ):
                connection.send(READ_ONLY, "POST", docs, body, headers)
                sent += 1
    connection.close()
    return sent


def _http_stranger(port: int) -> socket.socket:
    """A connection that has announced a body."""
    connection = socket.create_connection((LOOPBACK, port), timeout=10)
    head = f"POST /dbs/ground/colls/hostile/docs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def _direct_stranger(port: int) -> socket.socket:
    """A connection in direct mode that has announced a payload."""
    connection = direct.DirectConnection(port, 10).open()
    tokens: dict[int, TokenValue] = {
        RequestToken.DATABASE_NAME: b"ground",
        RequestToken.COLLECTION_NAME: b"hostile",
    }
    whole = write_request(
        ResourceType.DOCUMENT, OperationType.CREATE, direct.ACTIVITY_ID, tokens, bytes(BODY_BYTES)
    )
    connection.sendall(whole[:-BODY_BYTES])
    return connection


def _strangers(stranger: Callable[[int], socket.socket], target: Target, count: int) -> int:
    """So many connections without a key, each with a body of nearly 4 MB that never ends; returns how many sent."""
    piece = b"x" * 65_536
    open_sockets: list[socket.socket] = []
    sent = 0
    lock = threading.Lock()

    def send() -> None:
        nonlocal sent
        with contextlib.suppress(OSError, NoAnswerError):
            connection = stranger(target.port)
            with lock:
                open_sockets.append(connection)
            for _ in range(BODY_BYTES // len(piece) - 1):
                connection.sendall(piece)
        with lock:
            sent += 1

    with ThreadPoolExecutor(16) as pool:
        for _ in range(count):
            pool.submit(send)
    time.sleep(0.5)
    for connection in open_sockets:
        connection.close()
    return sent
