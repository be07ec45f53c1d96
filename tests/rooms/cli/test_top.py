"""`pleiad top`: what comes between two looks at a server, and that nothing is counted while nobody looks."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from click.testing import CliRunner

from pleiad.cli.main import cli
from pleiad.cli.top import between
from pleiad.cli.view.table import width_of
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.engine.watch.busiest import ENTRIES_MAX, FORGOTTEN_SECONDS, Busiest
from pleiad.engine.watch.observer import Observers, Seen
from pleiad.testing.start import RunningServer
from tests.stores import StartServer


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        database = CosmosClient(started.endpoint, started.key).create_database("town")
        spread: Any = database.create_container("spread", PartitionKey("/city"), offer_throughput=18_000)
        spread.create_item({"id": "1", "city": "Oslo"})
        yield started


def container_of(server: RunningServer) -> Any:
    return (
        CosmosClient(server.endpoint, server.key).get_database_client("town").get_container_client("spread")
    )


def test_what_came_between_two_looks_is_told_with_its_fan_out(server: RunningServer) -> None:
    spread = container_of(server)
    with Connection(server.endpoint, server.key) as connection:
        admin = Admin(connection)
        before = admin.busiest()
        for _ in range(4):
            spread.read_item("1", "Oslo")
        list(spread.query_items("SELECT * FROM c WHERE c.age > 1", enable_cross_partition_query=True))
        rows = {(row["operation"], row["query"]): row for row in between(before, admin.busiest())}
    read = rows["read", ""]
    assert (read["container"], read["fan-out"], read["429s"]) == ("town/spread", 1.0, 0)
    assert read["req/s"] > 0
    assert read["RU/s"] == pytest.approx(read["req/s"], rel=0.2)
    (asked,) = [
        row for (operation, text), row in rows.items() if operation == "query" and "c.age > 1" in text
    ]
    assert asked["fan-out"] >= 1
    assert asked["p99"] > 0


def test_the_table_fits_and_the_json_is_a_line_a_look(server: RunningServer) -> None:
    spread = container_of(server)
    done = threading.Event()

    def read_on() -> None:
        while not done.is_set():
            spread.read_item("1", "Oslo")
            list(spread.query_items("SELECT * FROM c\nWHERE c.age > 1", partition_key="Oslo"))

    reading = threading.Thread(target=read_on)
    reading.start()
    environment = {"PLEIAD_CONNECTION_STRING": server.connection_string}
    try:
        words = ["top", "--looks", "1", "--interval", "0.5"]
        text = CliRunner().invoke(cli, [*words, "--by", "requests"], env=environment)
        lines = CliRunner().invoke(cli, [*words, "--json", "--looks", "2"], env=environment)
    finally:
        done.set()
        reading.join()
    assert text.exit_code == 0, text.stderr
    assert re.search(r"^town/spread +read ", text.stdout, re.MULTILINE)
    assert "RU/s" in text.stdout.splitlines()[0]
    assert all(width_of(line) <= 80 for line in text.stdout.splitlines()), text.stdout
    looks = [json.loads(line) for line in lines.stdout.splitlines()]
    assert len(looks) == 2
    assert {"read", "query"} <= {entry["operation"] for look in looks for entry in look["entries"]}


def seen(**given: Any) -> Seen:
    return Seen(**{"operation": "read", "status": 200, "seconds": 0.001, **given})


def test_nothing_is_counted_while_nobody_looks() -> None:
    clock = [1_000.0]
    busiest, observers = Busiest(lambda: clock[0]), Observers()
    assert busiest.is_over
    busiest.look()
    observers.add(busiest)
    observers.add(busiest)
    observers.tell(seen(partitions=("0", "1")))
    (entry,) = busiest.look()
    assert (entry.requests, entry.partitions) == (1, 2)
    clock[0] += FORGOTTEN_SECONDS
    observers.tell(seen())
    assert observers.all == ()
    assert busiest.look() == []


def test_kinds_beyond_the_most_are_counted_together() -> None:
    busiest = Busiest()
    busiest.look()
    for number in range(ENTRIES_MAX + 50):
        busiest.saw(seen(query=f"SELECT {number}"))
    entries = busiest.look()
    assert len(entries) == ENTRIES_MAX + 1
    assert entries[-1].operation == "others"
    assert entries[-1].requests == 50


def test_a_server_that_was_started_anew_is_looked_at_from_its_beginning() -> None:
    kind = {"container": "a/b", "operation": "read", "query": "", "throttled": 0, "ms": 9, "partitions": 5}
    old = {**kind, "requests": 50, "ru": 50, "buckets": [50, 0]}
    new = {**kind, "requests": 5, "ru": 5, "buckets": [5, 0]}
    (row,) = between(
        {"at": 1.0, "boundsMs": [1.0], "entries": [old]}, {"at": 2.0, "boundsMs": [1.0], "entries": [new]}
    )
    assert (row["req/s"], row["RU/s"], row["p99"], row["fan-out"]) == (5.0, 5.0, 1.0, 1.0)
