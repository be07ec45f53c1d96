"""`pleiad partitions`: where the items and the load of a container are."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from typing import Any

import click

from pleiad.cli.options import complete_names, connected, container_names, server_options
from pleiad.cli.view.containers import containers_view
from pleiad.cli.view.partition import Look, view
from pleiad.cli.view.table import json_text
from pleiad.client.account import Account
from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection

TOP_DEFAULT = 5
_LARGEST_EVERY_SECONDS = 30.0


def _container(context: click.Context, argument: click.Parameter, text: str | None) -> tuple[str, str] | None:
    return None if text is None else container_names(context, argument, text)


@click.command()
@click.argument(
    "container",
    metavar="[DB/CONTAINER]",
    required=False,
    callback=_container,
    shell_complete=complete_names,
)
@server_options
@click.option("--watch", is_flag=True, help="Show it again and again until Ctrl-C.")
@click.option("--interval", metavar="SECONDS", type=click.FloatRange(0.1, 3600), default=2.0, show_default=True,
              help="The time between two looks of --watch.")  # fmt: skip
@click.option("--top", metavar="N", type=click.IntRange(0, 100), default=TOP_DEFAULT, show_default=True,
              help="How many of the largest and of the hottest logical partitions to show.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what the server tells, one JSON object a look.")
def partitions(
    container: tuple[str, str] | None,
    endpoint: str,
    key: str,
    watch: bool,
    interval: float,
    top: int,
    as_json: bool,
) -> None:
    """Show the physical partitions of a container of a running server, or without a name all containers.

    For each partition: its range of hashes, its items and their size with a bar against the largest partition, the
    request units it used in the last second of those it is allowed, how busy its busiest second of the last minute
    was, how many requests were answered with 429, how many were served beyond the throughput where that is only
    observed, and the partitions it came from. Then the largest and the hottest logical partitions, and the warnings
    about the container. Texts are cut and columns left out where the terminal is narrow.

    \b
    Examples:
      pleiad partitions
      pleiad partitions sample/food
      pleiad partitions sample/food --watch
      pleiad partitions sample/food --json | jq '.partitions[].bytes'

    The exit code is 0 when the server answered, 1 when it refused or did not answer, and 2 when the command
    itself was wrong.
    """
    with connected(endpoint, key) as connection:
        pictures = _All(connection) if container is None else _One(Admin(connection), container, top)
        try:
            while True:
                _show(pictures, as_json, clears=watch and not as_json)
                if not watch:
                    break
                time.sleep(interval)
        except KeyboardInterrupt:
            click.echo()


class _All:
    """Looks at all containers."""

    def __init__(self, connection: Connection) -> None:
        self._account = Account(connection)
        self._admin = Admin(connection)

    def take(self) -> list[dict[str, Any]]:
        answers = []
        for database in self._account.databases():
            for container in self._account.containers(database["id"]):
                # Who is deleted between the list and the look is left out.
                with contextlib.suppress(RequestRefusedError):
                    answers.append(self._admin.partitions(database["id"], container["id"], 0, 0))
        return answers

    def text(self, picture: list[dict[str, Any]], look: Look) -> str:
        return containers_view(picture, look)


class _One:
    """Looks at one container; the largest logical partitions, which take counting, are asked for now and then."""

    def __init__(self, admin: Admin, container: tuple[str, str], top: int) -> None:
        self._admin = admin
        self._container = container
        self._top = top
        self._largest: list[dict[str, Any]] = []
        self._counted_at: float | None = None

    def take(self) -> dict[str, Any]:
        now = time.monotonic()
        is_due = self._counted_at is None or now - self._counted_at >= _LARGEST_EVERY_SECONDS
        answer = self._admin.partitions(*self._container, self._top if is_due else 0, self._top)
        if is_due:
            self._largest, self._counted_at = answer["largest"], now
        warnings = [
            each
            for each in self._admin.warnings()
            if (each["database"], each["container"]) == (answer["database"], answer["container"])
        ]
        return {**answer, "largest": self._largest, "warnings": warnings}

    def text(self, picture: dict[str, Any], look: Look) -> str:
        return view(picture, picture["warnings"], look)


def _show(pictures: _All | _One, as_json: bool, clears: bool) -> None:
    picture: Any = pictures.take()
    if as_json:
        click.echo(json_text(picture))
        return
    text = pictures.text(picture, look_of_terminal())
    if clears and sys.stdout.isatty():
        click.clear()
    click.echo(text)


def look_of_terminal() -> Look:
    """What standard output can show."""
    is_terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns  # 80 where there is no terminal
    try:
        "█░…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Look(columns, is_terminal, blocks=("#", "."), cut="~")
    return Look(columns, is_terminal)
