"""`pleiad copy` against a real server, and the commands of its page as they stand there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pleiad
from pleiad.cli.copy import copy, told_text
from pleiad.client.account import Account
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection, ConnectionFailedError
from pleiad.testing.start import RunningServer
from tests.project import ROOT
from tests.rooms.cli.test_commands_page import programs, run
from tests.rooms.cli.test_serve import serving

__all__ = ["programs"]
BLOCKS = re.findall(
    r"^```sh\n(.*?)^```", (ROOT / "docs/copy.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the page is written for bash")
def test_every_command_of_the_page_works(programs: Path) -> None:
    assert len(BLOCKS) >= 4
    with serving("--ephemeral", "--port", 0, "--sample") as server:
        for block in BLOCKS:
            done = run(block, programs, server.port)
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


@pytest.fixture
def server() -> Any:
    with pleiad.start() as started, Connection(started.endpoint, started.key) as connection:
        account = Account(connection)
        account.create_database("db")
        account.create_container("db", {"id": "a", "partitionKey": {"paths": ["/pk"], "version": 2}}, None)
        yield started


def asked(server: RunningServer, *arguments: str) -> Result:
    return CliRunner().invoke(copy, [*arguments, "--endpoint", server.endpoint, "--key", server.key])


def test_a_copy_is_begun_watched_and_listed(server: RunningServer) -> None:
    done = asked(server, "db/a", "db/b", "--partition-key", "/x,/y", "--json")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["state"], told["partitionKey"]) == ("done", ["/x", "/y"])
    listed = asked(server, "--list")
    assert told["id"] in listed.stdout
    assert told_text(told).startswith("copied 0 items from db/a to db/b")


def test_an_online_copy_waits_until_it_is_completed(server: RunningServer) -> None:
    begun = asked(server, "db/a", "db/b", "--online")
    assert "has caught up and follows" in begun.stdout
    (id,) = re.findall(r"--complete (\w+)", begun.stdout)
    assert "is running" not in asked(server, "--complete", id).stdout
    assert json.loads(asked(server, "--status", id, "--json").stdout)["state"] == "done"


def test_an_online_copy_is_cancelled(server: RunningServer) -> None:
    begun = asked(server, "db/a", "db/b", "--online", "--no-wait", "--json")
    id = json.loads(begun.stdout)["id"]
    assert asked(server, "--cancel", id).stdout.strip().endswith("is cancelled")
    again = asked(server, "--cancel", id)
    assert again.exit_code == 1
    assert "is over: it is cancelled" in again.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "give a source and a target"),
        (["db/a"], 2, "give a source and a target"),
        (["db/a", "b"], 2, "is not a database and a container"),
        (["db/a", "db/b", "--list"], 2, "give a source and a target"),
        (["db/a", "db/b", "--set", "nonsense"], 2, "is not a path and an expression"),
        (["db/a", "db/b", "--ttl", "soon"], 2, "neither a number of seconds"),
        (["db/a", "db/b", "--throughput", "400", "--shared"], 2, "give only one of"),
        (["db/a", "db/b", "--share", "2"], 2, "2"),
        (["db/a", "db/b", "--share", "nan"], 2, "no number from 0.01 to 1"),
        (
            ["db/a", "db/b", "--set", "/k=CONCAT("],
            1,
            "'CONCAT(' for /k is no expression over the item c: Syntax",
        ),
        (["db/a", "db/a"], 1, "are the same container"),
        (["db/a", "db/b", "--partition-key", "/x,/x"], 1, "its paths must all be different"),
        (["db/none", "db/b"], 1, "There is no container 'none'"),
        (["db/a", "db/b", "--set", "/k=NO_SUCH(c)"], 1, "NO_SUCH"),
        (["--status", "nonsense"], 1, "There is no copy 'nonsense'"),
        (["--cancel", "nonsense"], 1, "There is no copy 'nonsense'"),
    ],
)
def test_what_cannot_be_is_told(server: RunningServer, arguments: list[str], code: int, said: str) -> None:
    done = asked(server, *arguments)
    assert done.exit_code == code
    assert said in done.output


def test_who_watches_a_copy_is_told_what_to_do_when_the_server_stops(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(admin: Admin, copy_id: str) -> dict[str, Any]:
        raise ConnectionFailedError(f"no answer from {server.endpoint}")

    monkeypatch.setattr(Admin, "copy", gone)
    done = asked(server, "db/a", "db/b", "--online")
    assert done.exit_code == 1
    assert re.search(
        r"goes on when the server is there again: see it with `pleiad copy --status \w+`", done.output
    )


@pytest.mark.parametrize("expression", ["RAND()", "SUM(c.x)", "udf.f(c)", "(SELECT VALUE 1)", "@p"])
def test_an_expression_that_is_no_value_of_an_item_is_told_in_words_of_the_copy(
    server: RunningServer, expression: str
) -> None:
    done = asked(server, "db/a", "db/b", "--set", f"/k={expression}")
    assert done.exit_code == 1
    assert f"'{expression}' for /k is no expression over the item c: " in done.output
    assert "omputed property" not in done.output
