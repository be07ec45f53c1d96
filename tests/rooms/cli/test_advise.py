"""`pleiad advise` on files and on a server: what is shown, and what bad input is told."""

from __future__ import annotations

import importlib.util
import json
import re
import tracemalloc
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from click.testing import CliRunner, Result

from pleiad.cli.main import cli
from pleiad.cli.view.table import width_of
from pleiad.job.item_file.form import Compression, Form
from pleiad.job.item_file.writer import writing_items
from pleiad.testing.start import RunningServer
from tests.stores import StartServer

ITEMS: list[dict[str, Any]] = [
    {
        "id": f"order-{n}",
        "tenantId": "giant" if n % 3 else f"t{n % 97}",
        "userId": f"user-{n % 251}",
        "at": f"2025-{1 + n // 100 % 12:02d}-{1 + n // 30 % 28:02d}T{n % 24:02d}:00:00Z",
        "open": bool(n % 2),
        "address": {"city": f"city-{n % 40}"},
    }
    for n in range(1200)
]


def run(*words: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["advise", *words, "--quiet"], input=input)


def report(*words: str, input: str | None = None) -> dict[str, Any]:
    result = run(*words, "--json", input=input)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "orders.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in ITEMS), encoding="utf-8")
    return path


def test_candidates_are_found_by_themselves(file: Path) -> None:
    keys = {each["key"] for each in report(str(file))["candidates"]}
    assert {"/id", "/tenantId", "/userId", "/open", "/address/city"} <= keys
    assert {"day(/at)", "month(/at)"} <= keys
    assert any("," in key and key.startswith("/") for key in keys), "a hierarchical one"
    assert any(key.startswith("concat(") for key in keys)
    assert any(key.startswith("suffix(") for key in keys)
    assert any(key.startswith("random(") for key in keys)


@pytest.mark.requirement("R75", "R151")
def test_the_table_fits_a_terminal_and_the_bad_key_stands_beside_the_good_one(file: Path) -> None:
    result = run(str(file))
    assert result.exit_code == 0
    assert max(width_of(line) for line in result.output.splitlines()) <= 80
    assert "best fit" in result.output
    assert "bad fit" in result.output
    assert "giant" in result.output


@pytest.mark.parametrize("form", [Form.JSON, Form.CSV, Form.PARQUET])
def test_every_form_of_file_gives_the_same_measures(file: Path, tmp_path: Path, form: Form) -> None:
    other = tmp_path / f"orders.{form.value}"
    with writing_items(other, form, Compression.NONE, ",") as writer:
        writer.write(ITEMS)
    wanted = ("--candidates", "/tenantId /userId /id /tenantId,/userId")
    first, second = report(str(file), *wanted), report(str(other), *wanted)
    assert first["items"] == second["items"] == len(ITEMS)
    for one, same in zip(first["candidates"], second["candidates"], strict=True):
        assert one["key"] == same["key"]
        assert one["measures"]["items"] == same["measures"]["items"]


def test_json_has_every_measure_and_every_number_of_partitions(file: Path) -> None:
    found = report(str(file), "--candidates", "/tenantId")["candidates"][0]
    assert [each["physical"] for each in found["simulations"]] == [1, 2, 4, 8, 16, 32, 64]
    assert found["measures"].keys() >= {
        *("distinct", "cardinalityRatio", "coverage", "nullShare", "items", "storage", "ru", "ruTopShareP99"),
        *("writtenValues", "writtenEffective", "monotonicity", "routed", "transactionFit", "changedShare"),
        *("keyBytesMax", "typeShares", "unsafeNumberShare", "idCollisions"),
    }
    assert found["simulations"][0].keys() >= {
        *("neededRu", "refused", "usable", "fanOutTaxRu", "storageBytes", "storageImbalance", "ruImbalance"),
        *("normalizedP99", "ru"),
    }
    assert len(found["topValues"]) == 10
    assert found["topValues"][0]["label"] == "giant"
    assert found["partitionKey"] == {"paths": ["/tenantId"], "kind": "Hash", "version": 2}


def test_long_values_of_a_hierarchical_key_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    group = "Vegetables and Vegetable Products"
    file.write_text("".join(json.dumps({"id": f"{n:05}", "group": group}) + "\n" for n in range(200)))
    shown = run(str(file), "--candidates", "/group,/id").stdout
    values = re.findall(r"^  (Vegetables\S*\s?\S*…\S* / \d{5}) ", shown, re.MULTILINE)
    assert len(values) == len(set(values)) == 10


def test_every_reason_against_a_key_is_told_in_whole(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    items = [{"id": str(n), "key": f"k{n}", "long": "x" * 3000 + str(n // 2)} for n in range(200)]
    items += [
        {"id": str(n), "key": f"more{n}", "long": "x" * 3000 + str(n // 2), "rare": str(n)} for n in range(20)
    ]
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    shown = " ".join(run(str(file), "--candidates", "/key /long /rare").stdout.split())
    for reason in (
        "Its longest value has 3,002 bytes, and a key has at most 2,048.",
        "20 items would have the id of another one in the same logical partition.",
        "It is missing in 91 % of the items, which would all be in one logical partition.",
    ):
        assert reason in shown


def test_queries_decide_which_key_is_best(file: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("# the shop\n40 SELECT * FROM c WHERE c.userId = @user\n5 create\n", encoding="utf-8")
    found = report(str(file), "--queries", str(queries))
    assert found["workload"]["basis"] == "queries"
    assert "/userId" in found["candidates"][0]["key"]
    routed = {each["key"]: each["measures"]["routed"]["requests"] for each in found["candidates"]}
    assert routed["/userId"]["everywhere"] == 0
    assert routed["/id"]["everywhere"] > 0.8


def test_a_workload_record_of_ones_own_is_enough(file: Path, tmp_path: Path) -> None:
    lines = [
        {"at": n / 20, "operation": "query", "equals": {"/address/city": [f"city-{n % 40}"]}, "charge": 5.3}
        for n in range(2000)
    ]
    record = tmp_path / "requests.jsonl"
    record.write_text("".join(json.dumps(line) + "\n" for line in lines) + "broken\n", encoding="utf-8")
    found = report(str(file), "--workload", str(record))
    assert found["workload"] | {"basis": "record", "tried": 2000} == found["workload"]
    assert "/address/city" in found["candidates"][0]["key"]
    assert any("line 2001" in note for note in found["notes"]), "a line that is no request is told"


def test_prices_and_throughput_are_those_that_are_given(file: Path) -> None:
    words = (str(file), "--candidates", "/id", "--throughput", "20000")
    plain = report(*words)
    dear = report(*words, "--prices", "ru-hour=0.016,gb-month=0.25,currency=EUR")
    assert plain["throughputRu"] == 20_000
    assert dear["prices"]["currency"] == "EUR"
    assert dear["candidates"][0]["costMonth"] == pytest.approx(
        2 * plain["candidates"][0]["costMonth"], rel=0.01
    )


def test_growth_is_a_factor_or_years(file: Path) -> None:
    assert report(str(file), "--candidates", "/id", "--growth", "10")["growth"] == 10
    assert report(str(file), "--candidates", "/id", "--growth", "5y")["growth"] > 5


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.requirement("R150", "R151", "R153")
def test_the_page_needs_nothing_else_and_no_value_becomes_markup(tmp_path: Path) -> None:
    hostile = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    items = [
        {**item, "tenantId": hostile if item["tenantId"] == "giant" else item["tenantId"]} for item in ITEMS
    ]
    file, page = tmp_path / "a<b>.jsonl", tmp_path / "advice.html"
    file.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    assert run(str(file), "--candidates", "/tenantId /userId", "--html", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    names = {name for name, _ in tags.found}
    assert names.isdisjoint({"script", "img", "link", "iframe", "object"})
    assert not any(
        name.startswith("on") or name in ("src", "href") for _, given in tags.found for name in given
    )
    assert "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)" in text
    assert re.search(r"https?://", text) is None
    for heading in (
        "by physical partition",
        "Data by physical partition",
        "Heat over time",
        "Hottest values",
    ):
        assert heading in text


def test_a_page_that_cannot_be_written_costs_nobody_the_report(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *words: Any, **options: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = run(str(file), "--html", str(tmp_path / "advice.html"))
    assert result.exit_code == 1
    assert "best fit" in result.stdout
    assert "advice.html cannot be written: No space left on device" in result.stderr


def test_a_terminal_is_not_steered_by_values(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text(
        "".join(json.dumps({"id": str(n), "a": "\x1b[2J\x07" + str(n % 3)}) + "\n" for n in range(300))
    )
    result = run(str(file))
    assert result.exit_code == 0
    assert "\x1b" not in result.output


# -- bad input -------------------------------------------------------------------------------------


def test_broken_lines_are_told_and_the_rest_counts(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    good = [json.dumps(item) for item in ITEMS[:200]]
    file.write_text("\n".join([*good[:10], "{broken", '["array"]', *good[10:], ""]), encoding="utf-8")
    found = report(str(file), "--candidates", "/tenantId")
    assert found["items"] == 200
    assert found["problemCount"] == 2
    assert found["problems"][0].startswith("line 11: not JSON")
    assert found["problems"][1].startswith("line 12: an item is a JSON object")
    assert "Passed over 2 entries" in run(str(file), "--candidates", "/tenantId").output


def test_a_file_with_semicolons_asks_for_its_delimiter_and_one_without_a_name_for_its_form(
    tmp_path: Path,
) -> None:
    file = tmp_path / "items.csv"
    file.write_text("id;tenant\n" + "".join(f"{n};t{n % 9}\n" for n in range(200)))
    guessed = run(str(file))
    assert guessed.exit_code == 1
    assert "line 1: there is one column, 'id;tenant': give --delimiter ';'" in guessed.output
    found = report(str(file), "--delimiter", ";", "--candidates", "/tenant")
    assert found["candidates"][0]["measures"]["distinct"] == 9
    one_column = report(str(file), "--delimiter", ",")["candidates"]
    assert '/"id;tenant"' in [each["key"] for each in one_column]
    nameless = file.rename(tmp_path / "items")
    assert "give --format with" in run(str(nameless)).output
    assert report(str(nameless), "--format", "csv", "--delimiter", ";")["items"] == 200


def test_a_gigantic_item_is_told_and_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    lines = [json.dumps(item) for item in ITEMS[:100]]
    lines.insert(3, json.dumps({"id": "large", "text": "x" * 3_000_000}))
    file.write_text("\n".join(lines), encoding="utf-8")
    found = report(str(file), "--candidates", "/tenantId")
    assert found["items"] == 100
    assert found["problems"] == ["line 4: the item has 2.9 MB, and a container takes 2 MB"]


def test_mixed_types_are_told(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(json.dumps({"id": str(n), "a": n if n % 2 else str(n)}) for n in range(200)))
    (found,) = report(str(file), "--candidates", "/a")["candidates"]
    assert found["measures"]["typeShares"] == {"number": 0.5, "text": 0.5}
    assert any("several types" in reason["text"] for reason in found["reasons"])


@pytest.mark.parametrize(
    ("text", "said"), [("", "has no items"), ("{\n", "line 1: not JSON"), ("\n\n", "has no items")]
)
def test_a_file_without_items_says_so(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text(text)
    result = run(str(file))
    assert result.exit_code == 1
    assert said in result.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere.jsonl"], 1, "nowhere.jsonl cannot be read"),
        (["a/b/c"], 1, "there is no file a/b/c"),
        (
            ["FILE", "--candidates", "/nowhere"],
            1,
            "at /nowhere; there are /id, /at, /userId, /tenantId, /address/city, /open\n",
        ),
        (["FILE", "--candidates", "nowhere"], 2, "is no path of a property"),
        (["FILE", "--growth", "much"], 2, "neither a factor"),
        (["FILE", "--prices", "free"], 2, "is no price"),
        (["FILE", "--queries", "none.txt"], 1, "none.txt cannot be read"),
        (["FILE", "--queries", "q", "--workload", "w"], 2, "only one of"),
        (["FILE", "--throughput", "0"], 2, "--throughput"),
        (["FILE", "--throughput", "nan"], 2, "--throughput"),
        (["FILE", "--throughput", "inf"], 2, "--throughput"),
        (["FILE", "--html", "nowhere/advice.html"], 2, "there is no directory nowhere"),
        (["FILE", "--html", "."], 2, "--html"),
    ],
)
def test_what_is_wrong_is_said(file: Path, words: list[str], code: int, said: str) -> None:
    result = run(*[str(file) if word == "FILE" else word for word in words])
    assert result.exit_code == code
    assert said in result.output


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("SELECT * FROM c", "begins with a rate"),
        ("0 read", "a rate is above 0"),
        (
            "5 SELECT * FORM c",
            "line 2: Syntax error, incorrect syntax near 'FORM'. (at character 10 of the query)\n",
        ),
        ("1e300 read", "at most 1,000,000,000"),
        (
            '{"rate": 1, "query": "SELECT 1", "parameters": [5]}',
            "line 2: each of the parameters has a 'name'",
        ),
        (
            '{"rate": 1, "query": "SELECT 1", "parameters": [{"name": []}]}',
            "line 2: each of the parameters has a 'name'",
        ),
        ('{"rate": "x", "query": "SELECT 1"}', "a 'rate'"),
        ("# nothing", "no query in it"),
    ],
)
def test_a_file_of_queries_tells_its_mistakes(file: Path, tmp_path: Path, line: str, said: str) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text(f"\n{line}\n")
    result = run(str(file), "--queries", str(queries))
    assert result.exit_code == 1
    assert said in result.output


def test_a_path_that_queries_compare_and_no_item_has_is_told(file: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("5 SELECT * FROM c WHERE c.tenantID = @t AND c.userId = @u\n")
    notes = report(str(file), "--queries", str(queries))["notes"]
    assert "No item has a value at /tenantID, which queries compare." in notes


# -- a server --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        container = (
            CosmosClient(started.endpoint, started.key)
            .create_database("shop")
            .create_container("orders", PartitionKey("/tenantId"), offer_throughput=900)
        )
        for item in ITEMS[:300]:
            container.create_item(item)
        yield started


def test_a_container_is_advised_on_with_its_own_requests(server: RunningServer) -> None:
    where = ("--endpoint", server.endpoint, "--key", server.key)
    plain = report("shop/orders", *where)
    assert plain["workload"]["basis"] == "uniform"
    assert plain["throughputRu"] == 900
    switched = CliRunner().invoke(cli, ["workload", "on", "shop/orders", *where])
    assert switched.exit_code == 0, switched.output
    container = (
        CosmosClient(server.endpoint, server.key).get_database_client("shop").get_container_client("orders")
    )
    for item in ITEMS[:60]:
        container.read_item(item["id"], item["tenantId"])
        list(
            container.query_items(
                "SELECT * FROM c WHERE c.userId = @user",
                parameters=[{"name": "@user", "value": item["userId"]}],
                enable_cross_partition_query=True,
            )
        )
    found = report("shop/orders", *where)
    assert found["items"] == 300
    assert found["workload"]["basis"] == "record"
    assert found["workload"]["tried"] >= 120
    assert found["workload"]["joinedShare"] == 1
    (current,) = [each for each in found["candidates"] if each["isCurrent"]]
    assert current["key"] == "/tenantId"
    by_user = next(each for each in found["candidates"] if each["key"] == "/userId")
    assert by_user["measures"]["routed"]["requests"]["single"] >= 0.4


def test_what_is_read_for_an_advice_is_no_part_of_the_workload(server: RunningServer) -> None:
    where = ("--endpoint", server.endpoint, "--key", server.key)
    container = (
        CosmosClient(server.endpoint, server.key)
        .get_database_client("shop")
        .create_container("advised", PartitionKey("/tenantId"))
    )
    for item in ITEMS[:120]:
        container.create_item(item)
    CliRunner().invoke(cli, ["workload", "on", "shop/advised", *where])
    container.read_item(ITEMS[0]["id"], ITEMS[0]["tenantId"])
    first = report("shop/advised", *where)
    assert first["workload"]["operations"] == {"read": 1}
    assert "and 1 request in 1 second." in first["detail"]
    assert report("shop/advised", *where)["workload"]["operations"] == {"read": 1}


def test_a_container_that_is_not_there_is_told(server: RunningServer) -> None:
    result = run("shop/nothing", "--endpoint", server.endpoint, "--key", server.key)
    assert result.exit_code == 1
    assert "no container of that name" in result.output


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numpy" else found(name))
    refused = run("items.jsonl", "--growth", "2")
    assert refused.exit_code == 1
    assert "pip install numpy msgspec datasketches" in refused.output


def _record(path: Path, *more: dict[str, Any]) -> str:
    """A record of requests within a minute, and others."""
    usual = [
        {"at": 1_763_400_000 + n, "operation": "read", "key": [f"user-{n}"], "id": f"order-{n}", "charge": 1}
        for n in range(50)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in (*usual, *more)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"at": 1_763_400_000_000, "operation": "read"}, "'at' must be a number of seconds since 1970"),
        ({"at": 1e300, "operation": "read"}, "'at' must be a number of seconds since 1970"),
        ({"at": 1_763_400_000, "operation": "read", "charge": 1e308}, "'charge' must be a number"),
        ({"at": 1, "operation": "read"}, "1 request of more than a day before the newest"),
    ],
)
def test_requests_of_impossible_times_and_charges_are_told_and_the_rest_counts(
    file: Path, tmp_path: Path, line: dict[str, Any], said: str
) -> None:
    found = report(str(file), "--workload", _record(tmp_path / "r.jsonl", line))
    assert found["workload"]["tried"] == 50
    assert any(said in note for note in found["notes"])


@pytest.mark.parametrize("path", ["/<img src=x>", "/", "//a", "/a" * 5_000])
def test_paths_of_a_record_that_lead_to_no_property_are_passed_over(
    file: Path, tmp_path: Path, path: str
) -> None:
    query = {"at": 1_763_400_000, "operation": "query", "equals": {path: ["x"]}, "ranges": [path]}
    assert report(str(file), "--workload", _record(tmp_path / "r.jsonl", query))["workload"]["tried"] == 51


def test_queries_on_many_paths_are_counted_by_path_and_take_little_memory(file: Path, tmp_path: Path) -> None:
    at = 1_763_400_000
    queries: list[dict[str, Any]] = [
        {"at": at, "operation": "query", "equals": {f"/settings/user{n}": ["on"]}} for n in range(200)
    ]
    queries += [
        {"at": at, "operation": "query", "equals": {"/address/city": [f"city-{n % 40}"]}} for n in range(100)
    ]
    tracemalloc.start()
    found = report(str(file), "--workload", _record(tmp_path / "r.jsonl", *queries), "--throughput", "4000")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found["workload"]["tried"] == 350
    assert "/address/city" in {each["key"] for each in found["candidates"]}
    assert most_bytes < 40 << 20
