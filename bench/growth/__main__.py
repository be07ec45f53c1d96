"""``python -m bench.growth``: grow one thing after the other, print the table, draw the picture."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import orjson

from bench import request
from bench.growth.plot import svg
from bench.items import Item, each_item, items
from bench.load import Job, LoadError, LoadProcess
from bench.process import BUILD, machine
from bench.server import PleiadServer, pleiad_server

LIMITS = """databases_and_containers = 5_000
throughput_ru_max = 10_000_000
connections = 20_000
connections_per_address = 20_000
"""
DATABASE = "growth"
RU_OF_A_PARTITION = 10_000
HELD = 1_000
START_SECONDS = 1_200.0
QUERY = "SELECT * FROM c WHERE c.email = @value"
_numbers = itertools.count()

Make = Callable[[PleiadServer, str, Sequence[Item]], list[bytes]]


def _read(server: PleiadServer, link: str, held: Sequence[Item]) -> list[bytes]:
    day = request.date_text()
    return [request.read_item(server.host, server.key, link, item.id, item.pk, day) for item in held]


def _create(server: PleiadServer, link: str, held: Sequence[Item]) -> list[bytes]:
    creates = request.ItemCreates(server.host, server.key, link, request.date_text())
    return [creates.create(item.pk, item.body) for item in items(f"new{next(_numbers)}", 4_000)]


def _query(server: PleiadServer, link: str, held: Sequence[Item]) -> list[bytes]:
    """Equality on an indexed path within a logical partition, which is one physical partition whatever there is."""
    sent = []
    for item in held[:200]:
        fields = request.headers(server.key, "POST", "docs", link, request.date_text())
        fields |= {"x-ms-documentdb-isquery": "true", "x-ms-documentdb-partitionkey": f'["{item.pk}"]'}
        value = {"name": "@value", "value": orjson.loads(item.body)["email"]}
        body = orjson.dumps({"query": QUERY, "parameters": [value]})
        made = request.encode("POST", f"/{link}/docs", server.host, fields, body)
        sent.append(made.replace(b"Content-Type: application/json", b"Content-Type: application/query+json"))
    return sent


def _changes(server: PleiadServer, link: str, held: Sequence[Item]) -> list[bytes]:
    fields = request.headers(server.key, "GET", "docs", link, request.date_text())
    fields |= {
        "A-IM": "Incremental feed",
        "x-ms-max-item-count": "10",
        "x-ms-documentdb-partitionkeyrangeid": "0",
    }
    return [request.encode("GET", f"/{link}/docs", server.host, fields)]


OPERATIONS: dict[str, tuple[Make, int]] = {
    "point read": (_read, 200),
    "indexed query": (_query, 200),
    "change feed page": (_changes, 200),
    "create": (_create, 201),
}


class Growth:
    """Measures servers of different sizes."""

    def __init__(self, load: LoadProcess, rounds: int, seconds: float) -> None:
        self._load = load
        self._rounds = rounds
        self._seconds = seconds
        self.figures: dict[str, dict[str, list[tuple[int, float]]]] = {}

    def take(
        self,
        thing: str,
        count: int,
        server: PleiadServer,
        link: str,
        held: Sequence[Item],
        connections: int = 8,
    ) -> None:
        """The processor time of each operation, on a server with so many of a thing."""
        self._wait_for_index(server, link, held)
        for name, (make, status) in OPERATIONS.items():
            if name == "change feed page" and thing == "physical partitions":
                continue  # it is one of a physical partition, and the first of many may have no items
            micros = []
            for _ in range(self._rounds):
                measure = self._load.run(
                    Job(
                        name=name,
                        port=server.port,
                        server_pid=server.pid,
                        requests=make(server, link, held),
                        statuses=(status,),
                        connections=connections,
                        seconds=self._seconds,
                        repeat=status == 200,
                        warmup_seconds=0.5 if status == 200 else 0,
                    )
                )
                micros.append(1e6 * measure.server_cpu_seconds / max(1, measure.requests))
            found = statistics.median(micros)
            self.figures.setdefault(thing, {}).setdefault(name, []).append((count, found))
            print(f"{thing} {count:,}: {name} {found:,.0f} µs", file=sys.stderr, flush=True)

    def _wait_for_index(self, server: PleiadServer, link: str, held: Sequence[Item]) -> None:
        """Asks the query until its path has an index: building one is not what a query costs."""
        self._load.run(
            Job(
                name="ask for an index",
                port=server.port,
                server_pid=server.pid,
                requests=_query(server, link, held),
                statuses=(200,),
                connections=2,
                seconds=START_SECONDS,
                repeat=False,
                warmup_seconds=0,
            )
        )
        deadline = time.monotonic() + START_SECONDS
        while server.index_progress(link) < 100:
            if time.monotonic() > deadline:
                raise LoadError("the index of the query was not built in time")
            time.sleep(0.5)


@contextlib.contextmanager
def _server(*options: str) -> Iterator[PleiadServer]:
    with tempfile.TemporaryDirectory(prefix="growth-", dir=BUILD) as directory:
        limits = Path(directory) / "limits.toml"
        limits.write_text(LIMITS)
        given = ("--limits", str(limits), *options)
        with pleiad_server(options=given, ready_seconds=START_SECONDS) as server:
            yield server


def _with_items(growth: Growth, count: int) -> None:
    chosen = []
    step = max(1, count // HELD)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=BUILD) as directory:
        folder = Path(directory) / DATABASE
        folder.mkdir()
        with (folder / "c.jsonl").open("wb") as file:
            for number, item in enumerate(each_item("held", count)):
                file.write(item.body + b"\n")
                if number % step == 0:
                    chosen.append(item)
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        (folder / "c.container.json").write_bytes(orjson.dumps(definition))
        with _server("--load", directory) as server:
            growth.take("items", count, server, f"dbs/{DATABASE}/colls/c", chosen)


def _with_partitions(growth: Growth, load: LoadProcess, count: int) -> None:
    held = items("held", HELD)
    with _server() as server:
        link = server.create_container(DATABASE, "c", 400 if count == 1 else count * RU_OF_A_PARTITION)
        server.fill(load, link, held)
        growth.take("physical partitions", count, server, link, held)


def _with_containers(growth: Growth, load: LoadProcess, count: int) -> None:
    held = items("held", HELD)
    with _server() as server:
        links = [server.create_container(DATABASE, f"c{number}") for number in range(count)]
        server.fill(load, links[-1], held)
        growth.take("containers", count, server, links[-1], held)


def _with_connections(growth: Growth, load: LoadProcess, counts: Sequence[int]) -> None:
    held = items("held", HELD)
    with _server() as server:
        link = server.create_container(DATABASE, "c")
        server.fill(load, link, held)
        for count in counts:
            growth.take("connections", count, server, link, held, count)


def _table(figures: dict[str, dict[str, list[tuple[int, float]]]]) -> str:
    lines = ["| what grows | " + " | ".join(OPERATIONS) + " |", "| --- |" + " --- |" * len(OPERATIONS)]
    for thing, by_name in figures.items():
        for count in dict.fromkeys(count for points in by_name.values() for count, _ in points):
            cells = [dict(by_name.get(name, [])).get(count) for name in OPERATIONS]
            shown = " | ".join("" if cell is None else f"{cell:,.0f}" for cell in cells)
            lines.append(f"| {count:,} {thing if count != 1 else thing.removesuffix('s')} | {shown} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure as asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description="Cost per operation by size.")
    parser.add_argument("--items", type=int, nargs="*", default=[1_000, 100_000, 5_000_000])
    parser.add_argument("--partitions", type=int, nargs="*", default=[1, 16, 256])
    parser.add_argument("--containers", type=int, nargs="*", default=[1, 1_000])
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 100, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    try:
        with LoadProcess() as load:
            growth = Growth(load, given.rounds, given.seconds)
            if given.connections:
                _with_connections(growth, load, given.connections)
            for count in given.containers:
                _with_containers(growth, load, count)
            for count in given.partitions:
                _with_partitions(growth, load, count)
            for count in given.items:
                _with_items(growth, count)
    except LoadError as error:
        print(f"the benchmark failed: {error}", file=sys.stderr)
        return 1
    text = f"{date.today():%Y-%m-%d}, {machine()}: µs of the server's processor time for one request.\n\n"
    text += _table(growth.figures)
    (BUILD / "growth.md").write_text(text)
    (BUILD / "growth.svg").write_text(svg(growth.figures))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
