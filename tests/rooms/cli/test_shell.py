"""`pleiad shell`: lines from a pipe, and a person at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.cli.completion import Completion
from pleiad.testing.start import RunningServer
from tests import warm_command
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, wait_until


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        database = CosmosClient(started.endpoint, started.key).create_database("town")
        people = database.create_container("people", PartitionKey("/city"))
        people.create_item({"id": "1", "city": "Oslo", "home": {"street": "Elm"}})
        people.create_item({"id": "2", "city": "Lima"})
        yield started


def environment(server: RunningServer) -> dict[str, str]:
    return {**os.environ, "PLEIAD_CONNECTION_STRING": server.connection_string}


def piped(server: RunningServer, *lines: str, place: str = "town/people") -> subprocess.CompletedProcess[str]:
    text = "".join(f"{line}\n" for line in lines)
    command = [*warm_command.words(), "shell", *([place] if place else [])]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, env=environment(server), timeout=SECONDS_MAX
    )


def test_lines_from_a_pipe_are_done_one_after_the_other(server: RunningServer) -> None:
    done = piped(
        server,
        "# a remark, and an empty line",
        "",
        "select value count(1) from c;",
        "use town",
        "get ./people 2 --partition-key Lima --json",
        "use town/people",
        "SELECT VALUE c.city \\",
        "FROM c WHERE c.id = '1'",
        "ls . --partition-key Oslo --json",
        "exit",
        "no such verb",
    )
    assert done.returncode == 0, done.stderr
    count, item, city, listed = done.stdout.split("\n", 3)
    assert (count, json.loads(item)["id"], city) == ("2", "2", '"Oslo"')
    assert [each["id"] for each in json.loads(listed)] == ["1"]


def test_a_line_that_would_go_on_ends_with_the_pipe(server: RunningServer) -> None:
    assert piped(server, "SELECT VALUE COUNT(1) FROM c \\").stdout == "2\n"


def test_a_query_is_explained(server: RunningServer) -> None:
    done = piped(server, "explain SELECT * FROM c WHERE c.city = 'Oslo'")
    assert done.returncode == 0
    assert "physical partitions visited" in done.stderr


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        ("SELECT * FORM c", "town/people", "SC1001"),
        ("SELECT * FROM c", "town", "take one into use"),
        ("fly away", "", "there is no verb 'fly'"),
        ("serve", "", "is for the command line"),
        ("get . 9", "town/people", "there is no item 9"),
        ("use nowhere", "", "no database 'nowhere'"),
        ("use a/b/c", "", "neither a database"),
        ("use a b", "", "takes one name"),
        ("put . '{", "town/people", "the line cannot be read"),
        ("rm .", "town/people", "nothing was deleted"),
    ],
)
def test_a_line_that_fails_is_told_and_ends_a_pipe(
    server: RunningServer, line: str, place: str, said: str
) -> None:
    done = piped(server, line, "ls --json", place=place)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_place_that_is_not_there_is_told_before_anything_is_typed(server: RunningServer) -> None:
    done = piped(server, place="town/nowhere")
    assert (done.returncode, "no container 'nowhere'" in done.stderr) == (1, True)


class Terminal:
    """A shell at a terminal of 80 columns."""

    def __init__(self, server: RunningServer, history: Path) -> None:
        variables = {
            **environment(server),
            "PLEIAD_HISTORY": str(history),
            "TERM": "dumb",
            "COLUMNS": "80",
        }
        command = [*warm_command.words(), "shell", "town/people"]
        child, self._file = pty.fork()
        if child == 0:
            os.execvpe(sys.executable, command, variables)
        self._child = child
        self._seen = ""

    def read_until(self, text: str) -> str:
        """What the shell prints until there is a text, and with it."""
        assert wait_until(lambda: text in self._seen or text in self._grown()), self._seen
        found, _, self._seen = self._seen.partition(text)
        return found + text

    def _grown(self) -> str:
        if select.select([self._file], [], [], 1.0)[0]:
            self._seen += os.read(self._file, 65536).decode()
        return self._seen

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def leave(self) -> None:
        """Ends the shell at its prompt; what is typed before that, the terminal takes for itself."""
        self.read_until("town/people> ")
        self.type("\x04")
        assert wait_until(lambda: os.waitpid(self._child, os.WNOHANG)[0]), self._seen
        os.close(self._file)


def test_a_person_types_completes_and_finds_what_was_typed_again(
    server: RunningServer, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    terminal = Terminal(server, history)
    terminal.read_until("town/people> ")
    terminal.type("SELECT c.id, c.ci\t FROM c WHERE c.id = '1'\n")
    table = terminal.read_until("RU, ")
    assert re.search(r"id +city", table)
    assert re.search(r"1 +Oslo", table)
    terminal.read_until("town/people> ")
    terminal.type("fly\n")
    terminal.read_until("there is no verb 'fly'")
    terminal.read_until("town/people> ")
    terminal.type("ls town --key c2VjcmV0LXNlY3JldC1zZWNyZXQ=\n")
    terminal.read_until("does not accept this key")
    terminal.leave()
    kept = history.read_text()
    assert "SELECT c.id, c.city FROM c" in kept
    assert "c2VjcmV0" not in kept
    assert history.stat().st_mode & 0o077 == 0
    again = Terminal(server, history)
    again.read_until("town/people> ")
    again.type("\x1b[A\x1b[A\n")
    again.read_until("Oslo")
    again.leave()


def test_completion_offers_what_fits(server: RunningServer) -> None:
    completion = Completion(server.endpoint, server.key, lambda: ("town", "people"))
    assert "partitions" in completion.offers("", "pa")
    assert "serve" not in completion.offers("", "se")
    assert completion.offers("SELECT ", "dis") == ["DISTINCT"]
    assert completion.offers("SELECT ", "c.ho") == ["c.home", "c.home.street"]
    assert completion.offers("ls ", "to") == ["town", "town/people"]
    assert completion.offers("ls ", "town/") == ["town/people"]
    assert completion.offers("put town/people ", "--if") == ["--if-match"]
    assert completion.offers("help ", "spl") == ["split"]
    assert completion.offered("ls ", "to", 0) == "town"
    assert completion.offered("ls ", "to", 1) == "town/people"
    assert completion.offered("ls ", "to", 2) is None


def test_completion_offers_no_names_when_no_server_answers() -> None:
    completion = Completion("http://localhost:1", "a2V5IGtleSBrZXkga2V5IGtleQ==", lambda: ("a", "b"))
    assert completion.offers("ls ", "to") == []
    assert completion.offers("SELECT ", "c.x") == []
