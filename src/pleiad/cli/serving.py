"""One server process, from its start until it is told to stop, and what it says meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

import click

from pleiad.account.keys import EMULATOR_KEY
from pleiad.catalog.catalog import UnfinishedCopyError
from pleiad.cli.closed_pipe import drop_output
from pleiad.errors import PleiadError
from pleiad.job.load_folder import LoadError
from pleiad.node import Node
from pleiad.server.lifecycle import closed_terminal_check, on_hangup, settle_garbage_collector, wait_for_stop
from pleiad.settings import SQLITE, SettingsError
from pleiad.store.postgres.database import SchemaError as DatabaseSchemaError
from pleiad.store.postgres.database import StoreUnreachableError, described
from pleiad.store.problems import MissingDataError, SettingsDifferError
from pleiad.store.sqlite.directory import StoreLockedError
from pleiad.store.sqlite.schema import SchemaError

REFUSALS = (
    SettingsError,
    StoreLockedError,
    StoreUnreachableError,
    SchemaError,
    DatabaseSchemaError,
    UnfinishedCopyError,
    MissingDataError,
    SettingsDifferError,
    LoadError,
    PleiadError,
    ValueError,
)
"""What keeps a server from starting and says so in a sentence."""


async def serve_until_stopped(node: Node, sample: bool, shows_link: bool) -> None:
    """Serves, and says so, until a signal comes."""
    # Before anything else, so that a signal during the start stops the server as cleanly as a later one.
    stopped = asyncio.create_task(wait_for_stop(asyncio.get_running_loop()))
    await asyncio.sleep(0)
    is_terminal_closed = closed_terminal_check()

    def heed_hangup() -> None:
        if is_terminal_closed():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            node.reload()

    on_hangup(heed_hangup)
    node.tell = say
    starting = asyncio.create_task(node.start())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        # Loading a folder takes a while; a server that is told to stop does not finish it first.
        starting.cancel()
        await asyncio.wait({starting})
        say("Stopped before it had started.")
        return
    await starting
    if sample:
        await node.load_sample()
    settle_garbage_collector()
    say(banner(node, node.new_link() if shows_link else None))
    reason = await stopped
    say(f"{reason}: finishing running requests ...")
    await node.stop()
    say("Stopped.")


def say(text: str) -> None:
    """Prints a line, unless nobody reads any more: that ends no server."""
    try:
        click.echo(text)
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            drop_output()


def banner(node: Node, link: str | None) -> str:
    """What a server says when it is ready."""
    settings = node.settings
    endpoint = node.endpoint
    primary = node.keys.keys.primary.text
    shown_key = primary if primary == EMULATOR_KEY else "<your key>"
    data = (
        "a temporary directory, removed at the end"
        if settings.data is None
        else str(node.directory.resolve())
    )
    if settings.store != SQLITE:
        data = described(settings.store)
    return "\n".join(
        [
            "Pleiad is ready.",
            f"  endpoint           {endpoint}   (https on the same port)",
            f"  connection string  AccountEndpoint={endpoint};AccountKey={shown_key};",
            f"  data               {data}",
            f"  heads              {', '.join(f'{name} {port}' for name, port in node.server.ports.items())}",
            *([] if link is None else [f"  explorer           {link}   (works once)"]),
            f"  health             {node.health_address}",
            "  stop               Ctrl-C, or SIGTERM",
        ]
    )
