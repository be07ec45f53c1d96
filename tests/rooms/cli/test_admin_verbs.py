"""The verbs of operators against a server that answers: partitions, split, merge, throughput, faults."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from click.testing import CliRunner, Result

from pleiad.cli.main import cli
from pleiad.cli.view.partition import Look, view
from pleiad.limits import Limits
from pleiad.testing.start import RunningServer
from tests import warm_command
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        client = CosmosClient(started.endpoint, started.key)
        database = client.create_database("town")
        for name in ("people", "cities"):
            container: Any = database.create_container(name, PartitionKey("/city"))
            for number in range(30):
                container.create_item({"id": str(number), "city": f"c{number % 10}", "text": "x" * 50})
        yield started


def run(server: RunningServer, *arguments: str) -> Result:
    environment = {"PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}
    return CliRunner().invoke(cli, arguments, env=environment)


def out(server: RunningServer, *arguments: str) -> str:
    result = run(server, *arguments)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


# -- partitions -----------------------------------------------------------------------------------------


def test_the_picture_of_a_container_has_partitions_and_notable_keys(server: RunningServer) -> None:
    text = out(server, "partitions", "town/people", "--top", "2")
    assert text.splitlines()[0] == "town/people   key /city   400 RU/s   1 physical partition"
    assert re.search(r"^0 +00-FF +30 +\d\.\d KB", text, re.MULTILINE)
    assert "\x1b" not in text
    for title in ("largest", "hottest"):
        section = text.partition(f"{title} logical partitions\n")[2].partition("\n\n")[0]
        assert len(section.splitlines()) == 2
        assert re.search(r'"c\d".*partition 0', section)


def test_json_is_what_the_server_tells(server: RunningServer) -> None:
    answer = json.loads(out(server, "partitions", "town/people", "--json"))
    assert answer["partitions"][0]["items"] == 30
    assert len(answer["largest"]) == 5
    assert answer["warnings"] == []


@pytest.mark.requirement("R151")
def test_uneven_bars_show_a_bad_key_and_even_bars_a_good_one() -> None:
    def bars(*sizes: int) -> list[int]:
        text = view(picture(*sizes), [], Look(100))
        return [len(bar) for bar in re.findall(r"^\d .*? [KM]B +(█*)", text, re.MULTILINE)]

    good, bad = bars(1000, 990, 1010), bars(10, 3000, 20)
    assert max(good) - min(good) <= 1
    assert bad[1] > 5 * max(bad[0], bad[2])
    assert min(bad) >= 1, "what is not empty shows"


def picture(*sizes: int) -> dict[str, Any]:
    partitions = [
        {
            "id": str(index),
            "minInclusive": f"{index:02X}" * 4,
            "maxExclusive": f"{index + 1:02X}" * 4,
            "parents": ["0", "1"],
            "items": size,
            "bytes": size * 1000,
            "ru": {"allowed": 400.0, "lastSecond": 120.4, "normalizedPercent": 95.0, "throttled": 7},
        }
        for index, size in enumerate(sizes)
    ]
    key = ["東京" * 30, {}]
    return {
        "database": "d\x1b[2J",
        "container": "c",
        "partitionKey": ["/a", "/b"],
        "throughput": {"ru": 1200, "autoscale": True, "shared": False},
        "partitions": partitions,
        "history": [{"id": "0"}],
        "largest": [{"key": key, "partition": "0", "items": 1, "bytes": 5, "percent": 70.0}],
        "hottest": [{"key": [1.5, None], "partitions": ["0"], "ruPerSecond": 3.25}],
    }


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100, 200])
def test_the_picture_fits_the_terminal_and_never_steers_it(columns: int) -> None:
    from pleiad.cli.view.table import width_of

    warnings = [{"message": "A long warning about \x1b[31m something. " * 5}]
    text = view(picture(5, 100), warnings, Look(columns))
    assert all(width_of(line) <= columns for line in text.splitlines()), text
    assert "\x1b" not in text
    assert "95%" in text
    if columns >= 100:
        assert "120 of 400" in text
        assert re.search(r"░ +7 +0,1$", text, re.MULTILINE)


def test_colours_are_for_terminals_and_letters_for_those_that_have_them() -> None:
    assert "\x1b[31m" in view(picture(5, 100), [], Look(100, colours=True))
    text = view(picture(5, 100), [], Look(60, blocks=("#", "."), cut="~"))
    assert "####" in text
    assert "█" not in text


def test_watching_goes_on_until_it_is_stopped(server: RunningServer) -> None:
    command = [
        *warm_command.words(),
        "partitions",
        "town/people",
        "--watch",
        "--interval",
        "0.2",
        "--json",
    ]
    environment = {**os.environ, "PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    looks = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, stderr
    assert [look["partitions"][0]["items"] for look in looks] == [30, 30, 30]
    assert all(look["largest"] for look in looks)


# -- split and merge ------------------------------------------------------------------------------------


def test_a_partition_is_split_and_its_halves_are_merged_again(server: RunningServer) -> None:
    text = out(server, "split", "town/cities")
    assert re.match(r"split 0 into 1 \(\d+ items\) and 2 \(\d+ items\)\ndone: ", text)
    listing = out(server, "partitions", "town/cities", "--top", "0")
    assert "2 physical partitions" in listing
    assert "split or merged before: 0" in listing
    refused = run(server, "split", "town/cities")
    assert (refused.exit_code, "Name the 'partition'" in refused.stderr) == (1, True)
    assert "merged 1, 2 into 3 (30 items)" in out(server, "merge", "town/cities", "1", "2")


def test_a_merge_of_one_is_a_mistake_of_the_command(server: RunningServer) -> None:
    result = run(server, "merge", "town/people", "0")
    assert result.exit_code == 2
    assert "two or more" in result.stderr


# -- throughput -----------------------------------------------------------------------------------------


def test_throughput_is_shown_and_set(server: RunningServer) -> None:
    assert out(server, "throughput", "town/people") == "400 RU/s\n"
    assert out(server, "throughput", "town/people", "1200") == "1,200 RU/s\n"
    assert (
        out(server, "throughput", "town/people", "--autoscale", "4000")
        == "autoscale from 400 to 4,000 RU/s\n"
    )
    assert "autoscale up to 4,000 RU/s" in out(server, "partitions", "town/people", "--top", "0")
    assert out(server, "throughput", "town/people", "400") == "400 RU/s\n"


def test_throughput_of_the_account_is_shown_without_a_name(
    server: RunningServer, start_server: StartServer
) -> None:
    assert out(server, "throughput") == "800 RU/s in all, without a limit\n"
    with start_server(limits=Limits(account_throughput_ru=4_000)) as limited:
        assert out(limited, "throughput") == "0 RU/s in all, of 4,000 RU/s at most\n"


def test_throughput_is_shared_out_among_partitions(server: RunningServer) -> None:
    assert out(server, "throughput", "town/people", "--partition", "0=400") == "partition 0: 400 RU/s\n"
    assert out(server, "throughput", "town/people", "--even") == "partition 0: 400 RU/s\n"
    wrong = run(server, "throughput", "town/people", "--partition", "0=300")
    assert (wrong.exit_code, "sum up to 300" in wrong.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--even"], 2, "name the database or container"),
        (["town", "--even"], 2, "name it as DB/CONTAINER"),
        (["town/people", "--partition", "0:5"], 2, "not of the form ID=RU"),
        (["town/people", "--partition", "0=400", "--even"], 2, "only one of"),
        (["town"], 1, "no throughput of its own"),
        (["town/people", "7"], 1, "minimum"),
        (["town/people", "0"], 2, "0 is not in the range"),
        (["town/people", "500", "--autoscale", "1000"], 2, "only one of"),
        (["town/people/more"], 2, "neither a database"),
        (["town/"], 2, "neither a database"),
        (["none/people"], 1, "no database 'none'"),
    ],
)
def test_wrong_throughput_is_told(server: RunningServer, arguments: list[str], code: int, text: str) -> None:
    result = run(server, "throughput", *arguments)
    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr


# -- faults ---------------------------------------------------------------------------------------------


def test_faults_are_set_listed_and_cleared(server: RunningServer) -> None:
    made = out(server, "faults", "add", "429", "--count", "3", "--on", "town/people", "--retry-after-ms", "5")
    assert re.match(
        r"fault \d+: 429, for 3 requests, on town/people, any operation on items, met 0 times", made
    )
    out(
        server,
        "faults",
        "add",
        "late",
        "--delay-ms",
        "7",
        "--share",
        "0.5",
        "--seed",
        "3",
        "--operation",
        "query",
    )
    lines = out(server, "faults", "list").splitlines()
    assert len(lines) == 2
    assert "late, after 7 ms, for 50% of requests (seed 3), operation query" in lines[1]
    number = json.loads(out(server, "faults", "list", "--json"))[1]["id"]
    assert out(server, "faults", "clear", number) == f"ended fault {number}\n"
    assert out(server, "faults", "clear") == "ended 1 fault\n"
    assert out(server, "faults", "list") == "no faults are set\n"
    assert run(server, "faults", "clear", "999").exit_code == 1


def test_a_hold_is_set_from_the_terminal(server: RunningServer) -> None:
    made = out(server, "faults", "add", "hold", "--phase", "fenced", "--on", "town/people")
    assert re.match(r"fault \d+: hold, splits and merges at fenced, on town/people, met 0 times", made)
    assert out(server, "faults", "clear") == "ended 1 fault\n"
    refused = run(server, "faults", "add", "hold")
    assert (refused.exit_code, "needs a 'phase'" in refused.stderr) == (1, True)


def test_a_fault_set_from_the_terminal_meets_requests(server: RunningServer) -> None:
    out(server, "faults", "add", "449", "--on", "town/people", "--operation", "query")
    result = run(server, "query", "town/people", "SELECT * FROM c")
    assert result.exit_code == 1
    assert "449" in result.stderr
    assert run(server, "query", "town/people", "SELECT * FROM c").exit_code == 0


# -- when there is no answer ------------------------------------------------------------------------------

VERBS = [
    ["partitions", "town/people"],
    ["split", "town/people"],
    ["merge", "town/people", "0", "1"],
    ["throughput", "town/people"],
    ["faults", "list"],
]


@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: arguments[0])
def test_a_server_that_is_not_there_and_a_wrong_key_are_one_message(
    server: RunningServer, arguments: list[str]
) -> None:
    nobody = CliRunner().invoke(cli, [*arguments, "--endpoint", "http://localhost:1"])
    assert (nobody.exit_code, "nothing listens at http://localhost:1" in nobody.stderr) == (1, True)
    wrong = run(server, *arguments, "--key", "YW5vdGhlciBrZXkgb2YgMTY=")
    assert (wrong.exit_code, "does not accept this key" in wrong.stderr) == (1, True)
    unusable = run(server, *arguments, "--key", "???")
    assert (unusable.exit_code, "the key cannot be used" in unusable.stderr) == (1, True)


@pytest.mark.parametrize("verb", ["partitions", "split"])
def test_an_unknown_container_is_told(server: RunningServer, verb: str) -> None:
    result = run(server, verb, "town/nowhere")
    assert (result.exit_code, result.stderr) == (1, "Error: There is no container 'nowhere'.\n")
    assert run(server, verb, "town").exit_code == 2


@pytest.mark.parametrize("verb", ["partitions", "split", "merge", "throughput", "faults"])
def test_every_verb_has_help_with_examples(verb: str) -> None:
    result = CliRunner().invoke(cli, [verb, "--help"])
    assert "Examples:" in result.output
    listed = CliRunner().invoke(cli, ["--help"]).output
    assert re.search(rf"^  {verb} ", listed, re.MULTILINE)
