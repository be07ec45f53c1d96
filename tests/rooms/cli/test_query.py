"""`pleiad query` against a server that answers: what stands on standard output, and what beside it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pleiad.cli import query as query_verb
from pleiad.cli.main import cli
from pleiad.cli.view.table import json_text, shown, table
from pleiad.client.connection import Answer, Connection, ConnectionFailedError
from pleiad.testing.start import RunningServer
from tests.project import ROOT
from tests.stores import StartServer

PEOPLE = [
    {"id": "1", "city": "Oslo", "age": 31, "name": "Ada"},
    {"id": "2", "city": "Lima", "age": 7, "name": "Bo"},
    {"id": "3", "city": "Oslo", "age": 64, "name": "Cy", "tags": ["x"]},
]


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        yield started


@pytest.fixture(scope="module")
def people(server: RunningServer) -> str:
    """A container with three people in two logical partitions; its name has a blank."""
    create(server, ["dbs"], "dbs", [], {"id": "town"})
    definition = {"id": "the people", "partitionKey": {"paths": ["/city"], "kind": "Hash", "version": 2}}
    create(server, ["dbs", "town", "colls"], "colls", ["dbs", "town"], definition)
    link = ["dbs", "town", "colls", "the people"]
    for person in PEOPLE:
        key = {"x-ms-documentdb-partitionkey": json.dumps([person["city"]])}
        create(server, [*link, "docs"], "docs", link, person, key)
    return "town/the people"


def create(
    server: RunningServer,
    path: list[str],
    resource_type: str,
    link: list[str],
    value: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> None:
    with Connection(server.endpoint, server.key) as connection:
        answer = connection.request(
            "POST", path, resource_type, link, headers or {}, json.dumps(value).encode()
        )
        assert answer.status == 201, answer.body


def run(server: RunningServer, *arguments: str, text: str | None = None) -> Result:
    environment = {"PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}
    return CliRunner().invoke(cli, ["query", *arguments], env=environment, input=text)


def test_results_go_out_as_one_json_line_each_when_nobody_watches(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT c.id, c.age FROM c WHERE c.city = 'Oslo'")
    assert result.exit_code == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted(found, key=str) == [{"id": "1", "age": 31}, {"id": "3", "age": 64}]


def test_the_summary_tells_items_pages_charge_and_partitions(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT * FROM c", "--max-items", "2")
    assert re.fullmatch(r"3 items, 2 pages, \d+\.\d\d RU, 1 physical partition \(0\)\n", result.stderr)


def test_a_table_has_a_heading_and_aligned_columns(server: RunningServer, people: str) -> None:
    query = "SELECT c.name, c.age FROM c WHERE c.city = 'Oslo'"
    result = run(server, people, query, "--format", "table")
    heading, rule, *rows = result.stdout.splitlines()
    assert (heading, rule) == ("name  age", "----  ---")
    assert sorted(rows) == ["Ada    31", "Cy     64"]


def test_results_that_are_no_rows_are_json_in_a_table_too(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT c.tags FROM c WHERE c.id = '3'", "--format", "table")
    assert json.loads(result.stdout) == [{"tags": ["x"]}]


def test_a_single_value_is_a_line_of_its_own(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT VALUE COUNT(1) FROM c", "--format", "table")
    assert result.stdout == "3\n"


def test_the_json_form_is_one_array_even_when_it_is_empty(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT * FROM c WHERE c.id = 'nobody'", "--format", "json")
    assert json.loads(result.stdout) == []
    assert result.stderr.startswith("0 items, 1 page, ")


def test_parameters_are_json_with_or_without_the_at_sign(server: RunningServer, people: str) -> None:
    query = "SELECT VALUE c.name FROM c WHERE c.age > @least AND c.city = @city"
    result = run(server, people, query, "--parameter", "least=40", "--parameter", '@city="Oslo"')
    assert result.stdout == '"Cy"\n'


def test_a_partition_key_confines_the_query_to_its_logical_partition(
    server: RunningServer, people: str
) -> None:
    for given in ('"Lima"', "Lima", '["Lima"]'):
        result = run(server, people, "SELECT VALUE c.name FROM c", "--partition-key", given)
        assert result.stdout == '"Bo"\n'


def test_the_limit_stops_early_and_says_that_there_is_more(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT * FROM c", "--limit", "2")
    assert len(result.stdout.splitlines()) == 2
    assert "there are more: --limit N or --all" in result.stderr
    everything = run(server, people, "SELECT * FROM c", "--limit", "2", "--max-items", "1", "--all")
    assert len(everything.stdout.splitlines()) == 3
    assert "there are more" not in everything.stderr


def test_the_query_can_come_from_standard_input(server: RunningServer, people: str) -> None:
    result = run(server, people, "-", text="SELECT VALUE c.age\nFROM c\nWHERE c.id = '2'")
    assert result.stdout == "7\n"


def test_explain_tells_charge_partitions_indexes_and_what_was_loaded(
    server: RunningServer, people: str
) -> None:
    result = run(server, people, "SELECT * FROM c WHERE c.age > 10", "--explain", "--max-items", "1")
    assert result.exit_code == 0, result.stderr
    told = result.stderr
    pages = [float(charge) for charge in re.findall(r"page \d+ +([\d.]+) RU", told)]
    total = re.search(r"pages?, ([\d.]+) RU", told)
    assert total is not None
    assert sum(pages) == pytest.approx(float(total.group(1)), abs=0.005)
    parts = [float(charge) for charge in re.findall(r"^  (?!page)\D+ ([\d.]+) RU$", told, re.MULTILINE)]
    assert sum(parts) == pytest.approx(sum(pages), abs=0.02)
    assert "physical partitions visited\n  0\n" in told
    assert "indexes used\n  /age/?\n" in told
    assert re.search(r"loaded +2 items", told)
    assert re.search(r"returned +2 items", told)


def test_explain_names_the_index_that_would_help(server: RunningServer) -> None:
    definition = {
        "id": "plain",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/size/?"}]},
    }
    create(server, ["dbs"], "dbs", [], {"id": "help"})
    create(server, ["dbs", "help", "colls"], "colls", ["dbs", "help"], definition)
    result = run(server, "help/plain", "SELECT * FROM c WHERE c.size = 1", "--explain")
    assert "indexes that would help\n  /size/?   high impact\n" in result.stderr


def test_explain_says_why_a_query_fans_out_and_what_50_partitions_would_cost(
    server: RunningServer, people: str
) -> None:
    wide = " ".join(
        run(server, people, "SELECT * FROM c WHERE CONTAINS(c.id, '1')", "--explain").stderr.split()
    )
    assert "the way it takes The filter does not name /city" in wide
    assert "With 50 physical partitions it would go to all of them and cost 122.50 RU more" in wide
    assert "advice CONTAINS looks into every value" in wide
    one = run(server, people, "SELECT * FROM c", "--partition-key", "a", "--explain").stderr
    assert "The request names the partition key, so it goes to one physical partition." in " ".join(
        one.split()
    )
    assert "would cost the same" in " ".join(one.split())
    plain = run(server, people, "SELECT * FROM c")
    assert "the way it takes" not in plain.stderr


def test_a_syntax_error_is_marked_where_it_is(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT *\nFROM c\nWHERE c.age >> 1 AND\n  c.id = = 2")
    assert result.exit_code == 1
    assert result.stdout == ""
    message, line, mark = result.stderr.splitlines()
    assert message.startswith("Error: SC1001: Syntax error, incorrect syntax near '")
    place = message.rpartition("near '")[2].removesuffix("'.")
    start = mark.index("^")
    assert set(mark[start:]) == {"^"}
    assert line[start : start + len(place)] == place


def test_any_other_refusal_gives_the_server_s_message(server: RunningServer, people: str) -> None:
    result = run(server, "town/nothing", "SELECT * FROM c")
    assert result.exit_code == 1
    assert re.match(r"Error: \w+ \(404\): .*nothing", result.stderr)
    assert "ActivityId" not in result.stderr


def test_a_wrong_key_is_refused_by_the_server_with_its_reason(server: RunningServer, people: str) -> None:
    result = run(server, people, "SELECT * FROM c", "--key", "bm90IHRoZSBrZXkgb2YgdGhpcyBhY2NvdW50")
    assert result.exit_code == 1
    assert "(401)" in result.stderr


def test_nothing_listening_is_said_in_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(cli, ["query", "a/b", "SELECT 1", "--endpoint", endpoint])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: nothing listens at {endpoint}: start a server with")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("sample", "SELECT 1"), "is not a database and a container"),
        (("a/b", "SELECT 1", "--parameter", "x"), "is not of the form name=JSON"),
        (("a/b", "SELECT 1", "--parameter", "x=Oslo"), "must be JSON"),
        (("a/b", "SELECT 1", "--parameter", "x=Oslo"), "a text keeps its quotes"),
        (("a/b", "SELECT 1", "--partition-key", '[["x"]]'), "each value of a partition key"),
        (("a/b", "SELECT 1", "--max-items", "0"), "--max-items"),
    ],
)
def test_a_wrong_command_is_refused_before_anything_is_sent(
    arguments: tuple[str, ...], complaint: str
) -> None:
    result = CliRunner().invoke(cli, ["query", *arguments, "--endpoint", "http://127.0.0.1:1"])
    assert result.exit_code == 2
    assert complaint in result.stderr


@pytest.mark.parametrize(
    "endpoint", ["", "localhost:8081", "ftp://localhost", "http://localhost:99999", "http://localhost/x"]
)
def test_an_endpoint_that_is_none_is_told_what_one_looks_like(endpoint: str) -> None:
    with pytest.raises(ConnectionFailedError, match="http://localhost:8081"):
        Connection(endpoint, "a2V5IGtleSBrZXkga2V5IGtleQ==")


def test_a_key_that_is_not_base64_is_refused() -> None:
    with pytest.raises(ConnectionFailedError, match="the key cannot be used"):
        Connection("http://localhost:8081", "not base64!")


def test_a_request_that_came_too_early_waits_and_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Answer(429, {"x-ms-retry-after-ms": "250"}, b""), Answer(200, {}, b"{}")]
    waits: list[float] = []
    monkeypatch.setattr(Connection, "_send", lambda *_: answers.pop(0))
    monkeypatch.setattr("pleiad.client.connection.time.sleep", waits.append)
    with Connection("http://localhost:8081", "a2V5IGtleSBrZXkga2V5IGtleQ==") as connection:
        assert connection.query(["dbs", "a", "colls", "b"], {"query": "SELECT 1"}, {}).status == 200
    assert waits == [0.25]


def test_an_answer_that_is_no_json_still_gives_its_status() -> None:
    assert query_verb.failure_text(Answer(502, {}, b"<html>"), "SELECT 1") == (
        "the server answered with status 502"
    )


def test_a_mark_in_a_long_line_shows_the_neighbourhood() -> None:
    text = "SELECT " + "c.a, " * 100 + "c.b FORM c WHERE " + "c.a AND " * 50
    start = text.index("FORM")
    line, mark = query_verb.marked(text, start, start + 4).splitlines()
    assert len(line) < 110
    assert line[mark.index("^") :].startswith("FORM")
    assert mark.count("^") == 4


def test_a_table_is_cut_to_the_width_of_the_terminal() -> None:
    rows = [{"id": index, "text": "long " * 30, "other": "x" * 50} for index in range(3)]
    text = table(rows, 60)
    assert text is not None
    assert {len(line) for line in text.splitlines()[1:]} == {60}
    assert text.splitlines()[0].split() == ["id", "text", "other"]
    whole = table(rows, None)
    assert whole is not None
    assert "x" * 50 in whole


def test_wide_letters_take_two_columns_in_a_table() -> None:
    text = table([{"a": "東京", "b": 1}, {"a": "x", "b": 2}], None)
    assert text == "a     b\n----  -\n東京  1\nx     2"


def test_a_missing_property_is_blank_and_null_is_null() -> None:
    assert table([{"a": 1}, {"a": 2, "b": None}], None) == "a  b\n-  ----\n1\n2  null"


def test_no_text_of_an_item_steers_the_terminal() -> None:
    evil = "\x1b[2J\x9b1m\x7f\u202e"
    for text in (shown(evil), json_text({"a": evil}), table([{"a": evil}], 80) or ""):
        assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert json.loads(json_text(evil)) == evil
    assert json.loads(json_text("\ud800")) == "\ud800"


def test_the_help_has_examples_and_every_option_with_its_variable() -> None:
    result = CliRunner().invoke(cli, ["query", "--help"])
    assert "Examples:" in result.output
    for word in ("PLEIAD_ENDPOINT", "PLEIAD_KEY", "--explain", "--partition-key", "--parameter"):
        assert word in result.output


def test_the_start_page_shows_only_options_that_exist() -> None:
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    section = page.partition("## Query from the terminal")[2].partition("\n## ")[0]
    assert section
    known = {"--help", *(name for parameter in query_verb.query.params for name in parameter.opts)}
    assert set(re.findall(r"--[a-z-]+", section)) <= known
