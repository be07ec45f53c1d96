"""All verbs alike: they are loaded when they are named, their help is a manual of 80 columns, shells complete them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from pleiad.cli.main import VERBS, cli, verb
from pleiad.cli.view.table import width_of
from tests import warm_command
from tests.project import ROOT
from tests.stores import StartServer

HELP_COLUMNS = 80


def commands() -> Iterator[list[str]]:
    """The words of every command there is."""
    yield []
    for name in VERBS:
        yield [name]
        command = verb(name)
        if isinstance(command, click.Group):
            yield from ([name, each] for each in command.commands)


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_fits_eighty_columns(words: list[str]) -> None:
    result = CliRunner().invoke(cli, [*words, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    wide = [line for line in result.output.splitlines() if width_of(line) > HELP_COLUMNS]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("name", list(VERBS))
def test_every_verb_is_listed_and_has_examples(name: str) -> None:
    listed = CliRunner().invoke(cli, ["--help"]).output
    assert re.search(rf"^  {name} +\S", listed, re.MULTILINE)
    assert "Examples:" in CliRunner().invoke(cli, [name, "--help"]).output


def test_every_verb_is_in_the_manual() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `pleiad ([a-z-]+)", page, re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)


def test_a_verb_that_does_not_exist_is_refused() -> None:
    result = CliRunner().invoke(cli, ["fly"])
    assert (result.exit_code, "No such command 'fly'" in result.stderr) == (2, True)
    assert "No such command 'serv'. Did you mean 'serve'?" in CliRunner().invoke(cli, ["serv"]).stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_output_that_cannot_be_written_is_said_in_a_sentence() -> None:
    program = "from pleiad.cli.main import main; main()"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, "--help"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (
        1,
        "Error: the output cannot be written: No space left on device\n",
    )


OPENS_FILES = ("serve", "check", "copy-data", "import", "export", "backup", "restore")
LIGHT = [name for name in VERBS if name not in OPENS_FILES]


def test_verbs_that_ask_a_server_load_nothing_of_the_server() -> None:
    program = (
        "import sys\n"
        "from pleiad.cli.main import verb\n"
        f"for name in {LIGHT!r}: verb(name)\n"
        "heavy = ('asyncio', 'apsw', 'psycopg', 'uvloop', 'pleiad.node', 'pleiad.query', 'pleiad.store')\n"
        "print(*[name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def completed(words: str, shell: str = "bash", **variables: str) -> list[str]:
    """What a shell is offered for the last word."""
    environment = {
        **os.environ,
        **variables,
        "_PLEIAD_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    program = "from pleiad.cli.main import cli; cli(prog_name='pleiad')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_a_shell_completes_verbs_options_and_names(start_server: StartServer) -> None:
    assert "partitions" in completed("pleiad pa")
    assert "--if-match" in completed("pleiad put --if")
    with start_server() as server:
        known = {"PLEIAD_CONNECTION_STRING": server.connection_string}
        environment = {**os.environ, **known}
        words = ["create", "town/people", "--partition-key", "/city"]
        subprocess.run([*warm_command.words(), *words], env=environment, check=True)
        # The one database that it can be comes with its containers, so that a shell puts no space behind it.
        assert completed("pleiad ls to", **known) == ["town", "town/people"]
        assert completed("pleiad partitions town/", **known) == ["town/people"]
    assert completed("pleiad ls to", **known) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_each_shell_is_printed(shell: str) -> None:
    result = CliRunner().invoke(cli, prog_name="pleiad", env={"_PLEIAD_COMPLETE": f"{shell}_source"})
    assert "_PLEIAD_COMPLETE" in result.output
