"""The verbs on databases, containers and items against a server that answers: ls, create, show, get, put, rm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from click.testing import CliRunner, Result

from pleiad.cli.main import cli
from pleiad.cli.view.table import width_of
from pleiad.testing.start import RunningServer
from tests.stores import StartServer

SYSTEM = ("_rid", "_self", "_etag", "_ts")


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        client = CosmosClient(started.endpoint, started.key)
        database = client.create_database("town")
        people: Any = database.create_container("people", PartitionKey("/city"), offer_throughput=500)
        people.create_item({"id": "1", "city": "Oslo", "age": 31, "tags": ["x", {"y": 1}]})
        people.create_item({"id": "1", "city": "Lima", "age": 7})
        people.create_item({"id": "2", "city": "Lima", "age": 64})
        tenants: Any = database.create_container(
            "tenants", PartitionKey(["/tenant", "/user"], kind="MultiHash"), offer_throughput=400
        )
        tenants.create_item({"id": "a", "tenant": "contoso", "user": 5})
        client.create_database("shared", offer_throughput=600).create_container("inside", PartitionKey("/id"))
        yield started


def run(server: RunningServer, *arguments: str, text: str | None = None) -> Result:
    environment = {"PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}
    return CliRunner().invoke(cli, arguments, env=environment, input=text)


def out(server: RunningServer, *arguments: str, text: str | None = None) -> str:
    result = run(server, *arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def refused(server: RunningServer, *arguments: str, text: str | None = None) -> str:
    """What is said by a verb that the server has refused: one line, and exit code 1."""
    result = run(server, *arguments, text=text)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    said = result.stderr.splitlines()[-1]
    assert said.startswith("Error: ")
    return said.removeprefix("Error: ")


# -- ls -------------------------------------------------------------------------------------------------


def test_databases_are_listed_with_their_containers_and_throughput(server: RunningServer) -> None:
    lines = out(server, "ls").splitlines()
    assert lines[0].split() == ["database", "containers", "RU/s"]
    assert [line.split() for line in lines[2:4]] == [["shared", "1", "600"], ["town", "2"]]


def test_containers_are_listed_with_their_key_and_throughput(server: RunningServer) -> None:
    lines = out(server, "ls", "town").splitlines()
    assert re.fullmatch(r"people +/city +500", lines[2])
    assert re.fullmatch(r"tenants +/tenant, /user +400", lines[3])
    assert "shares 600" in out(server, "ls", "shared")


def test_items_are_listed_by_key_and_id_without_what_the_system_adds(server: RunningServer) -> None:
    result = run(server, "ls", "town/people")
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["city", "id", "age"]
    assert '["x", {"y": 1}]' in result.stdout
    assert result.stderr == "3 items\n"
    assert not any(name in result.stdout for name in SYSTEM)
    assert all(name in out(server, "ls", "town/people", "--system") for name in SYSTEM)


def test_a_list_stops_at_its_limit_and_says_that_there_is_more(server: RunningServer) -> None:
    result = run(server, "ls", "town/people", "--limit", "1", "--json")
    assert len(json.loads(result.stdout)) == 1
    assert result.stderr == "1 item; there are more: --limit N\n"


def test_json_has_no_system_properties_either_unless_they_are_asked_for(server: RunningServer) -> None:
    for place in ((), ("town",), ("town/people",)):
        for row in json.loads(out(server, "ls", *place, "--json")):
            assert not row.keys() & set(SYSTEM)
        for row in json.loads(out(server, "ls", *place, "--json", "--system")):
            assert row.keys() >= set(SYSTEM)


@pytest.mark.parametrize("key", ["Lima", '"Lima"', '["Lima"]'])
def test_the_items_of_one_key_are_listed(server: RunningServer, key: str) -> None:
    found = json.loads(out(server, "ls", "town/people", "--partition-key", key, "--json"))
    assert sorted(item["id"] for item in found) == ["1", "2"]


def test_a_prefix_of_a_hierarchical_key_lists_what_is_beneath(server: RunningServer) -> None:
    assert json.loads(out(server, "ls", "town/tenants", "--partition-key", "contoso", "--json"))
    assert json.loads(out(server, "ls", "town/tenants", "--partition-key", '["contoso", 6]', "--json")) == []


def test_a_key_without_a_container_is_a_mistake_of_the_command(server: RunningServer) -> None:
    assert run(server, "ls", "town", "--partition-key", "x").exit_code == 2


# -- create and show --------------------------------------------------------------------------------------


def test_a_container_is_created_with_its_database_and_shown(server: RunningServer) -> None:
    said = out(
        server,
        "create",
        "shop/orders",
        "--partition-key",
        "/customerId",
        "--throughput",
        "700",
        "--ttl",
        "60",
    )
    assert said == "created the container shop/orders\n"
    told = out(server, "show", "shop/orders")
    assert re.search(r"^partition key +/customerId \(hash version 2\)$", told, re.MULTILINE)
    assert re.search(r"^throughput +700 RU/s$", told, re.MULTILINE)
    assert re.search(r"^time to live +60 seconds$", told, re.MULTILINE)
    assert re.search(r"^containers +orders$", out(server, "show", "shop"), re.MULTILINE)


def test_a_hierarchical_key_and_autoscale_are_created(server: RunningServer) -> None:
    keys = ("--partition-key", "/a", "--partition-key", "/b/c")
    out(server, "create", "deep/one", *keys, "--autoscale", "4000")
    out(server, "create", "deep/two", "--partition-key", "/a,/b/c")
    for place in ("deep/one", "deep/two"):
        told = out(server, "show", place)
        assert re.search(r"^partition key +/a, /b/c \(hierarchical\)$", told, re.MULTILINE)
    told = out(server, "show", "deep/one")
    assert re.search(r"^throughput +up to 4,000 RU/s$", told, re.MULTILINE)


def test_a_container_is_created_as_another_one_is(server: RunningServer, tmp_path: Path) -> None:
    definition = json.loads(out(server, "show", "town/people", "--json"))
    assert not any(name.startswith("_") for name in definition)
    definition["indexingPolicy"]["excludedPaths"] = [{"path": "/secret/?"}]
    file = tmp_path / "people.json"
    file.write_text(json.dumps(definition))
    out(server, "create", "copies/people", "--definition", str(file))
    assert "/secret/?" in out(server, "show", "copies/people")
    made = out(server, "create", "copies/more", "--definition", "-", "--json", text=json.dumps(definition))
    assert json.loads(made)["id"] == "more"


def test_what_is_there_is_not_created_again(server: RunningServer) -> None:
    assert refused(server, "create", "town") == "the database town is there already"
    words = ("create", "town/people", "--partition-key", "/city")
    assert refused(server, *words) == "the container town/people is there already"
    assert run(server, *words, "--if-missing").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["town/new"], "needs its partition key"),
        (["town", "--partition-key", "/a"], "only a container"),
        (["town/new", "--partition-key", "a"], "begins with a slash"),
        (["town/new", "--partition-key", "/a", "--throughput", "400", "--autoscale", "1000"], "only one of"),
        (["a/b/c"], "neither a database"),
    ],
)
def test_a_wrong_create_is_a_mistake_of_the_command(
    server: RunningServer, arguments: list[str], complaint: str
) -> None:
    result = run(server, "create", *arguments)
    assert (result.exit_code, complaint in result.stderr) == (2, True), result.stderr


def test_a_missing_database_or_container_is_told(server: RunningServer) -> None:
    assert "no database 'nowhere'" in refused(server, "show", "nowhere")
    assert "no container 'nowhere'" in refused(server, "show", "town/nowhere")
    assert "nowhere" in refused(server, "ls", "nowhere")
    assert "nowhere" in refused(server, "ls", "town/nowhere")


# -- get, put, rm -------------------------------------------------------------------------------------------


def test_an_item_is_got_by_its_key_and_id(server: RunningServer) -> None:
    result = run(server, "get", "town/people", "1", "--partition-key", "Lima")
    assert json.loads(result.stdout) == {"id": "1", "city": "Lima", "age": 7}
    assert re.fullmatch(r"\d+\.\d\d RU\n", result.stderr)
    line = out(server, "get", "town/people", "1", "--partition-key", "Lima", "--json", "--system")
    assert line.count("\n") == 1
    assert json.loads(line).keys() >= set(SYSTEM)
    nested = out(server, "get", "town/tenants", "a", "--partition-key", '["contoso", 5]')
    assert json.loads(nested)["user"] == 5


def test_without_its_key_the_only_item_with_that_id_is_got(server: RunningServer) -> None:
    assert json.loads(out(server, "get", "town/people", "2"))["city"] == "Lima"
    said = refused(server, "get", "town/people", "1")
    assert "more than one item has the id 1" in said
    assert '"Lima"' in said
    assert '"Oslo"' in said
    assert refused(server, "get", "town/people", "9") == "there is no item 9 in town/people"


def test_an_item_that_is_not_there_is_told_with_its_key(server: RunningServer) -> None:
    said = refused(server, "get", "town/people", "2", "--partition-key", "Oslo")
    assert said == 'there is no item 2 with the partition key "Oslo" in town/people'
    assert "no container 'none'" in refused(server, "get", "town/none", "2", "--partition-key", "Oslo")


def test_an_item_is_put_from_an_argument_a_file_and_standard_input(
    server: RunningServer, tmp_path: Path
) -> None:
    file = tmp_path / "item.json"
    for number, given in enumerate(["argument", "file", "input", "nothing"]):
        item = json.dumps({"id": f"put-{number}", "city": "Rome"})
        file.write_text(item)
        words = {"argument": [item], "file": [str(file)], "input": ["-"], "nothing": []}[given]
        said = out(server, "put", "town/people", *words, text=item)
        assert re.fullmatch(rf"created put-{number}, \d+\.\d\d RU\n", said)
    assert out(server, "put", "town/people", str(file)).startswith("replaced put-3, ")
    assert json.loads(out(server, "get", "town/people", "put-1", "--partition-key", "Rome"))["city"] == "Rome"


def test_an_item_of_a_hierarchical_key_or_without_its_key_is_put_too(server: RunningServer) -> None:
    out(server, "put", "town/tenants", '{"id": "b", "tenant": "fabrikam", "user": null}')
    assert out(server, "get", "town/tenants", "b", "--partition-key", '["fabrikam", null]')
    out(server, "put", "town/people", '{"id": "nowhere"}')
    assert json.loads(out(server, "get", "town/people", "nowhere", "--partition-key", "{}")) == {
        "id": "nowhere"
    }


def test_a_put_respects_the_etag(server: RunningServer) -> None:
    item = {"id": "etag", "city": "Bonn", "n": 1}
    stored = json.loads(out(server, "put", "town/people", json.dumps(item), "--json", "--system"))
    bare = stored["_etag"].strip('"')
    changed = json.dumps({**item, "n": 2})
    assert out(server, "put", "town/people", changed, "--if-match", bare).startswith("replaced etag")
    said = refused(server, "put", "town/people", changed, "--if-match", stored["_etag"])
    assert said == "the item etag has another ETag: it was changed since"
    assert "another ETag" in refused(server, "rm", "town/people", "etag", "--if-match", bare)
    missing = json.dumps({"id": "new", "city": "Bonn"})
    assert "there is no item new" in refused(server, "put", "town/people", missing, "--if-match", bare)


def test_a_put_that_creates_refuses_what_is_there(server: RunningServer) -> None:
    said = refused(server, "put", "town/people", '{"id": "1", "city": "Oslo"}', "--create")
    assert said.startswith("there is an item 1 in town/people already")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("{", "is not JSON"),
        ("[1]", "one JSON object"),
        ('{"id": 5}', "a text as id"),
        ("no-such-file.json", "cannot be read"),
        ("-", "standard input is not JSON"),
    ],
)
def test_what_is_no_item_is_a_mistake_of_the_command(
    server: RunningServer, given: str, complaint: str
) -> None:
    result = run(server, "put", "town/people", given, text="")
    assert (result.exit_code, complaint in result.stderr) == (2, True), result.stderr


def test_an_item_is_deleted(server: RunningServer) -> None:
    out(server, "put", "town/people", '{"id": "gone", "city": "Oslo"}')
    assert out(server, "rm", "town/people", "gone", "--partition-key", "Oslo").startswith("deleted gone, ")
    assert "there is no item gone" in refused(server, "rm", "town/people", "gone", "--partition-key", "Oslo")
    assert "there is no item gone" in refused(server, "rm", "town/people", "gone")


def test_a_container_or_database_is_deleted_by_typing_its_name(server: RunningServer) -> None:
    out(server, "create", "doomed/one", "--partition-key", "/id")
    assert "nothing was deleted; --yes" in refused(server, "rm", "doomed/one", text="")
    assert "another name; nothing was deleted" in refused(server, "rm", "doomed/one", text="one\n")
    result = run(server, "rm", "doomed/one", text="doomed/one\n")
    assert result.stdout == "deleted the container doomed/one\n"
    assert "no container 'one'" in refused(server, "show", "doomed/one")
    out(server, "create", "doomed/two", "--partition-key", "/id")
    assert out(server, "rm", "doomed", "--yes") == "deleted the database doomed with 1 container\n"
    assert "no database 'doomed'" in refused(server, "rm", "doomed", "--yes")


def test_a_wrong_rm_deletes_nothing(server: RunningServer) -> None:
    assert run(server, "rm", "town", "1").exit_code == 2
    assert run(server, "rm", "town/people", "--partition-key", "Oslo", "--yes").exit_code == 2
    assert run(server, "rm").exit_code == 2
    assert "people" in out(server, "ls", "town")


# -- where the server is --------------------------------------------------------------------------------------


def test_a_connection_string_is_an_endpoint_with_its_key(server: RunningServer) -> None:
    for arguments, variables in (
        (["--endpoint", server.connection_string], {}),
        ([], {"PLEIAD_CONNECTION_STRING": server.connection_string}),
        (
            [],
            {"PLEIAD_CONNECTION_STRING": server.connection_string, "PLEIAD_KEY": "YW5vdGhlciBrZXkgb2YgMTY="},
        ),
    ):
        result = CliRunner().invoke(cli, ["ls", *arguments], env=variables)
        assert result.exit_code == 0, result.stderr
    wrong = ["--key", "YW5vdGhlciBrZXkgb2YgMTY=", "--endpoint", server.connection_string]
    assert "does not accept this key" in CliRunner().invoke(cli, ["ls", *wrong]).stderr


@pytest.mark.parametrize(
    "text",
    [
        "AccountEndpoint=;AccountKey=c2VjcmV0;",
        "AccountKey=c2VjcmV0;",
        "AccountEndpoint=http://localhost:1/;AccountKey=c2VjcmV0LXNlY3JldC1zZWNyZXQ=;",
        "AccountEndpoint=nonsense;AccountKey=c2VjcmV0LXNlY3JldC1zZWNyZXQ=;",
        "AccountEndpoint=http://localhost:1/;AccountKey=c2VjcmV0",
        "AccountEndpoint=http://localhost:1/;AccountKey=c2VjcmV0;AccountKey=c2VjcmV0",
        "AccountEndpoint=http://localhost:1/;c2VjcmV0",
    ],
)
def test_no_message_holds_the_key_of_a_connection_string(text: str) -> None:
    for verb in (["ls"], ["query", "a/b", "SELECT 1"], ["partitions"]):
        result = CliRunner().invoke(cli, [*verb, "--endpoint", text])
        assert result.exit_code != 0
        assert "Error: " in result.stderr
        assert "c2VjcmV0" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls"],
        ["show", "a"],
        ["create", "a"],
        ["get", "a/b", "1", "--partition-key", "x"],
        ["put", "a/b", '{"id": "1"}'],
        ["rm", "a/b", "1"],
        ["shell"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_missing_server_says_how_to_start_one(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, [*arguments, "--endpoint", "http://localhost:1"])
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: nothing listens at .* `pleiad serve`.*\n", result.stderr)


# -- at 80 columns ---------------------------------------------------------------------------------------------


def test_tables_fit_the_terminal(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pleiad.cli.view.item.terminal_columns", lambda: 80)
    long = {"id": "long", "city": "x" * 100, **{f"property{number}": "y" * 30 for number in range(20)}}
    out(server, "put", "town/people", json.dumps(long))
    for arguments in (
        ["ls"],
        ["ls", "town"],
        ["ls", "town/people"],
        ["partitions"],
        ["partitions", "town/people"],
    ):
        text = out(server, *arguments)
        assert all(width_of(line) <= 80 for line in text.splitlines()), text
    out(server, "rm", "town/people", "long")


def test_partitions_without_a_name_shows_all_containers(server: RunningServer) -> None:
    text = out(server, "partitions")
    assert re.search(r"^town/people +/city +1 +\d+ +\S+ (KB|bytes) +500 +\d+% +0$", text, re.MULTILINE), text
    assert re.search(r"^town/tenants +/tenant, /user +1 ", text, re.MULTILINE)
    told = json.loads(out(server, "partitions", "--json"))
    assert {(each["database"], each["container"]) for each in told} >= {
        ("town", "people"),
        ("shared", "inside"),
    }


def test_a_table_of_a_query_hides_what_the_system_adds(server: RunningServer) -> None:
    words = ("query", "town/people", "SELECT * FROM c WHERE c.id = '2'", "--format", "table")
    assert not any(name in out(server, *words) for name in SYSTEM)
    assert all(name in out(server, *words, "--system") for name in SYSTEM)
    named = out(server, "query", "town/people", "SELECT TOP 1 c._ts FROM c", "--format", "table")
    assert "_ts" in named
