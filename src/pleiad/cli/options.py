"""What the verbs that talk to a running server share: where it is, its key, and names of containers.

Nothing of the engine is imported here, and the client only when a server is asked: a verb starts in a moment.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from pleiad.account.keys import EMULATOR_KEY

if TYPE_CHECKING:
    from pleiad.client.account import Account
    from pleiad.client.admin import Admin
    from pleiad.client.connection import Connection

Command = TypeVar("Command", bound=Callable[..., Any])


def server_options(command: Command) -> Command:
    """The options `--endpoint` and `--key`; a verb gets both, also where a connection string was given."""

    @functools.wraps(command)
    def told(*arguments: Any, endpoint: str, key: str, **given: Any) -> Any:
        endpoint, key = _whereabouts(click.get_current_context(), endpoint, key)
        return command(*arguments, endpoint=endpoint, key=key, **given)

    with_key = click.option(
        "--key",
        envvar="PLEIAD_KEY",
        show_envvar=True,
        default=EMULATOR_KEY,
        show_default="the emulators' well-known key",
        help="The account's key, base64. Better given by the variable, which no process list shows.",
    )
    with_endpoint = click.option(
        "--endpoint",
        envvar=["PLEIAD_ENDPOINT", "PLEIAD_CONNECTION_STRING"],
        show_envvar=True,
        default="http://localhost:8081",
        show_default=True,
        help="The server to ask. A connection string is good too, and its key is used unless --key is given.",
    )
    return with_endpoint(with_key(told))  # type: ignore[return-value]


def _whereabouts(context: click.Context, endpoint: str, key: str) -> tuple[str, str]:
    """The endpoint and the key, where the first may be a connection string with the second in it."""
    from pleiad.client.connection_string import parse

    try:
        found = parse(endpoint)
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="--endpoint") from None
    is_given = context.get_parameter_source("key") is ParameterSource.COMMANDLINE
    return found.endpoint, key if is_given or found.key is None else found.key


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
def connected(endpoint: str, key: str) -> Iterator[Connection]:
    """A connection to a server; what goes wrong is one message and exit code 1."""
    from pleiad.client.admin import RequestRefusedError
    from pleiad.client.connection import Connection, ConnectionFailedError

    try:
        with Connection(endpoint, key) as connection:
            yield connection
    except (ConnectionFailedError, RequestRefusedError) as error:
        raise click.ClickException(str(error)) from None


@contextlib.contextmanager
def asking(endpoint: str, key: str) -> Iterator[Admin]:
    """The admin API of a server."""
    from pleiad.client.admin import Admin

    with connected(endpoint, key) as connection:
        yield Admin(connection)


@contextlib.contextmanager
def opening(endpoint: str, key: str) -> Iterator[Account]:
    """The databases, containers and items of a server."""
    from pleiad.client.account import Account

    with connected(endpoint, key) as connection:
        yield Account(connection)


def complete_names(context: click.Context, argument: click.Parameter, incomplete: str) -> list[str]:
    """Names that a shell offers for DB[/CONTAINER]; none when no server answers."""
    from pleiad.client.account import Account
    from pleiad.client.admin import RequestRefusedError
    from pleiad.client.connection import Connection, ConnectionFailedError

    given = context.params
    with contextlib.suppress(ConnectionFailedError, RequestRefusedError, click.UsageError):
        endpoint, key = _whereabouts(context, given["endpoint"], given["key"])
        with Connection(endpoint, key) as connection:
            return names_beginning_with(Account(connection), incomplete)
    return []


def names_beginning_with(account: Account, incomplete: str) -> list[str]:
    """Databases that a text may become, or containers once there is a slash.

    A single database comes with its containers: a shell then stops behind its name, and puts no space there.
    """
    database, slash, _ = incomplete.partition("/")
    names = [] if slash else [each["id"] for each in account.databases() if each["id"].startswith(incomplete)]
    if slash or len(names) == 1:
        database = database if slash else names[0]
        names += [f"{database}/{each['id']}" for each in account.containers(database)]
    return [name for name in names if name.startswith(incomplete)]
