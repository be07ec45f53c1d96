"""`pleiad shell`: verbs and queries at a prompt, with history and completion.

A line is a verb as on the command line, or a query on the container in use. Lines from a pipe are done one after the
other until one fails.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pleiad.cli.completion import NOT_HERE, Completion
from pleiad.cli.main import VERBS, cli
from pleiad.cli.options import complete_names, database_or_container, opening, server_options
from pleiad.cli.view.table import shown

try:
    import readline
except ImportError:  # Windows has none; lines are typed without history and completion there
    readline = None  # type: ignore[assignment]

OWN_WORDS = {
    "use DB[/CONTAINER]": "Take a database or container into use: . means it from then on.",
    "SELECT ...": "Run a query on the container in use.",
    "explain SELECT ...": "Run it and tell how it was run, and what it cost.",
    "help [VERB]": "Show this, or the manual of a verb.",
    "exit": "Leave; so does Ctrl-D.",
}
_HISTORY_LINES_MAX = 2_000
_SECRET_WORDS = ("--key", "accountkey")


@click.command()
@click.argument(
    "place",
    metavar="[DB[/CONTAINER]]",
    required=False,
    callback=database_or_container,
    shell_complete=complete_names,
)
@server_options
def shell(place: tuple[str, str | None] | None, endpoint: str, key: str) -> None:
    """Type verbs and queries at a prompt.

    A line is a verb as on the command line, such as `ls sample`, or a query, which goes to the container in use; `use
    sample/food` takes one into use, and then a single dot stands for it. A line that ends with a backslash goes on in
    the next one. The Tab key completes verbs, options, names, words of the query language and properties of items.
    Lines are remembered in ~/.pleiad_history, or the file that PLEIAD_HISTORY names, but for those with a key in them.

    \b
    Examples:
      pleiad shell
      pleiad shell sample/food
      echo 'SELECT VALUE COUNT(1) FROM c' | pleiad shell sample/food
    """
    prompt = Prompt(endpoint, key)
    prompt.use(place)  # which also tells at once when there is no server
    with _in_environment(PLEIAD_ENDPOINT=endpoint, PLEIAD_KEY=key):
        if not sys.stdin.isatty():
            sys.exit(0 if all(prompt.do(line) for line in prompt.lines()) else 1)
        click.echo("`help` tells what can be typed here; Ctrl-D leaves.")
        with _remembered(Completion(endpoint, key, lambda: prompt.container)):
            for line in prompt.lines():
                prompt.do(line)


class Prompt:
    """What is typed, and the database or container it is about."""

    def __init__(self, endpoint: str, key: str) -> None:
        self._endpoint = endpoint
        self._key = key
        self._place: tuple[str, str | None] | None = None

    @property
    def container(self) -> tuple[str, str] | None:
        """The container in use."""
        if self._place is None or self._place[1] is None:
            return None
        return self._place[0], self._place[1]

    @property
    def _name(self) -> str:
        return "/".join(filter(None, self._place or ()))

    def lines(self) -> Iterator[str]:
        """The lines until the end or `exit`, those that go on in the next joined."""
        begun = ""
        while True:
            try:
                line = _read("... " if begun else f"{shown(self._name) or 'pleiad'}> ")
            except EOFError:
                if not begun:
                    return
                line = ""
            except KeyboardInterrupt:
                click.echo()
                begun = ""
                continue
            if line.endswith("\\"):
                begun += line[:-1] + " "
                continue
            whole = (begun + line).strip().rstrip(";").rstrip()
            begun = ""
            if whole in ("exit", "quit"):
                return
            if whole and not whole.startswith("#"):
                _remember(whole)
                yield whole

    def do(self, line: str) -> bool:
        """Does what a line says; whether it could be done. What is wrong is told."""
        try:
            words = self._words(line)
            if words[0] == "use":
                self.use(_place_named(words[1:]))
            elif words[0] == "help":
                _help(words[1:])
            else:
                cli.main(words, prog_name="pleiad", standalone_mode=False)
        except click.ClickException as error:
            error.show()
            return False
        except (click.Abort, KeyboardInterrupt):
            click.echo("stopped", err=True)
            return False
        return True

    def _words(self, line: str) -> list[str]:
        """A line as the words of a command."""
        first, _, rest = line.partition(" ")
        if first.lower() in ("select", "explain"):
            if self.container is None:
                raise click.UsageError(
                    "a query is about a container: take one into use with `use DB/CONTAINER`"
                )
            if first.lower() == "select":
                return ["query", self._name, line]
            return ["query", self._name, rest.strip(), "--explain"]
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise click.UsageError(f"the line cannot be read: {error}") from None
        if not words or words[0] not in (*VERBS, "use", "help"):
            raise click.UsageError(f"there is no verb '{shown(first)}'; `help` tells those there are")
        if words[0] in NOT_HERE:
            raise click.UsageError(f"`pleiad {words[0]}` is for the command line")
        return [words[0], *map(self._meant, words[1:])]

    def _meant(self, word: str) -> str:
        """A word of a command, in which a dot is what is in use."""
        if self._place is None or not (word == "." or word.startswith("./")):
            return word
        return self._name if word == "." else f"{self._place[0]}/{word[2:]}"

    def use(self, place: tuple[str, str | None] | None) -> None:
        """Takes a database or container into use that is there, or none."""
        with opening(self._endpoint, self._key) as account:
            if place is None:
                account.databases()
            else:
                account.read(*place)
        self._place = place


def _place_named(words: list[str]) -> tuple[str, str | None] | None:
    if len(words) > 1:
        raise click.UsageError("`use` takes one name: DB or DB/CONTAINER")
    name = words[0] if words else None
    return database_or_container(click.get_current_context(), click.Argument(["place"]), name)


def _help(words: list[str]) -> None:
    if words:
        cli.main([words[0], "--help"], prog_name="pleiad", standalone_mode=False)
        return
    formatter = click.HelpFormatter()
    with formatter.section("What can be typed"):
        formatter.write_dl(list(OWN_WORDS.items()))
    with formatter.section("Verbs"):
        formatter.write_dl([(name, text) for name, text in VERBS.items() if name not in NOT_HERE])
    click.echo(formatter.getvalue().rstrip())


def _read(prompt: str) -> str:
    if sys.stdin.isatty():
        return input(prompt)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


# -- history --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _remembered(completion: Completion) -> Iterator[None]:
    """Reads the history, has lines completed, and writes the history at the end."""
    if readline is None:
        yield
        return
    file = Path(os.environ.get("PLEIAD_HISTORY") or Path.home() / ".pleiad_history")
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    readline.set_auto_history(False)
    readline.set_history_length(_HISTORY_LINES_MAX)
    readline.set_completer_delims(" \t\n,()=<>!+*'\"")
    readline.set_completer(lambda text, state: completion.offered(_line_before(), text, state))
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)


def _line_before() -> str:
    """What stands before the word to complete."""
    return readline.get_line_buffer()[: readline.get_begidx()]


def _remember(line: str) -> None:
    if readline is not None and not any(word in line.lower() for word in _SECRET_WORDS):
        readline.add_history(line)


@contextlib.contextmanager
def _in_environment(**variables: str) -> Iterator[None]:
    """Variables that the verbs of this process see, for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
