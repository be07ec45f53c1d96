"""A server that is seeded from a folder: what it finds there, what it leaves, and what it refuses to guess."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient

import pleiad
from pleiad.job.load_folder import LoadError, seeds_in
from pleiad.testing.start import RunningServer
from tests import warm_command
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX

PEOPLE = [{"id": f"p{number}", "city": f"c{number % 3}", "n": number} for number in range(1_200)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two databases, with a container of each kind."""
    root = tmp_path / "seed"
    put(root / "town/people.jsonl", "".join(json.dumps(item) + "\n" for item in PEOPLE))
    put(root / "town/people.container.json", '{"partitionKey": {"paths": ["/city"]}, "throughput": 1000}')
    put(root / "town/streets.csv", "id,city,length\n1,Oslo,2.5\n2,Rome,7\n")
    put(root / "town/streets.container.json", '{"partitionKey": {"paths": ["/city"]}, "defaultTtl": -1}')
    put(root / "shop/orders.json", '[{"country": "no", "city": "Oslo"}, {"id": "own", "country": "it"}]')
    put(root / "shop/orders.container.json", '{"partitionKey": {"paths": ["/country", "/city"]}}')
    put(root / "shop/empty.container.json", '{"partitionKey": {"paths": ["/x"]}}')
    put(root / "shop/.hidden.jsonl", "not read")
    put(root / "README.md", "not read")
    put(root / "shop/notes.txt", "not read")
    return root


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def items_of(server: RunningServer, database: str, container: str) -> list[dict[str, Any]]:
    found: Any = CosmosClient(server.endpoint, server.key).get_database_client(database)
    return [
        {name: value for name, value in item.items() if not name.startswith("_")}
        for item in found.get_container_client(container).read_all_items()
    ]


def definition_of(server: RunningServer, database: str, container: str) -> dict[str, Any]:
    found: Any = CosmosClient(server.endpoint, server.key).get_database_client(database)
    definition: dict[str, Any] = found.get_container_client(container).read()
    return definition


@pytest.mark.every_store
def test_everything_in_the_folder_is_there_when_the_server_answers(
    start_server: StartServer, folder: Path
) -> None:
    with start_server(load=folder) as server:
        assert sorted(items_of(server, "town", "people"), key=lambda item: item["n"]) == PEOPLE
        assert items_of(server, "town", "streets") == [
            {"id": "1", "city": "Oslo", "length": 2.5},
            {"id": "2", "city": "Rome", "length": 7},
        ]
        assert definition_of(server, "town", "streets")["defaultTtl"] == -1
        key = definition_of(server, "shop", "orders")["partitionKey"]
        assert (key["kind"], key["version"], key["paths"]) == ("MultiHash", 2, ["/country", "/city"])
        orders = items_of(server, "shop", "orders")
        assert {(item["country"], len(item["id"])) for item in orders} == {("no", 36), ("it", 3)}
        assert items_of(server, "shop", "empty") == []
        database: Any = CosmosClient(server.endpoint, server.key).get_database_client("town")
        assert database.get_container_client("people").get_throughput().offer_throughput == 1000


def test_what_exists_is_left_with_all_that_was_done_to_it(tmp_path: Path, folder: Path) -> None:
    data = tmp_path / "data"
    with pleiad.start(data=data, load=folder) as server:
        database: Any = CosmosClient(server.endpoint, server.key).get_database_client("town")
        people = database.get_container_client("people")
        people.delete_item("p0", "c0")
        people.upsert_item({"id": "p1", "city": "c1", "n": "changed"})
    put(folder / "town/new.container.json", '{"partitionKey": {"paths": ["/x"]}}')
    with pleiad.start(data=data, load=folder) as server:
        found = {item["id"]: item for item in items_of(server, "town", "people")}
        assert len(found) == len(PEOPLE) - 1
        assert found["p1"]["n"] == "changed"
        assert items_of(server, "town", "new") == []
    assert not (data / "loading.json").exists()


def test_a_load_that_was_interrupted_is_finished_by_the_next_start(tmp_path: Path, folder: Path) -> None:
    data = tmp_path / "data"
    lines = (folder / "town/people.jsonl").read_text().splitlines(keepends=True)
    put(folder / "town/people.jsonl", "".join([*lines[:900], '{"id": "p900", "city": \n', *lines[901:]]))
    sentence = r"town/people cannot be loaded: .*people\.jsonl, line 901: not JSON"
    with pytest.raises(LoadError, match=sentence), pleiad.start(data=data, load=folder):
        pass
    assert json.loads((data / "loading.json").read_text()) == {"container": "town/people"}
    put(folder / "town/people.jsonl", "".join(lines))
    with pleiad.start(data=data, load=folder) as server:
        assert len(items_of(server, "town", "people")) == len(PEOPLE)
        assert len(items_of(server, "town", "streets")) == 2
    assert not (data / "loading.json").exists()


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("town/people.container.json", None, "the partition key of town/people is not said: write it into"),
        ("town/people.container.json", "{", "cannot be read"),
        ("town/people.container.json", '["/city"]', "must be an object with the 'partitionKey'"),
        ("town/people.container.json", '{"partitionKey": {"paths": ["city"]}}', "they start with '/'"),
        (
            "town/people.container.json",
            '{"partitionKey": {"paths": ["/a"]}, "throughput": "x"}',
            "a whole number",
        ),
        (
            "town/people.container.json",
            '{"partitionKey": {"paths": ["/a"]}, "throughput": 3}',
            "minimum throughput",
        ),
        ("town/people.csv", "id\n1\n", "are both of the container town/people"),
        ("town/people.jsonl", '{"id":"1"}\n{"id":"1"}\n', "line 2: .*already exists"),
        ("town/people.jsonl", '{"id":7}\n', "line 1: .*id"),
        ("town/a#b.jsonl", "", "the partition key of town/a#b"),
        ("town/a#b.container.json", '{"partitionKey": {"paths": ["/a"]}}', "must not contain"),
    ],
)
def test_what_is_not_clear_is_refused_with_its_place(
    folder: Path, name: str, text: str | None, sentence: str
) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        put(folder / name, text)
    with pytest.raises(LoadError, match=sentence), pleiad.start(load=folder):
        pass


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="there is no folder"):
        seeds_in(tmp_path / "none")


def test_serve_tells_what_it_loads_and_what_it_cannot(tmp_path: Path, folder: Path) -> None:
    command = [*warm_command.words(), "serve", "--ephemeral", "--port", "0", "--load", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS_MAX)
    assert told[:4] == [
        "loaded shop/empty: 0 items\n",
        "loaded shop/orders: 2 items\n",
        "loaded town/people: 1,200 items\n",
        "loaded town/streets: 2 items\n",
    ]
    assert told[4] == "Pleiad is ready.\n"
    (folder / "town/streets.container.json").unlink()
    refused = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert (refused.returncode, "Error: the partition key of town/streets is not said" in refused.stderr) == (
        1,
        True,
    )


def test_a_server_is_stopped_while_it_loads(folder: Path) -> None:
    with (folder / "town/people.jsonl").open("w") as file:
        file.writelines(f'{{"id": "{number}", "city": "c"}}\n' for number in range(200_000))
    command = [*warm_command.words(), "serve", "--ephemeral", "--port", "0", "--load", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)][1] == "loaded shop/orders: 2 items\n"
    process.send_signal(signal.SIGTERM)
    told, problems = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, told, problems) == (0, "Stopped before it had started.\n", "")


def test_an_exported_container_with_its_definition_is_a_seed(tmp_path: Path, folder: Path) -> None:
    with pleiad.start(load=folder) as server:
        target = tmp_path / "copy/shop/orders.jsonl"
        target.parent.mkdir(parents=True)
        environment = {**os.environ, "PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}
        command = [*warm_command.words(), "export", "shop/orders", str(target), "--definition"]
        subprocess.run(command, check=True, env=environment, capture_output=True, timeout=SECONDS_MAX)
        orders = items_of(server, "shop", "orders")
    with pleiad.start(load=tmp_path / "copy", child_process=True) as server:
        found = items_of(server, "shop", "orders")
        assert sorted(found, key=lambda item: item["id"]) == sorted(orders, key=lambda item: item["id"])
        assert definition_of(server, "shop", "orders")["partitionKey"]["kind"] == "MultiHash"
