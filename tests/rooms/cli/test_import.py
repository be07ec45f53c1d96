"""`pleiad import` against a server that answers: what comes in, what is rejected and where, and what is refused."""

from __future__ import annotations

import gzip
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from click.testing import CliRunner, Result

from pleiad.cli.main import cli
from pleiad.client.bulk import OPERATIONS_MAX
from pleiad.limits import Limits
from pleiad.testing.start import RunningServer
from tests.stores import StartServer

READ_ONLY_KEY = "cmVhZCBvbmx5IGtleSBvZiB0aGUgdGVzdHM="


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        CosmosClient(started.endpoint, started.key).create_database("town")
        yield started


@pytest.fixture
def name() -> str:
    """The name of a container that no other test uses."""
    return f"c{uuid.uuid4().hex[:8]}"


def run(server: RunningServer, *arguments: str, input: bytes | None = None) -> Result:
    environment = {"PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}
    return CliRunner().invoke(cli, ["import", *arguments], env=environment, input=input)


def lines(path: Path, items: list[Any]) -> str:
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return str(path)


def items_of(server: RunningServer, container: str, database: str = "town") -> dict[str, dict[str, Any]]:
    found: Any = CosmosClient(server.endpoint, server.key).get_database_client(database)
    return {
        item["id"]: {key: value for key, value in item.items() if not key.startswith("_")}
        for item in found.get_container_client(container).read_all_items()
    }


def rejects(path: str | Path) -> list[dict[str, Any]]:
    """What was rejected, by the lines of the file; connections bring it in any order."""
    found = [json.loads(line) for line in Path(f"{path}.rejects.jsonl").read_text().splitlines()]
    return sorted(found, key=lambda each: int(each["line"]))


# -- what comes in ---------------------------------------------------------------------------------------


@pytest.mark.every_store
def test_a_file_makes_its_database_and_container_and_fills_it(
    start_server: StartServer, tmp_path: Path
) -> None:
    items = [{"id": f"é{number}", "city": f"c{number % 7}", "n": number / 4} for number in range(1_000)]
    file = lines(tmp_path / "people.jsonl", items)
    with start_server() as fresh:
        result = run(fresh, file, "new/people", "--partition-key", "/city", "--throughput", "1000")
        assert result.exit_code == 0, result.output
        assert re.search(r"made the container new/people with the partition key /city", result.stderr)
        assert re.search(r"imported 1,000 items in .* items/s, [\d,]+ RU", result.stderr)
        assert result.stdout == ""
        assert items_of(fresh, "people", "new") == {item["id"]: item for item in items}
    assert [each.name for each in tmp_path.iterdir()] == ["people.jsonl"], "neither state nor rejects stay"


def test_a_hierarchical_key_is_several_paths(server: RunningServer, tmp_path: Path, name: str) -> None:
    items: list[dict[str, Any]] = [{"id": "1", "a": "x", "b": {"c": 1}}, {"id": "2", "a": "x"}, {"id": "3"}]
    items.append({"id": "4", "a": None})
    file = lines(tmp_path / "levels.jsonl", items)
    result = run(server, file, f"town/{name}", "--partition-key", "/a, /b/c")
    assert result.exit_code == 0, result.output
    found: Any = CosmosClient(server.endpoint, server.key).get_database_client("town")
    definition = found.get_container_client(name).read()["partitionKey"]
    assert (definition["kind"], definition["paths"]) == ("MultiHash", ["/a", "/b/c"])
    assert items_of(server, name) == {item["id"]: item for item in items}


def test_standard_input_is_read_whatever_it_is_packed_with(server: RunningServer, name: str) -> None:
    packed = gzip.compress(b'[{"id":"1","city":"a"},\n{"id":"2","city":"b"}]')
    result = run(server, "-", f"town/{name}", "--partition-key", "/city", input=packed)
    assert result.exit_code == 0, result.output
    assert items_of(server, name).keys() == {"1", "2"}


def test_csv_is_read_by_its_options(server: RunningServer, tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text("id;zip;n;geo.lat\n1;0150;5;59.9\n2;;true;\n")
    arguments = ["--partition-key", "/zip", "--delimiter", ";", "--text", "n"]
    result = run(server, str(tmp_path / "a.csv"), f"town/{name}", *arguments)
    assert result.exit_code == 0, result.output
    assert items_of(server, name) == {
        "1": {"id": "1", "zip": "0150", "n": "5", "geo": {"lat": 59.9}},
        "2": {"id": "2", "n": "true"},
    }


def test_missing_ids_are_generated_only_on_demand(server: RunningServer, tmp_path: Path, name: str) -> None:
    file = lines(tmp_path / "a.jsonl", [{"city": "a"}, {"city": "a"}, {"id": "own", "city": "a"}, {"id": 5}])
    arguments = [file, f"town/{name}", "--partition-key", "/city"]
    refused = run(server, *arguments)
    assert refused.exit_code == 1
    assert "line 1: the item has no id that is a string; --generate-id gives it one" in refused.stderr
    assert "line 4: the item has no id that is a string\n" in refused.stderr
    result = run(server, *arguments, "--generate-id", "--upsert")
    assert result.exit_code == 1, "a number is no id"
    found = items_of(server, name)
    assert len(found) == 3
    assert all(uuid.UUID(id) for id in found.keys() - {"own"})


def test_large_items_come_in_and_too_large_ones_are_rejected_alone(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    items = [{"id": str(number), "city": "a", "text": "x" * (2 * 1024 * 1024 - 200)} for number in range(5)]
    items.insert(2, {"id": "too large", "city": "a", "text": "x" * (2 * 1024 * 1024 + 1)})
    items.insert(4, {"id": "far too large", "city": "a", "text": "x" * (5 * 1024 * 1024)})
    items.append({"id": "small", "city": "a"})
    file = lines(tmp_path / "large.jsonl", items)
    result = run(server, file, f"town/{name}", "--partition-key", "/city")
    assert result.exit_code == 1, result.output
    assert [(each["line"], each["item"]["id"]) for each in rejects(file)] == [
        (3, "too large"),
        (5, "far too large"),
    ]
    assert items_of(server, name).keys() == {"0", "1", "2", "3", "4", "small"}


# -- duplicates ------------------------------------------------------------------------------------------


def test_a_create_leaves_what_exists_and_an_upsert_replaces_it(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    file = lines(
        tmp_path / "a.jsonl", [{"id": str(number), "city": "a", "is": "old"} for number in range(150)]
    )
    assert run(server, file, f"town/{name}", "--partition-key", "/city").exit_code == 0
    new = lines(
        tmp_path / "b.jsonl", [{"id": str(number), "city": "a", "is": "new"} for number in range(149, 152)]
    )
    result = run(server, new, f"town/{name}")
    assert result.exit_code == 1
    assert "line 1: " in result.stderr
    assert "1 item rejected, see " in result.stderr
    (reject,) = rejects(new)
    assert (reject["line"], reject["status"], reject["item"]["id"]) == (1, 409, "149")
    found = items_of(server, name)
    assert (len(found), found["149"]["is"], found["150"]["is"]) == (152, "old", "new")
    assert run(server, new, f"town/{name}", "--upsert").exit_code == 0
    assert items_of(server, name)["149"]["is"] == "new"
    assert not Path(f"{new}.rejects.jsonl").exists()


def test_of_an_id_that_is_there_twice_the_first_is_created_and_the_last_stays_of_an_upsert(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    items = [{"id": str(number % 10), "city": "a", "n": number} for number in range(1_000)]
    file = lines(tmp_path / "twice.jsonl", items)
    created = run(server, file, f"town/{name}", "--partition-key", "/city")
    assert created.exit_code == 1
    assert {id: item["n"] for id, item in items_of(server, name).items()} == {str(n): n for n in range(10)}
    assert [each["line"] for each in rejects(file)] == list(range(11, 1_001))
    assert run(server, file, f"town/{name}", "--upsert").exit_code == 0
    assert {id: item["n"] for id, item in items_of(server, name).items()} == {
        str(n): 990 + n for n in range(10)
    }


# -- what is rejected ------------------------------------------------------------------------------------

DEEP = '{"id":"deep","city":"a","x":' + "[" * 200 + "]" * 200 + "}"
HOSTILE = [
    ('{"id":"good 1","city":"a"}', None),
    ('{"id":"a\\\\b","city":"a"}', "backslash"),
    ('{"id":"","city":"a"}', "id"),
    ('{"id":"' + "x" * 1024 + '","city":"a"}', "1024"),
    (DEEP, "nested"),
    ('{"id":"ttl","city":"a","ttl":"soon"}', "ttl"),
    ('{"id":"key","city":"' + "k" * 3000 + '"}', "limit"),
    ('{"id":"number","city":123456789012345678}', "double"),
    ('{"id":"NUL\\u0000","city":"a"}', "id"),
    ("{" * 5_000, "not JSON"),
    ('{"id":"good 2","city":{"no":"scalar"},"operationType":"Delete","partitionKey":["x"],"resourceBody":{}}', None),
    ('{"id":"good 3","city":"\\"],\\"resourceBody\\":{\\"id\\":\\"evil\\"}}","_rid":"x","_etag":"y","_ts":-1}', None),
    ('{"id":"good 4","city":true,"a":1e-320,"b":-0.0,"c":18446744073709551615,"d":"\\u0000\\u2028"}', None),
    ('{"id":"good 5","id":"good 6","city":null}', None),
]  # fmt: skip


def test_hostile_lines_are_rejected_one_by_one_with_their_numbers(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text("\n".join(text for text, _ in HOSTILE), encoding="utf-8")
    result = run(server, str(path), f"town/{name}", "--partition-key", "/city")
    assert result.exit_code == 1
    reasons = {each["line"]: each["reason"] for each in rejects(path)}
    expected = {line: word for line, (_, word) in enumerate(HOSTILE, 1) if word is not None}
    assert reasons.keys() == expected.keys(), reasons
    assert all(word in reasons[line] for line, word in expected.items()), reasons
    found = items_of(server, name)
    assert found.keys() == {"good 1", "good 2", "good 3", "good 4", "good 6"}
    assert found["good 4"] == {
        "id": "good 4", "city": True, "a": 1e-320, "b": 0, "c": 2**64 - 1, "d": "\0\u2028",
    }  # fmt: skip
    assert found["good 2"]["operationType"] == "Delete"


def test_the_file_of_rejects_can_be_named_and_its_items_imported_again(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    file = lines(tmp_path / "a.jsonl", [{"id": "1", "city": "a"}, {"id": "2", "city": "b", "ttl": "x"}])
    named = tmp_path / "bad.jsonl"
    result = run(server, file, f"town/{name}", "--partition-key", "/city", "--rejects", str(named))
    assert f"1 item rejected, see {named}" in result.stderr
    item = json.loads(named.read_text())["item"]
    assert item == {"id": "2", "city": "b", "ttl": "x"}


def test_too_many_rejects_stop_the_import(server: RunningServer, tmp_path: Path, name: str) -> None:
    file = lines(tmp_path / "a.jsonl", [{"no id": number} for number in range(50)])
    result = run(server, file, f"town/{name}", "--partition-key", "/city", "--max-rejects", "7")
    assert result.exit_code == 1
    assert "more than 7 items were rejected; --max-rejects allows more of them" in result.stderr
    assert len(rejects(file)) == 8
    assert result.stderr.count("the item has no id") == 8


def test_a_file_that_is_broken_in_the_middle_comes_in_up_to_there(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"id":"1","city":"a"},\n{"id":"2","city":"a"},\n{"id":"3","ci')
    result = run(server, str(path), f"town/{name}", "--partition-key", "/city")
    assert result.exit_code == 1
    assert "line 3: the file ends inside the item that begins there" in result.stderr
    assert "stopped after 2 items and 0 rejects; the same command goes on from here" in result.stderr
    assert items_of(server, name).keys() == {"1", "2"}


# -- throughput ------------------------------------------------------------------------------------------


def test_an_import_waits_for_request_units_and_says_what_held_it_back(
    start_server: StartServer, tmp_path: Path
) -> None:
    # Twice as many as all connections may have under way at once before the first of them is charged.
    connections = 4
    count = 2 * connections * OPERATIONS_MAX
    file = lines(tmp_path / "a.jsonl", [{"id": str(number), "city": f"c{number}"} for number in range(count)])
    with start_server(throttle="enforce") as slow:
        options = ("--partition-key", "/city", "--throughput", "500", "--connections", str(connections))
        result = run(slow, file, "town/slow", *options)
        assert result.exit_code == 0, result.output
        assert "`pleiad throughput town/slow RU` gives it more" in result.stderr
        assert len(items_of(slow, "slow")) == count


def test_an_import_goes_no_faster_than_it_may(server: RunningServer, tmp_path: Path, name: str) -> None:
    file = lines(tmp_path / "a.jsonl", [{"id": str(number), "city": "a"} for number in range(100)])
    result = run(server, file, f"town/{name}", "--partition-key", "/city", "--items-per-second", "100")
    assert result.exit_code == 0, result.output
    (seconds,) = re.findall(r"imported 100 items in ([\d.]+) s", result.stderr)
    assert float(seconds) >= 0.7, "a tenth of a second is free"
    assert "holds it back" not in result.stderr


@pytest.mark.parametrize("fault", ["429", "449", "503", "408", "cut-before", "cut-after", "410/1002"])
def test_faults_on_the_way_lose_and_double_nothing(
    server: RunningServer, tmp_path: Path, name: str, fault: str
) -> None:
    file = lines(
        tmp_path / "a.jsonl", [{"id": str(number), "city": f"c{number % 9}"} for number in range(950)]
    )
    found: Any = CosmosClient(server.endpoint, server.key).get_database_client("town")
    found.create_container(name, PartitionKey("/city"))
    with server.faults.add(fault, count=5, container=name, database="town") as set_fault:
        result = run(server, file, f"town/{name}")
        assert set_fault.hits == 5
    assert result.exit_code == 0, result.output
    assert "imported 950 items" in result.stderr
    assert len(items_of(server, name)) == 950


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["FILE", "town/none"], 1, "there is no container town/none: make it, or give its --partition-key"),
        (["FILE", "town"], 2, "not a database and a container"),
        (["FILE", "town/x", "--partition-key", "city"], 2, "they start with '/'"),
        (["FILE", "town/x", "--partition-key", "/a,/a"], 2, "its paths must all be different"),
        (["FILE", "town/x", "--delimiter", "ab"], 2, "'ab' is not one character"),
        (["FILE", "town/x", "--items-per-second", "0"], 2, "0"),
        (["FILE", "town/x", "--rejects", "FILE"], 2, "need a file of their own"),
        (["FILE", "town/x", "--state", "FILE"], 2, "need a file of their own"),
        (["FILE", "town/x", "--state", "same", "--rejects", "same"], 2, "need a file of their own"),
        (["no such file", "town/x"], 1, "no such file cannot be read: No such file"),
        ([".", "town/x"], 1, ". cannot be read: Is a directory"),
        (["FILE", "town/people?", "--partition-key", "/city"], 1, "must not contain"),
        (["FILE", "town/few", "--partition-key", "/city", "--throughput", "3"], 1, "minimum throughput"),
    ],
)
def test_wrong_commands_are_told(
    server: RunningServer, tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    file = lines(tmp_path / "a.jsonl", [{"id": "1", "city": "a"}])
    result = run(server, *[file if each == "FILE" else each for each in arguments])
    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]


def test_another_partition_key_than_that_of_the_container_is_refused(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    file = lines(tmp_path / "a.jsonl", [{"id": "1", "city": "a"}])
    assert run(server, file, f"town/{name}", "--partition-key", "/city").exit_code == 0
    result = run(server, file, f"town/{name}", "--partition-key", "/other")
    assert (result.exit_code, f"the partition key of town/{name} is /city" in result.stderr) == (1, True)


def test_keys_that_may_not_write_are_refused_in_a_sentence(start_server: StartServer, tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", [{"id": "1", "city": "a"}])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLEIAD_READ_ONLY_KEY", READ_ONLY_KEY)
        with start_server(child_process=True) as other:
            CosmosClient(other.endpoint, other.key).create_database("town").create_container(
                "people", PartitionKey("/city")
            )
            wrong = run(other, file, "town/people", "--key", "YW5vdGhlciBrZXkgb2YgMTY=")
            assert (wrong.exit_code, "does not accept this key" in wrong.stderr) == (1, True)
            reader = run(other, file, "town/people", "--key", READ_ONLY_KEY)
            assert reader.exit_code == 1
            assert "Error: The read-only key cannot authorize a write." in reader.stderr
            assert items_of(other, "people") == {}


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", [{"id": "1", "city": "a"}])
    result = CliRunner().invoke(cli, ["import", file, "town/people", "--endpoint", "http://localhost:1"])
    assert (result.exit_code, "nothing listens at http://localhost:1" in result.stderr) == (1, True)


def test_smaller_limits_of_a_server_reject_what_is_larger(start_server: StartServer, tmp_path: Path) -> None:
    items = [
        {"id": str(number), "city": "a", "text": "x" * size}
        for number, size in enumerate([10, 3000, 10, 9000])
    ]
    file = lines(tmp_path / "a.jsonl", items)
    with start_server(limits=Limits(item_bytes=2_000, request_bytes=4_000, batch_bytes=2_000)) as small:
        result = run(small, file, "town/small", "--partition-key", "/city")
        assert result.exit_code == 1, result.output
        assert items_of(small, "small").keys() == {"0", "2"}
        assert [each["line"] for each in rejects(file)] == [2, 4]
