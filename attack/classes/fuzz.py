"""Whatever is sent, it gets an answer: no 500, no traceback, no stall, and memory that does not grow.

Requests and queries are made from numbered seeds and sent over HTTP and HTTPS in turn; one in ten requests is bent on
the wire, so that it is no HTTP any more. Frames of direct mode are made so too, and some of them bent. A finding names
its seed, which repeats it.
"""

from __future__ import annotations

import contextlib
import random
import socket
import time
from pathlib import Path

import pleiad.query  # noqa: F401  (fills the table of functions that queries are made of)
from attack import direct
from attack.fuzzing.frames import FrameMaker
from attack.fuzzing.queries import QueryMaker
from attack.fuzzing.requests import FuzzedRequest, RequestMaker, bent
from attack.fuzzing.vocabulary import CONTAINER, KEY
from attack.ground import CROSS, make_container, make_database, point_reads, put
from attack.report import Outcome
from attack.settings import STORES, Settings
from attack.target import MASTER, Launch, Target, is_well, serving
from attack.watch import Watch
from attack.wire import LOOPBACK, Connection, NoAnswerError, path_of, request_bytes, trusting
from bench.process import resident_mb
from pleiad.wire.rntbd.response_tokens import ResponseToken
from tests.rooms.query.generator import Generator

GROWTH_MB_MAX = 150.0
"""How much more memory the second half of a run may take than the first left it with."""
ANSWER_SECONDS_MAX = 20.0
TLS_SILENCE_SECONDS = 0.05
"""A bent message over TLS may wait for more; so long without a byte is taken as all there was."""
GROUND_EVERY = 25
BENT_SHARE = 0.1


def ground(connection: Connection) -> None:
    """The container that requests are about; some of them remove or change it, so it is made again and again."""
    connection.send(MASTER, "POST", ["dbs"], {"id": "fuzz"})
    connection.send(MASTER, "POST", ["dbs", "fuzz", "users"], {"id": "u"})
    connection.send(MASTER, "POST", ["dbs", "fuzz", "colls"], {"id": "things", "partitionKey": KEY})
    item = {"id": "1", "pk": "a", "list": [1], "a": {"b": 1}}
    fields = {"x-ms-documentdb-partitionkey": '["a"]', "x-ms-documentdb-is-upsert": "True"}
    connection.send(MASTER, "POST", [*CONTAINER, "docs"], item, fields)


def signed(request: FuzzedRequest) -> bytes:
    """The request with the signature of the master key; its own headers replace those of the signature."""
    fields = {**MASTER.headers(request.method, request.segments), **request.headers}
    path = path_of(request.segments) + ("/" if request.slash else "")
    return request_bytes(request.method, path, fields, request.body)


def throw(port: int, data: bytes, tls: bool) -> bytes:
    """Sends bytes on a connection of their own and returns all that comes back."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=5) as plain:
        connection = trusting().wrap_socket(plain) if tls else plain
        connection.sendall(data)
        if not tls:
            connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5 if not tls else TLS_SILENCE_SECONDS)
        while piece := connection.recv(65536):
            received += piece
    return received


class _Requests:
    """The fuzzed requests of one server."""

    def __init__(self, outcome: Outcome, target: Target) -> None:
        self._outcome = outcome
        self._target = target
        self._lines = {tls: target.connect(tls, ANSWER_SECONDS_MAX) for tls in (False, True)}

    def send(self, seed: int) -> None:
        """The request of one seed; even seeds over HTTP, odd ones over HTTPS."""
        tls = seed % 2 == 1
        line = self._lines[tls]
        if seed % GROUND_EVERY == 0:
            ground(line)
        request = RequestMaker(seed).make()
        data = signed(request)
        dice = random.Random(seed)
        if dice.random() < BENT_SHARE:
            received = throw(self._target.port, bent(data, dice), tls)
            self._outcome.answered(500 if b"HTTP/1.1 500" in received else 200, f"bent, {request}")
            return
        try:
            answer = line.exchange(data, request.method)
        except NoAnswerError as error:
            self._outcome.breaks(f"no answer: {request}: {error}")
            return
        self._outcome.answered(answer.status, f"{request} {answer.body[:200]!r}")
        if answer.status >= 400 and request.method != "HEAD" and b'"message"' not in answer.body:
            self._outcome.breaks(f"an error without a message: {request}: {answer.status}")


class _Queries:
    """The fuzzed queries of one server."""

    def __init__(self, outcome: Outcome, target: Target, seed: int) -> None:
        self._outcome = outcome
        self._lines = {tls: target.connect(tls, ANSWER_SECONDS_MAX) for tls in (False, True)}
        line = self._lines[False]
        self._container = make_container(line, "queried")
        for number, item in enumerate(Generator(seed).items() + Generator(seed + 1).items()):
            put(line, self._container, {**item, "id": f"i{number}", "pk": f"k{number % 3}"})

    def send(self, seed: int) -> None:
        """The query of one seed: a result, a 400, or a 408 where it takes too long."""
        text, parameters = QueryMaker(seed).make()
        body = {
            "query": text,
            "parameters": [{"name": name, "value": value} for name, value in parameters.items()],
        }
        headers = dict(CROSS)
        if seed % 5 == 0:
            headers["x-ms-cosmos-is-query-plan-request"] = "True"
        if seed % 7 == 0:
            headers["x-ms-max-item-count"] = "1"
        line = self._lines[seed % 2 == 1]
        try:
            answer = line.send(MASTER, "POST", [*self._container, "docs"], body, headers)
        except NoAnswerError as error:
            self._outcome.breaks(f"no answer: query seed {seed}: {text}: {error}")
            return
        self._outcome.answered(answer.status, f"query seed {seed}: {text} {parameters}")
        if answer.status not in (200, 400, 408, 500):
            self._outcome.breaks(f"query seed {seed} -> {answer.status}: {text}")


class _Frames:
    """The fuzzed frames of one server."""

    def __init__(self, outcome: Outcome, target: Target) -> None:
        self._outcome = outcome
        self._target = target
        self._line = target.connect(seconds=ANSWER_SECONDS_MAX)
        self._connection = direct.DirectConnection(target.port, ANSWER_SECONDS_MAX)
        self._replica_path = b""

    def send(self, seed: int) -> None:
        """The frames of one seed at once; each must have an answer with its number."""
        if seed % GROUND_EVERY == 0 or not self._replica_path:
            ground(self._line)
            self._replica_path = direct.replica_path(self._line, CONTAINER)
        maker = FrameMaker(seed, MASTER, self._replica_path)
        if random.Random(seed).random() < BENT_SHARE:
            thrown = direct.DirectConnection(self._target.port, ANSWER_SECONDS_MAX)
            for answer in thrown.throw(maker.bent(), TLS_SILENCE_SECONDS):
                self._outcome.answered(answer.status, f"bent, frame seed {seed} {answer.payload[:200]!r}")
            return
        fuzzed = maker.make()
        try:
            answers = self._connection.exchange(b"".join(fuzzed.frames.values()), len(fuzzed.frames))
        except NoAnswerError as error:
            self._outcome.breaks(f"no answer: {fuzzed}: {error}")
            return
        if answers.keys() != fuzzed.frames.keys():
            self._outcome.breaks(f"answers to {sorted(answers)}: {fuzzed}")
        for number, answer in answers.items():
            self._outcome.answered(answer.status, f"number {number} of {fuzzed} {answer.payload[:200]!r}")
            if not answer.tokens.get(ResponseToken.LSN) or not answer.tokens.get(ResponseToken.LOCAL_LSN):
                self._outcome.breaks(f"an answer without LSN: number {number} of {fuzzed}")


def run(settings: Settings, store: str, data: Path) -> Outcome:
    """This store's part of the requests and queries, beside a reader."""
    outcome = Outcome(name="fuzz", store=store.partition(":")[0])
    part = len(STORES)
    first = settings.seed * 10_000_000 + (0 if store == "sqlite" else 5_000_000)
    with serving(Launch(data=data / "fuzz", store=store)) as target:
        connection = target.connect()
        # First of all what may go: requests name the first database by its rid too, and some remove it.
        make_database(connection, "fuzz")
        ground(connection)
        reads = point_reads(connection)
        connection.close()
        requests, queries = _Requests(outcome, target), _Queries(outcome, target, settings.seed)
        with Watch(target, reads) as watch:
            for send, count in (
                (requests.send, settings.fuzz_requests),
                (queries.send, settings.fuzz_queries),
            ):
                _all(outcome, target, send, first, count // part)
            if direct.is_spoken(target.port):
                frames = _Frames(outcome, target)
                _all(outcome, target, frames.send, first, settings.fuzz_frames // part)
        outcome.take(watch, settings)
        if not is_well(target):
            outcome.breaks("the server is not well after the fuzzing")
        outcome.took_tracebacks(target.tracebacks(), target.said())
    return outcome


def _all(outcome: Outcome, target: Target, send: object, first: int, count: int) -> None:
    """Every seed from the first on; memory is looked at halfway and at the end."""
    assert callable(send)
    halfway_mb = 0.0
    deadline = time.monotonic() + 24 * 3600
    for number in range(count):
        if number == count // 2:
            halfway_mb = resident_mb(target.pid)
        send(first + number)
        if not target.is_running or time.monotonic() > deadline:
            outcome.breaks(f"the server ended at seed {first + number}")
            return
    grown_mb = resident_mb(target.pid) - halfway_mb
    if grown_mb > GROWTH_MB_MAX:
        outcome.breaks(f"memory grew by {grown_mb:,.0f} MB in the second half of {count} seeds")
