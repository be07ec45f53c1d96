"""`pleiad serve --log-requests` and `--slow-query-ms`: what stands in the log, and what never does."""

from __future__ import annotations

import json
import logging
import re
import threading
from datetime import datetime
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.cli.log_output import JsonFormatter, TextFormatter, WaitingLines
from pleiad.engine.watch.observer import Seen
from pleiad.engine.watch.request_log import RequestLog
from tests.project import ROOT
from tests.rooms.cli.test_serve import OWN_KEY, serving
from tests.waiting import SECONDS_MAX, wait_until

LINE = re.compile(r"^(\S+) ([A-Z]+) (\S+): (.*)$")


def at_work(port: int) -> None:
    """Requests of every kind that the tests look for."""
    client = CosmosClient(f"http://localhost:{port}", OWN_KEY)
    database = client.create_database("town")
    people: Any = database.create_container("people", PartitionKey("/city"))
    people.create_item({"id": "1", "city": "Oslo\nBergen"})
    people.read_item("1", "Oslo\nBergen")
    list(people.query_items("SELECT * FROM c WHERE c.age > @age", parameters=[{"name": "@age", "value": 4711}],
                            enable_cross_partition_query=True))  # fmt: skip
    with pytest.raises(CosmosHttpResponseError):
        people.read_item("none", "Oslo")
    with pytest.raises(CosmosHttpResponseError):
        CosmosClient(f"http://localhost:{port}", "bm90IHRoZSBrZXkgb2YgdGhpcyBhY2NvdW50")


def logged(*arguments: object) -> str:
    with serving("--ephemeral", "--port", 0, *arguments, PLEIAD_KEY=OWN_KEY) as server:
        at_work(server.port)
        code, _, complaints = server.stop()
    assert code == 0
    assert OWN_KEY not in complaints
    assert "sig%3d" not in complaints.lower()
    return complaints


def of_operation(entries: list[dict[str, Any]], operation: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["operation"] == operation]


def test_every_request_is_a_json_object_with_what_it_was_and_cost() -> None:
    entries = [json.loads(line) for line in logged("--log-requests", "--log-format", "json").splitlines()]
    assert {entry["logger"] for entry in entries} == {"pleiad.request"}
    assert all(datetime.fromisoformat(entry["time"]).tzinfo is not None for entry in entries)
    (created,) = of_operation(entries, "create")
    assert created["container"] == "town/people"
    assert json.loads(created["key"]) == ["Oslo\nBergen"]
    assert (created["partitions"], created["status"]) == (["0"], 201)
    assert created["ru"] > 0
    assert created["ms"] > 0
    assert sorted(entry["status"] for entry in of_operation(entries, "read")) == [200, 404]
    assert all(entry["partitions"] == ["0"] for entry in of_operation(entries, "read"))
    (asked,) = of_operation(entries, "query")
    assert (asked["partitions"], "key" in asked, "query" in asked) == (["0"], False, False)
    assert of_operation(entries, "create_container")[0]["container"] == "town"
    assert 401 in {entry["status"] for entry in entries}


def test_a_line_of_text_has_the_same_members() -> None:
    lines = [LINE.match(line) for line in logged("--log-requests").splitlines()]
    assert all(lines), "one line for each request, whatever its key is"
    (created,) = [found for found in lines if found and 'operation="create"' in found[4]]
    assert datetime.fromisoformat(created[1]).tzinfo is not None
    assert (created[2], created[3]) == ("INFO", "pleiad.request")
    assert 'container="town/people"' in created[4]
    assert "status=201" in created[4]


def test_slow_queries_are_logged_with_their_text_and_without_their_parameters() -> None:
    (line,) = logged("--slow-query-ms", 0, "--log-format", "json", "--log-level", "error").splitlines()
    entry = json.loads(line)
    assert (entry["logger"], entry["level"]) == ("pleiad.slow", "warning")
    assert entry["query"] == "SELECT * FROM c WHERE c.age > @age"
    assert "4711" not in line


def test_nothing_is_logged_of_requests_unless_it_is_asked_for() -> None:
    assert logged() == ""
    assert logged("--slow-query-ms", 3_600_000) == ""


# -- how lines are written --------------------------------------------------------------------------------------


class Held(logging.Handler):
    """A handler that takes nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.may.wait(SECONDS_MAX)
        self.records.append(record.getMessage())


def record(text: str, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord("pleiad.test", logging.WARNING, "", 0, text, None, None)
    made.__dict__.update(more)
    return made


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("pleiad.cli.log_output._LINES_WAITING_MAX", 5)
    return 5


def test_lines_that_nobody_reads_are_lost_and_counted_and_hold_up_nobody(few: int) -> None:
    held = Held()
    waiting = WaitingLines(held)
    for number in range(100):
        waiting.handle(record(f"line {number}"))
    held.may.set()
    assert wait_until(lambda: len(held.records) >= few)
    waiting.handle(record("last"))
    waiting.end()
    assert "line 0" in held.records
    (told,) = [text for text in held.records if "lost" in text]
    assert int(told.split()[0]) == 100 - sum(text.startswith("line") for text in held.records)


def test_a_message_is_one_json_object_too() -> None:
    told = json.loads(JsonFormatter().format(record('a "text"\nof two lines')))
    assert told["message"] == 'a "text"\nof two lines'
    assert (told["level"], told["logger"]) == ("warning", "pleiad.test")


def test_a_line_begins_with_the_time_and_its_zone() -> None:
    line = TextFormatter().format(record("something"))
    time, rest = line.split(" ", 1)
    assert datetime.fromisoformat(time).tzinfo is not None
    assert rest == "WARNING pleiad.test: something"


def test_the_members_of_the_log_are_documented() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    section = page.partition("\n## Logs\n")[2].partition("\n## ")[0]
    for member in ("operation", "container", "key", "partitions", "status", "ru", "ms", "activity", "query"):
        assert f"`{member}`" in section


@pytest.mark.parametrize("database", ["d\n\ud800", "d\u2028e", "d\u2029e\x85f", "d\u202ee"])
def test_no_client_makes_a_line_long_or_two(caplog: pytest.LogCaptureFixture, database: str) -> None:
    hostile = Seen(
        operation="query",
        activity_id="a" * 10_000,
        database=database,
        container="c\x1b[2J",
        key='["' + "k" * 10_000 + '"]',
        status=200,
        seconds=1.0,
        query="SELECT\r\n" + "x" * 10_000,
    )
    with caplog.at_level(logging.INFO):
        RequestLog(every=True, slow_seconds=0.5).saw(hostile)
    assert [record.name for record in caplog.records] == ["pleiad.request", "pleiad.slow"]
    for record in caplog.records:
        for line in (TextFormatter().format(record), JsonFormatter().format(record)):
            assert len(line) < 2_000
            assert all(letter.isprintable() for letter in line)
            line.encode()
