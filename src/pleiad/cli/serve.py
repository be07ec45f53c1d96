"""`pleiad serve`: runs a database until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pleiad import limits as limit_profiles
from pleiad.account.keys import EMULATOR_KEY
from pleiad.catalog.catalog import UnfinishedCopyError
from pleiad.engine.consistency import BY_OPTION, Consistency
from pleiad.errors import PleiadError
from pleiad.head_ports import BY_NAME, HEADS, NOSQL
from pleiad.node import SQLITE, THROTTLES, Node, Settings, SettingsError
from pleiad.server.descriptors import raise_descriptor_limit
from pleiad.server.lifecycle import on_hangup, run, settle_garbage_collector, wait_for_stop
from pleiad.store.postgres.connections import StoreUnreachableError, described
from pleiad.store.postgres.schema import SchemaError as DatabaseSchemaError
from pleiad.store.problems import MissingDataError, SettingsDifferError
from pleiad.store.sqlite.directory import StoreLockedError
from pleiad.store.sqlite.schema import SchemaError


def _option(*names: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option that is also the environment variable PLEIAD_<NAME>."""
    variable = "PLEIAD_" + names[0].removeprefix("--").replace("-", "_").upper()
    return click.option(*names, envvar=variable, show_envvar=True, **settings)


def _port_options(command: Callable[..., None]) -> Callable[..., None]:
    """An option for the port of each head but NoSQL."""
    for head in reversed(HEADS):
        if head.name != NOSQL:
            command = _option(
                head.option,
                metavar="PORT",
                default=None,
                type=click.IntRange(0, 65535),
                help=f"Switch the {head.title} head on, at this port; its own is {head.port}, and 0 takes a free one.",
            )(command)
    return command


_REFUSALS = (
    SettingsError,
    StoreLockedError,
    StoreUnreachableError,
    SchemaError,
    DatabaseSchemaError,
    UnfinishedCopyError,
    MissingDataError,
    SettingsDifferError,
    PleiadError,
    ValueError,
)
"""What keeps a server from starting and says so in a sentence."""


@click.command(short_help="Serve a database.")
@_option(
    "--data",
    metavar="DIR",
    default="pleiad-data",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the data is kept. The directory is made when it does not exist, and one server owns it.",
)
@_option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Beyond loopback a key of your own is required.",
)
@_option(
    "--host-name",
    "host_names",
    metavar="NAME",
    multiple=True,
    help="A name by which clients reach the server, such as that of a service in a container network; may be given "
    "several times. Loopback names, the address and the name of the machine need not be given; requests to other names "
    "are refused, since a page in a browser could have sent them.",
)
@_option(
    "--port",
    default=BY_NAME[NOSQL].port,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port of the NoSQL head, for HTTP and HTTPS alike; 0 takes a free one.",
)
@_option(
    "--heads",
    metavar="NAMES",
    multiple=True,
    help="Further heads to switch on at their own ports, or all of them: "
    + ", ".join(f"{head.name} {head.port}" for head in HEADS)
    + ". NoSQL is always on. A head that this version does not have is refused.",
)
@_port_options
@_option(
    "--key",
    default=EMULATOR_KEY,
    show_default="the emulators' well-known key",
    help="The account's master key, base64. Better given by the variable, which no process list shows.",
)
@_option("--read-only-key", default=None, help="A second key that authorizes reads only.")
@_option(
    "--key-file",
    metavar="FILE",
    default=None,
    type=click.Path(path_type=Path),
    help="A JSON file with the keys instead: two master keys and two that read, under the names primaryMasterKey, "
    "secondaryMasterKey, primaryReadonlyMasterKey and secondaryReadonlyMasterKey. It is read anew when it changes and "
    "on SIGHUP, so keys are replaced without a restart.",
)
@_option(
    "--allow-emulator-key",
    is_flag=True,
    help="Listen beyond loopback although the key is the one everybody knows.",
)
@_option(
    "--limits",
    "profile",
    metavar="PROFILE",
    default="default",
    show_default=True,
    help="The limits in force: default, 2018, tiny, or a TOML file that changes some of them.",
)
@_option(
    "--consistency",
    default=Consistency.SESSION.option,
    show_default=True,
    type=click.Choice(list(BY_OPTION)),
    help="The account's consistency level, which requests may weaken. Every read is fresh on one machine; the two "
    "strongest levels charge reads twice, as the service does.",
)
@_option(
    "--store",
    metavar="STORE",
    default="sqlite",
    show_default=True,
    help="Where items are kept: 'sqlite' is files in the data directory, postgresql://... a database that several "
    "servers may share; the data directory then holds the certificate only.",
)
@_option(
    "--ephemeral",
    is_flag=True,
    help="Keep everything in a temporary directory, without waiting for the disk, and remove it at the end.",
)
@_option(
    "--throttle",
    default=THROTTLES[0],
    show_default=True,
    type=click.Choice(THROTTLES),
    help="Whether requests beyond the provisioned throughput are answered with 429, or only counted.",
)
@_option(
    "--burst",
    is_flag=True,
    help="Let small physical partitions save unused request units of up to 5 minutes and spend them later.",
)
@_option(
    "--serverless",
    is_flag=True,
    help="A serverless account: no throughput is provisioned, each physical partition serves 5,000 RU/s.",
)
@_option(
    "--allow-different-settings",
    is_flag=True,
    help="Start although other servers on the same database have another key, other limits or another throttling.",
)
@_option(
    "--allow-missing-data",
    is_flag=True,
    help="Start although segments that held items are gone, or the catalog is; what no container names is set aside.",
)
@_option("--sample", is_flag=True, help="Load a small sample to look at, where it is not there yet.")
@_option(
    "--log-level",
    default="warning",
    show_default=True,
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="How much is logged to standard error. Keys and tokens never are.",
)
def serve(
    data: Path,
    host: str,
    host_names: tuple[str, ...],
    port: int,
    heads: tuple[str, ...],
    key: str,
    read_only_key: str | None,
    key_file: Path | None,
    allow_emulator_key: bool,
    profile: str,
    consistency: str,
    store: str,
    ephemeral: bool,
    throttle: str,
    burst: bool,
    serverless: bool,
    allow_different_settings: bool,
    allow_missing_data: bool,
    sample: bool,
    log_level: str,
    **head_ports: int | None,
) -> None:
    """Serve a database that Cosmos DB clients work against.

    HTTP and HTTPS answer on the same port; the certificate is made on the first start and kept in the data
    directory. The server prints its endpoint and connection string, answers health checks at /_pleiad/health and
    readiness checks at /_pleiad/ready without a key, and on SIGTERM or Ctrl-C finishes running requests before it
    exits.

    \b
    Examples:
      pleiad serve                               keep data in ./pleiad-data, listen on localhost:8081
      pleiad serve --ephemeral --port 0          a throw-away database on a free port
      PLEIAD_KEY=$(openssl rand -base64 64 | tr -d '\\n') pleiad serve --host 0.0.0.0
    """
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    raise_descriptor_limit()
    try:
        settings = Settings(
            data=None if ephemeral else data,
            store=store,
            host=host,
            host_names=_words(host_names),
            port=port,
            heads=_words(heads),
            ports={
                name.removesuffix("_port"): given for name, given in head_ports.items() if given is not None
            },
            key=key,
            read_only_key=read_only_key,
            key_file=key_file,
            limits=limit_profiles.load(profile),
            consistency=BY_OPTION[consistency],
            allow_emulator_key=allow_emulator_key,
            throttle=throttle,
            burst=burst,
            serverless=serverless,
            allow_different_settings=allow_different_settings,
            allow_missing_data=allow_missing_data,
        )
        run(_serve(Node(settings), sample))
    except _REFUSALS as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"cannot serve on {host}:{port} from {data}: {error.strerror or error}"
        ) from error


def _words(given: tuple[str, ...]) -> tuple[str, ...]:
    """Names that may be given one by one, or several in one text."""
    return tuple(word for text in given for word in text.replace(",", " ").split())


async def _serve(node: Node, sample: bool) -> None:
    # Before anything else, so that a signal during the start stops the server as cleanly as a later one.
    stopped = asyncio.create_task(wait_for_stop(asyncio.get_running_loop()))
    await asyncio.sleep(0)
    if node.settings.key_file is not None:
        on_hangup(node.reload_keys)
    await node.start()
    if sample:
        await node.load_sample()
    settle_garbage_collector()
    click.echo(_banner(node))
    sys.stdout.flush()
    reason = await stopped
    click.echo(f"{reason}: finishing running requests ...")
    await node.stop()
    click.echo("Stopped.")


def _banner(node: Node) -> str:
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
            f"  health             {node.health_address}",
            "  stop               Ctrl-C, or SIGTERM",
        ]
    )
