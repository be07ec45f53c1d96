"""Direct mode: point reads and creates in frames, beside the same over HTTPS at the same number of connections.

Rounds alternate between the two ways, on one server. A client in direct mode has several requests in flight on a
connection, and one over HTTPS one only. Bars:
- ``direct_read_vs_https``, ``direct_create_vs_https``: rate in frames, 4 in flight on each connection, over the rate
  over HTTPS, as many connections.
- ``direct_read_1_vs_https``: the same for reads, one in flight.
- ``direct_frame_headroom``: 30 microseconds over the time that a read spends in becoming a request and a frame again.
"""

from __future__ import annotations

import random
import struct
import timeit
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import orjson

from bench import request
from bench.items import Item, items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.report import Bar, FamilyReport, line, paired_ratio
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings
from pleiad.engine.container import Container
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.direct import answers
from pleiad.heads.nosql.direct.answers import FrameForm
from pleiad.heads.nosql.direct.headers import REQUEST_TABLE
from pleiad.heads.nosql.direct.requests import to_request
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.server.http.message import Response
from pleiad.wire.rntbd.codes import OperationType, ResourceType
from pleiad.wire.rntbd.context import ContextFrame, write_context_request
from pleiad.wire.rntbd.frame import read_request, request_of, write_request
from pleiad.wire.rntbd.request_tokens import REQUEST_TOKENS, RequestToken
from pleiad.wire.rntbd.token import TokenValue

ITEMS = 2_000
READS = 20_000
CREATES_PER_SECOND = 10_000
WARMUP_SECONDS = 0.3
CONNECTIONS, IN_FLIGHT = 8, 4
FRAME_SECONDS_MAX = 30e-6
ACTIVITY_ID = bytes(range(16))
DOCUMENT = ResourceType.DOCUMENT
CONTEXT = write_context_request(ContextFrame(ACTIVITY_ID, request.VERSION.encode(), b"pleiad-bench"))
"""The frame that opens a connection."""


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Alternate rounds of both ways, and the cost of frames alone."""
    loaded = items("item", ITEMS)
    with pleiad_server() as server:
        link = server.create_container("bench", "direct")
        server.fill(load, link, loaded)
        scenario = _Direct(settings, load, server, link, loaded)
        read_https, read_frames, read_single = scenario.rounds(
            scenario.reads_https, scenario.reads_frames, scenario.reads_single
        )
        create_https, create_frames = scenario.rounds(scenario.creates_https, scenario.creates_frames)
    to_frame_seconds, from_frame_seconds = _frame_seconds(scenario.replica_path)
    frame_seconds = to_frame_seconds + from_frame_seconds
    return FamilyReport(
        lines=(
            line("read_https", read_https),
            line("read_direct", read_frames),
            line("read_direct_1", read_single),
            line("create_https", create_https),
            line("create_direct", create_frames),
        ),
        bars=(
            Bar(
                name="direct_read_vs_https",
                ratio=paired_ratio(read_frames, read_https),
                bar=0.9,
                meaning="point reads/s in direct mode over HTTPS",
            ),
            Bar(
                name="direct_create_vs_https",
                ratio=paired_ratio(create_frames, create_https),
                bar=0.9,
                meaning="durable creates/s in direct mode over HTTPS",
            ),
            Bar(
                name="direct_read_1_vs_https",
                ratio=paired_ratio(read_single, read_https),
                bar=0.7,
                meaning="point reads/s in direct mode with one in flight on each connection over HTTPS",
            ),
            Bar(
                name="direct_frame_headroom",
                ratio=FRAME_SECONDS_MAX / frame_seconds,
                bar=1,
                meaning=f"30 µs over reading a frame into a request ({from_frame_seconds * 1e6:.1f} µs) and writing "
                f"the answer ({to_frame_seconds * 1e6:.1f} µs)",
            ),
        ),
    )


class _Direct:
    """One server with a filled container, and the same requests for it in both ways."""

    def __init__(
        self, settings: Settings, load: LoadProcess, server: PleiadServer, link: str, loaded: list[Item]
    ) -> None:
        self._settings = settings
        self._load = load
        self._server = server
        self._link = link
        self._loaded = loaded
        status, answer = server.call("GET", f"/{link}", "colls", link)
        if status != 200:
            raise LoadError(f"the container could not be read: {status} {answer[:400]!r}")
        self._rid = orjson.loads(answer)["_rid"]
        self.replica_path = f"/apps/pleiad/services/nosql/partitions/{self._rid}_0/replicas/1p"

    def rounds(self, *ways: Callable[[int], Measure]) -> list[list[Measure]]:
        """As many rounds of each as the settings say, in turns."""
        measures: list[list[Measure]] = [[] for _ in ways]
        for number in range(self._settings.rounds):
            for way, found in zip(ways, measures, strict=True):
                found.append(way(number))
        return measures

    def reads_https(self, number: int) -> Measure:
        date = request.date_text(seconds_ago=number)
        server = self._server
        requests = [
            request.read_item(server.host, server.key, self._link, item.id, item.pk, date)
            for item in self._chosen(number)
        ]
        return self._run("read_https", requests, 200)

    def reads_frames(self, number: int) -> Measure:
        return self._run("read_direct", self._read_frames(number), 200, IN_FLIGHT)

    def reads_single(self, number: int) -> Measure:
        return self._run("read_direct_1", self._read_frames(number), 200, in_flight=1)

    def creates_https(self, number: int) -> Measure:
        server, date = self._server, request.date_text()
        creates = request.ItemCreates(server.host, server.key, self._link, date)
        new = self._new("https", number)
        return self._run("create_https", [creates.create(item.pk, item.body) for item in new], 201)

    def creates_frames(self, number: int) -> Measure:
        date = request.date_text()
        proof = request.authorization(self._server.key, "POST", "docs", self._link, date)
        frames = [
            self._frame(OperationType.CREATE, index, proof, date, item)
            for index, item in enumerate(self._new("frames", number))
        ]
        return self._run("create_direct", frames, 201, IN_FLIGHT)

    def _read_frames(self, number: int) -> list[bytes]:
        date = request.date_text(seconds_ago=number)
        frames = []
        for index, item in enumerate(self._chosen(number)):
            link = f"{self._link}/docs/{item.id}"
            proof = request.authorization(self._server.key, "GET", "docs", link, date)
            frames.append(self._frame(OperationType.READ, index, proof, date, item))
        return frames

    def _chosen(self, number: int) -> list[Item]:
        return random.Random(number).choices(self._loaded, k=READS)

    def _new(self, way: str, number: int) -> list[Item]:
        return items(f"{way}-{number}", int(CREATES_PER_SECOND * self._settings.seconds))

    def _frame(self, operation: OperationType, number: int, proof: str, date: str, item: Item) -> bytes:
        payload = item.body if operation is OperationType.CREATE else b""
        _, database, _, container = self._link.split("/")
        tokens = {
            RequestToken.TRANSPORT_REQUEST_ID: number,
            RequestToken.PAYLOAD_PRESENT: int(bool(payload)),
            RequestToken.AUTHORIZATION_TOKEN: proof.encode(),
            RequestToken.DATE: date.encode(),
            RequestToken.REPLICA_PATH: self.replica_path.encode(),
            RequestToken.DATABASE_NAME: database.encode(),
            RequestToken.COLLECTION_NAME: container.encode(),
            RequestToken.DOCUMENT_NAME: item.id.encode(),
            RequestToken.PARTITION_KEY: f'["{item.pk}"]'.encode(),
            RequestToken.COLLECTION_RID: self._rid.encode(),
            RequestToken.REMAINING_TIME_IN_MS_ON_CLIENT_REQUEST: 30_000,
            RequestToken.CLIENT_RETRY_ATTEMPT_COUNT: 0,
            RequestToken.SDK_SUPPORTED_CAPABILITIES: 9,
        }
        written = REQUEST_TOKENS.write(tokens)
        head = struct.pack("<IHH16s", 24 + len(written), DOCUMENT, operation, ACTIVITY_ID)
        return head + written + (struct.pack("<I", len(payload)) + payload if payload else b"")

    def _run(self, name: str, requests: Sequence[bytes], status: int, in_flight: int = 0) -> Measure:
        """A round over HTTPS, or of frames where it is said how many are in flight on each connection."""
        return self._load.run(
            Job(
                name=name,
                port=self._server.port,
                server_pid=self._server.pid,
                requests=requests,
                statuses=(status,),
                connections=CONNECTIONS,
                seconds=self._settings.seconds,
                warmup_seconds=WARMUP_SECONDS,
                tls=True,
                context=CONTEXT if in_flight else b"",
                in_flight=in_flight or 1,
                repeat=status == 200,
            )
        )


def _frame_seconds(replica_path: str) -> tuple[float, float]:
    """What it takes to make a frame of the answer to a read, and a request of the frame that asks for it."""
    tokens: dict[int, TokenValue] = {
        RequestToken.AUTHORIZATION_TOKEN: b"x" * 88,
        RequestToken.DATE: b"Tue, 17 Nov 2026 12:00:00 GMT",
        RequestToken.REPLICA_PATH: replica_path.encode(),
        RequestToken.DATABASE_NAME: b"bench",
        RequestToken.COLLECTION_NAME: b"direct",
        RequestToken.DOCUMENT_NAME: b"item-1234",
        RequestToken.PARTITION_KEY: b'["tenant-1"]',
        RequestToken.COLLECTION_RID: b"AAAAF4AAABg=",
        RequestToken.TRANSPORT_REQUEST_ID: 1,
        RequestToken.SDK_SUPPORTED_CAPABILITIES: 9,
    }
    raw = write_request(DOCUMENT, OperationType.READ, ACTIVITY_ID, tokens)
    frame = read_request(raw)
    form = FrameForm(None)
    call = cast(Call, SimpleNamespace(began_at=0.0))
    container = cast(
        Container,
        SimpleNamespace(
            resource=SimpleNamespace(number=2, rid="AAAAF4AAABg="),
            path="dbs/bench/colls/direct",
            limits=Limits(),
        ),
    )
    partition = cast(
        Partition, SimpleNamespace(lsn=1234, range_id="0", size_bytes_seen=2_048_000, items_seen=2_000)
    )
    etag = '"00000011-0000-0000-0018-00006afad6ca"'

    def write() -> bytes:
        told = form.of_items(call, container, partition, 1.0, etag, 17, ())
        return answers.written(frame, Response(200, told, b"{}"))

    count = 1_000
    reads = timeit.repeat(lambda: to_request(request_of(raw, REQUEST_TABLE), ""), number=count, repeat=20)
    writes = timeit.repeat(write, number=count, repeat=20)
    return min(writes) / count, min(reads) / count
