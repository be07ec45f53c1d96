"""Heads and their ports: one list for the command line, the test kit and the documentation."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from typing import Any

import pytest

import pleiad
from pleiad.head_ports import BY_NAME, HEADS, NOSQL, chosen
from pleiad.node import PROTOCOLS, Node
from pleiad.settings import Settings, SettingsError
from tests.project import ROOT
from tests.rooms.cli.test_serve import refused, serving

pytest_plugins = ["pytester"]

MISSING = [head for head in HEADS if not head.is_here]


def test_the_ports_are_those_of_the_emulator() -> None:
    ports = {head.name: (head.option, head.port) for head in HEADS}
    assert ports == {
        "nosql": ("--port", 8081),
        "gremlin": ("--gremlin-port", 8901),
        "table": ("--table-port", 8902),
        "mongo": ("--mongo-port", 10255),
        "cassandra": ("--cassandra-port", 10350),
    }


def test_a_node_has_what_the_list_says_is_here() -> None:
    assert set(PROTOCOLS) == {head.name for head in HEADS if head.is_here}


def test_the_documentation_has_the_same_list() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (yes|no) \|$", page, re.MULTILINE)
    assert rows == [(head.name, str(head.port), "yes" if head.is_here else "no") for head in HEADS]


def test_nosql_alone_is_on_by_default() -> None:
    assert chosen((), {}) == {NOSQL: 8081}
    assert chosen(["nosql"], {NOSQL: 5}) == {NOSQL: 5}


def test_a_head_is_on_when_it_is_named_or_its_port_is(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = tuple(replace(head, is_here=True) for head in HEADS)
    monkeypatch.setattr("pleiad.head_ports.HEADS", everything)
    own = {head.name: head.port for head in HEADS}
    assert chosen(["all"], {}) == own
    assert chosen(["all"], {"mongo": 7, NOSQL: 0}) == {**own, "mongo": 7, NOSQL: 0}
    assert chosen(["table"], {}) == {NOSQL: 8081, "table": 8902}
    assert chosen((), {"cassandra": 9042}) == {NOSQL: 8081, "cassandra": 9042}


@pytest.mark.parametrize("head", MISSING, ids=lambda head: head.name)
def test_a_head_that_is_not_here_is_refused_and_nothing_listens(head: Any) -> None:
    variable = "PLEIAD_" + head.option.removeprefix("--").replace("-", "_").upper()
    ways: list[tuple[list[str], dict[str, str]]] = [
        ([head.option, "0"], {}),
        (["--heads", head.name], {}),
        (["--heads", f"nosql,{head.name}"], {}),
        ([], {variable: "0"}),
    ]
    for options, variables in ways:
        told = refused("--ephemeral", "--port", 0, *options, **variables)
        assert told == f"Error: this version has no head for {head.title}; the heads it has: nosql\n"
    with pytest.raises(SettingsError, match=f"no head for {head.title}"):
        Node(Settings(ports={head.name: 0}))


def test_all_of_them_are_refused_with_those_that_are_missing() -> None:
    said = refused("--ephemeral", "--port", 0, "--heads", "all")
    assert all(head.title in said for head in MISSING)
    assert "the heads it has: nosql" in said


def test_a_head_that_nobody_knows_is_refused() -> None:
    said = refused("--ephemeral", "--port", 0, "--heads", "mango")
    assert "no head 'mango'" in said
    assert all(name in said for name in BY_NAME)


def test_what_is_here_may_be_named() -> None:
    with serving("--ephemeral", "--port", 0, "--heads", "nosql") as server:
        assert server.get("/_pleiad/health")[0] == 200
        assert re.search(rf"heads +nosql {server.port}\n", server.banner)


@pytest.mark.parametrize("child_process", [False, True])
def test_the_test_kit_has_the_same_switch(child_process: bool) -> None:
    with pleiad.start(heads=["nosql"], child_process=child_process) as server:
        assert server.ports == {"nosql": server.port}
    with pytest.raises(ValueError, match="no head for MongoDB"), pleiad.start(heads=["mongo"]):
        pass
    with (
        pytest.raises(ValueError, match="Gremlin, Table, MongoDB and Cassandra"),
        pleiad.start(heads="all", child_process=child_process),
    ):
        pass
    with pytest.raises(ValueError, match="no head 'mango'"), pleiad.start(heads="mango"):
        pass


@pytest.mark.parametrize(("heads", "outcome"), [("['nosql']", "passed"), ("'all'", "errors")])
def test_the_fixtures_have_it_too(pytester: pytest.Pytester, heads: str, outcome: str) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def pleiad_heads():
            return {heads}
        """
    )
    pytester.makepyfile(
        """
        def test_the_server_has_the_heads_it_was_asked_for(pleiad_server):
            assert set(pleiad_server.ports) == {"nosql"}
        """
    )
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    done.assert_outcomes(**{outcome: 1})
    if outcome == "errors":
        done.stdout.fnmatch_lines(["*this version has no head for*"])


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--ephemeral", "--port", taken.getsockname()[1])
    assert "take another port with --port" in said
