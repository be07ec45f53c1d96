"""``python -m bench.peers``: measure, print the table of ratios, write ``build/peers.json``."""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version

from bench.items import Item, items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.peers.operations import ITEMS, OPERATIONS, READ, WRITTEN, Operation
from bench.peers.shelf import PEERS, PLACE, Peer, pleiad_command, running
from bench.peers.table import Row, table
from bench.process import BUILD, LOOPBACK, machine
from bench.server import PleiadServer

CONNECTIONS = (1, 32)
FEWEST = 20


def _set_up(server: PleiadServer, load: LoadProcess, held: Sequence[Item]) -> None:
    for link in (READ, WRITTEN):
        _, database, _, container = link.split("/")
        server.create_container(database, container)
        server.fill(load, link, list(held))


def _refusal(server: PleiadServer, operation: Operation, load: LoadProcess, held: Sequence[Item]) -> str:
    """Why an operation is not measured on a server; empty when it is."""
    requests = operation.make(server, held, 1)
    if requests.before:
        server.fill(load, WRITTEN, list(requests.before))
    head, _, body = requests.made[0].partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    verb, path, _ = first.split(" ")
    fields = dict(
        line.split(": ", 1) for line in lines if not line.startswith(("Host", "Connection", "Content-Length"))
    )
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=60)
    try:
        connection.request(verb, path, body=body or None, headers=fields)
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"no answer ({type(error).__name__})"
    finally:
        connection.close()
    if response.status not in operation.statuses:
        return f"not supported ({response.status})"
    try:
        return "" if operation.is_right(answer, held) else "wrong answer"
    except (ValueError, KeyError, TypeError):
        return "wrong answer"


def _round(
    server: PleiadServer,
    operation: Operation,
    load: LoadProcess,
    held: Sequence[Item],
    connections: int,
    seconds: float,
) -> Measure:
    count = max(FEWEST, int(operation.per_second * (seconds + 0.3)))
    requests = operation.make(server, held, count)
    if requests.before:
        server.fill(load, WRITTEN, list(requests.before))
    return load.run(
        Job(
            name=operation.name,
            port=server.port,
            server_pid=server.pid,
            requests=requests.made,
            statuses=operation.statuses,
            connections=connections,
            seconds=seconds,
            warmup_seconds=0.2 if requests.is_repeated else 0,
            repeat=requests.is_repeated,
            answers_min=connections,  # what is worked on side by side is answered late, and all at once
        )
    )


def _compare(peer: Peer, load: LoadProcess, rounds: int, seconds: float) -> list[Row]:
    held = items("held", ITEMS)
    rows: list[Row] = []
    with running("pleiad", pleiad_command) as own, running(peer.name, peer.command) as other:
        for server in (own, other):
            _set_up(server, load, held)
        for operation in OPERATIONS:
            if (said := _refusal(own, operation, load, held)) != "":
                raise LoadError(f"{operation.name} on Pleiad: {said}")
            said = _refusal(other, operation, load, held)
            for connections in CONNECTIONS:
                pairs: list[tuple[Measure, Measure]] = []
                for _ in range(rounds if not said else 0):
                    measured = _round(own, operation, load, held, connections, seconds)
                    try:
                        pairs.append((measured, _round(other, operation, load, held, connections, seconds)))
                    except LoadError as error:
                        said = f"fails under load ({str(error)[:60]})"
                        break
                rows.append(_row(peer, operation, connections, pairs, said))
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _row(
    peer: Peer, operation: Operation, connections: int, pairs: Sequence[tuple[Measure, Measure]], said: str
) -> Row:
    if said:
        return Row(peer.name, operation.name, connections, said)

    def economy(measure: Measure) -> float:
        return measure.requests / max(measure.server_cpu_seconds, 0.01)

    return Row(
        peer.name,
        operation.name,
        connections,
        "",
        statistics.median(own.rate for own, _ in pairs),
        statistics.median(other.rate for _, other in pairs),
        statistics.median(own.rate / other.rate for own, other in pairs),
        statistics.median(economy(own) / economy(other) for own, other in pairs),
    )


def main() -> int:
    """Compare with every peer that can be had; 1 when there is none."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Pleiad beside its peers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    PLACE.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    notes: list[str] = []
    with LoadProcess() as load:
        for peer in PEERS:
            if (said := peer.install()) != "":
                notes.append(f"{peer.name} {peer.version} is left out: {said}")
                print(notes[-1], file=sys.stderr, flush=True)
                continue
            notes.append(f"{peer.name} {peer.version}: {peer.about}")
            try:
                rows += _compare(peer, load, arguments.rounds, arguments.seconds)
            except LoadError as error:
                print(f"the comparison with {peer.name} failed: {error}", file=sys.stderr)
                return 1
    text = table(rows, notes, machine(), f"{date.today():%Y-%m-%d}, Pleiad {version('pleiad')}")
    (BUILD / "peers.json").write_text(json.dumps([row._asdict() for row in rows], indent=1))
    (BUILD / "peers.md").write_text(text)
    print(text)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
