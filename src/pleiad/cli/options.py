"""What the verbs that talk to a running server share: where it is, its key, and names of containers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from pleiad.account.keys import EMULATOR_KEY
from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection, ConnectionFailedError

Command = TypeVar("Command", bound=Callable[..., Any])


def server_options(command: Command) -> Command:
    """The options `--endpoint` and `--key`."""
    endpoint = click.option(
        "--endpoint",
        envvar="PLEIAD_ENDPOINT",
        show_envvar=True,
        default="http://localhost:8081",
        show_default=True,
        help="The server to ask.",
    )
    key = click.option(
        "--key",
        envvar="PLEIAD_KEY",
        show_envvar=True,
        default=EMULATOR_KEY,
        show_default="the emulators' well-known key",
        help="The account's key, base64. Better given by the variable, which no process list shows.",
    )
    return endpoint(key(command))


def container_names(context: click.Context, argument: click.Parameter, text: str) -> tuple[str, str]:
    """The argument DB/CONTAINER."""
    names = text.split("/")
    if len(names) != 2 or not all(names):
        raise click.BadParameter(f"'{text}' is not a database and a container, such as sample/food")
    return names[0], names[1]


def database_or_container(
    context: click.Context, argument: click.Parameter, text: str | None
) -> tuple[str, str | None] | None:
    """The argument or option DB[/CONTAINER]."""
    if text is None:
        return None
    database, _, container = text.partition("/")
    if not database or "/" in container or text.endswith("/"):
        raise click.BadParameter(
            f"'{text}' is neither a database, such as sample, nor a container, such as sample/food"
        )
    return database, container or None


@contextlib.contextmanager
def asking(endpoint: str, key: str) -> Iterator[Admin]:
    """The admin API of a server; what goes wrong is one message and exit code 1."""
    try:
        with Connection(endpoint, key) as connection:
            yield Admin(connection)
    except (ConnectionFailedError, RequestRefusedError) as error:
        raise click.ClickException(str(error)) from None
