"""`pleiad wait`: waits until a server is ready to be asked."""

from __future__ import annotations

import time

import click

from pleiad.cli.options import server_options

_PAUSE_SECONDS = 0.05
_ANSWER_SECONDS_MAX = 5.0


@click.command()
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), default=30.0, show_default=True,
              help="Give up after so long; 0 looks once.")  # fmt: skip
@server_options
def wait(timeout: float, endpoint: str, key: str) -> None:
    """Wait until a server is ready, as a script does that has just started one.

    Exit code 0 says that it answers and has its store, 1 that it did not within the time. No key is needed.

    \b
    Examples:
      pleiad serve --ephemeral & pleiad wait
      pleiad wait --timeout 60 --endpoint http://database:8081
    """
    end = time.monotonic() + timeout
    while (problem := _problem(endpoint, key)) is not None:
        if time.monotonic() + _PAUSE_SECONDS > end:
            raise click.ClickException(f"not ready within {timeout:g} s: {problem}")
        time.sleep(_PAUSE_SECONDS)


def _problem(endpoint: str, key: str) -> str | None:
    """Why a server is not ready, as a sentence; None when it is."""
    from pleiad.client.connection import Connection, ConnectionFailedError

    try:
        connection = Connection(endpoint, key, _ANSWER_SECONDS_MAX)
    except ConnectionFailedError as error:
        raise click.ClickException(str(error)) from None  # waiting does not mend what was given
    try:
        with connection:
            answer = connection.request("GET", ("_pleiad", "ready"), "ready", ("_pleiad",), {})
    except ConnectionFailedError as error:
        return str(error)
    if answer.status == 200:
        return None
    try:
        return f"{endpoint} says '{answer.json()['status']}'"
    except (ValueError, TypeError, LookupError):
        return f"{endpoint} answers with status {answer.status}"
