"""Point operations: reading and creating one item by its id and partition key, beside the yardstick.

Rounds that are compared alternate: yardstick, point_read, yardstick, point_read and so on.
Bars:
- ``point_read_vs_yardstick``: rate of point reads over the rate of the constant answer.
- ``create_32_vs_1``: rate of durable creates on 32 connections over the rate on one.
- ``create_1_vs_ephemeral``: rate of durable creates on one connection over that of a server which keeps nothing; what
  is missing to 1 is the share of the disk, with the hand-overs to wait for it.
- ``create_p99_headroom``: ten times the median over the 99th percentile of creates on 32 connections.
- ``idle_memory_headroom``: 120 MB over the resident memory of a freshly started server.
"""

from __future__ import annotations

import random
import statistics
import time

from bench import request
from bench.items import Item, items
from bench.load import Job, LoadProcess, Measure
from bench.process import resident_mb
from bench.report import Bar, FamilyReport, line, paired_ratio
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings
from bench.yardstick import YardstickServer, yardstick_server

IDLE_MEMORY_MB = 120
SETTLE_SECONDS = 1.0
WARMUP_SECONDS = 0.3

# Requests prepared per second of a round, above what the server can be expected to answer; a list of creates
# that is used up all the same ends its round early, and the rate is taken over the shorter time.
READS_PER_SECOND = 30_000
CREATES_32_PER_SECOND = 12_000
CREATES_1_PER_SECOND = 4_000
CREATE_SHARE = 0.05


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Every scenario of the family on one server, and its four bars."""
    with (
        pleiad_server() as server,
        pleiad_server(options=["--ephemeral"]) as ephemeral,
        yardstick_server() as yardstick,
        yardstick_server(bare=True) as bare,
    ):
        time.sleep(SETTLE_SECONDS)
        idle_mb = resident_mb(server.pid)
        scenario = _Point(settings, load, server)
        constants, reads = scenario.reads(yardstick)
        creates_1, creates_32, ephemeral_1, ephemeral_32 = scenario.creates(ephemeral)
        mixed = scenario.mixed()
        ceiling = [scenario.constant("generator_ceiling", bare, 0)]
    kept = paired_ratio(creates_1, ephemeral_1)
    headroom = statistics.median(10 * measure.p50_ms / measure.p99_ms for measure in creates_32)
    return FamilyReport(
        lines=(
            line("generator_ceiling", ceiling),
            line("yardstick", constants),
            line("point_read", reads),
            line("create_1", creates_1),
            line("create_32", creates_32),
            line("create_1_ephemeral", ephemeral_1),
            line("create_32_ephemeral", ephemeral_32),
            line("mixed_95_read", mixed),
        ),
        bars=(
            Bar(
                name="point_read_vs_yardstick",
                ratio=paired_ratio(reads, constants),
                bar=0.30,
                meaning="point reads/s over constant answers/s",
            ),
            Bar(
                name="create_32_vs_1",
                ratio=paired_ratio(creates_32, creates_1),
                bar=4,
                meaning="creates/s on 32 connections over 1",
            ),
            Bar(
                name="create_1_vs_ephemeral",
                ratio=kept,
                bar=0.4,
                meaning=f"durable over ephemeral creates/s on 1 connection: the disk has {1 - kept:.0%} of a create",
            ),
            Bar(
                name="create_p99_headroom",
                ratio=headroom,
                bar=1,
                meaning="10 medians over p99, creates on 32 connections",
            ),
            Bar(
                name="idle_memory_headroom",
                ratio=IDLE_MEMORY_MB / idle_mb if idle_mb else 0,
                bar=1,
                meaning=f"{IDLE_MEMORY_MB} MB over resident memory when idle ({idle_mb:.0f} MB)",
            ),
        ),
    )


class _Point:
    """The rounds on one server whose container ``read`` holds the items."""

    def __init__(self, settings: Settings, load: LoadProcess, server: PleiadServer) -> None:
        self._settings = settings
        self._load = load
        self._server = server
        self._items = items("item", settings.items)
        self._read_link = server.create_container("bench", "read")
        self._create_link = server.create_container("bench", "create")
        server.fill(load, self._read_link, self._items)

    def reads(self, yardstick: YardstickServer) -> tuple[list[Measure], list[Measure]]:
        """Alternate rounds of the yardstick and of point reads: the same request bytes go to both."""
        constants, reads = [], []
        for number in range(self._settings.rounds):
            requests = self._read_requests(number)
            constants.append(self._run("yardstick", requests, 200, port=yardstick.port, pid=yardstick.pid))
            reads.append(self._run("point_read", requests, 200))
        return constants, reads

    def constant(self, name: str, server: YardstickServer, number: int) -> Measure:
        """One round of the same requests on a server that answers a constant."""
        return self._run(name, self._read_requests(number), 200, port=server.port, pid=server.pid)

    def creates(self, ephemeral: PleiadServer) -> tuple[list[Measure], ...]:
        """Alternate rounds of creates on one connection and on all, durable, and on a server that keeps nothing."""
        ephemeral.create_container("bench", "create")
        servers = ((self._server, ""), (ephemeral, "_ephemeral"))
        alone: tuple[list[Measure], ...] = ([], [])
        together: tuple[list[Measure], ...] = ([], [])
        for number in range(self._settings.rounds):
            for (server, suffix), ones, alls in zip(servers, alone, together, strict=True):
                for name, connections, per_second, measures in (
                    ("create_1", 1, CREATES_1_PER_SECOND, ones),
                    ("create_32", 0, CREATES_32_PER_SECOND, alls),
                ):
                    count = self._prepared(per_second)
                    requests = self._create_requests(f"{name}-{number}", count, server=server)
                    measures.append(
                        self._run(
                            name + suffix,
                            requests,
                            201,
                            port=server.port,
                            pid=server.pid,
                            connections=connections,
                            repeat=False,
                        )
                    )
        return alone[0], together[0], alone[1], together[1]

    def mixed(self) -> list[Measure]:
        """Point reads with one create among twenty requests, all in the container that is read."""
        measures = []
        for number in range(self._settings.rounds):
            requests = self._read_requests(number)
            order = random.Random(number)
            places = order.sample(range(len(requests)), int(len(requests) * CREATE_SHARE))
            creates = self._create_requests(f"mixed-{number}", len(places), self._read_link)
            for place, create in zip(places, creates, strict=True):
                requests[place] = create
            measures.append(self._run("mixed_95_read", requests, 200, 201, repeat=False))
        return measures

    def _prepared(self, per_second: int) -> int:
        return int(per_second * (self._settings.seconds + WARMUP_SECONDS))

    def _read_requests(self, number: int) -> list[bytes]:
        """Whole passes over the items in random order, each pass signed with a second of its own."""
        order = random.Random(number)
        passes = max(1, -(-self._prepared(READS_PER_SECOND) // len(self._items)))
        server, link = self._server, self._read_link
        requests: list[bytes] = []
        for index in range(passes):
            date = request.date_text(seconds_ago=number * passes + index)
            shuffled: list[Item] = order.sample(self._items, len(self._items))
            requests += [
                request.read_item(server.host, server.key, link, item.id, item.pk, date) for item in shuffled
            ]
        return requests

    def _create_requests(
        self, prefix: str, count: int, link: str = "", server: PleiadServer | None = None
    ) -> list[bytes]:
        server = server or self._server
        creates = request.ItemCreates(server.host, server.key, link or self._create_link, request.date_text())
        return [creates.create(item.pk, item.body) for item in items(prefix, count)]

    def _run(
        self,
        name: str,
        requests: list[bytes],
        *statuses: int,
        port: int = 0,
        pid: int = 0,
        connections: int = 0,
        repeat: bool = True,
    ) -> Measure:
        return self._load.run(
            Job(
                name=name,
                port=port or self._server.port,
                server_pid=pid or self._server.pid,
                requests=requests,
                statuses=statuses,
                connections=connections or self._settings.connections,
                seconds=self._settings.seconds,
                warmup_seconds=WARMUP_SECONDS,
                repeat=repeat,
            )
        )
