"""`pleiad serve`: runs a database until it is told to stop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pleiad import limits as limit_profiles
from pleiad.account.keys import EMULATOR_KEY
from pleiad.cli.log_output import FORMATS, logging_to_standard_error
from pleiad.cli.serving import REFUSALS, serve_until_stopped
from pleiad.cli.workers import Supervisor
from pleiad.engine.consistency import BY_OPTION, Consistency
from pleiad.engine.recording import Mode
from pleiad.engine.watch.request_log import REQUESTS, SLOW
from pleiad.head_ports import BY_NAME, HEADS, NOSQL
from pleiad.node import Node
from pleiad.server.allocator import give_back_free_memory
from pleiad.server.descriptors import fill_standard_descriptors, raise_descriptor_limit
from pleiad.server.lifecycle import run
from pleiad.settings import THROTTLES, Settings


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
                help=f"Switch the {head.title} head on, at this port; its own is {head.port}, and 0 takes a free one."
                if head.is_here
                else f"The port of the {head.title} head, which is not in this version.",
            )(command)
    return command


@click.command()
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
    "--region-host",
    metavar="NAME",
    default=None,
    help="The host in the address that clients are told for the account's region, instead of the one they asked by: "
    "where something between them and the server changes it, or 127.0.0.1, which the emulator for Windows tells.",
)
@_option(
    "--port",
    default=BY_NAME[NOSQL].port,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port of the NoSQL head, for HTTP, HTTPS and direct mode alike; 0 takes a free one.",
)
@_option(
    "--heads",
    metavar="NAMES",
    multiple=True,
    help="Further heads to switch on at their own ports, or all of them. NoSQL is always on. This version has: "
    + ", ".join(f"{head.name} {head.port}" for head in HEADS if head.is_here)
    + "; others are refused.",
)
@_port_options
@_option(
    "--no-direct",
    is_flag=True,
    help="Serve no clients in direct mode, the default of .NET and Java; they are told to use gateway mode.",
)
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
    "servers may share; the data directory then holds the certificate and workload records only.",
)
@_option(
    "--workers",
    metavar="N",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="So many processes serve on one port, each on a processor of its own; with PostgreSQL and on Linux only.",
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
@_option(
    "--tls-cert",
    metavar="FILE",
    default=None,
    type=click.Path(path_type=Path),
    help="The certificate to answer HTTPS with, PEM, with its chain; it is read anew when it changes and on SIGHUP. "
    "Without it the server makes one and keeps it in the data directory.",
)
@_option(
    "--tls-key",
    metavar="FILE",
    default=None,
    type=click.Path(path_type=Path),
    help="The key of --tls-cert, PEM.",
)
@_option(
    "--https-only",
    is_flag=True,
    help="Refuse plain HTTP with 403; health and readiness, which tell nothing, are answered.",
)
@_option(
    "--backup-dir",
    metavar="DIR",
    default=None,
    type=click.Path(path_type=Path),
    help="Where `pleiad backup` has the server put backups of its SQLite account. Made when it does not exist; without "
    "it the server takes no backups.",
)
@_option(
    "--load",
    metavar="DIR",
    default=None,
    type=click.Path(path_type=Path),
    help="Load the containers of a folder that are not there yet: their items from DIR/DATABASE/CONTAINER.jsonl, "
    ".json, .csv or .parquet, their definitions from DIR/DATABASE/CONTAINER.container.json.",
)
@_option("--sample", is_flag=True, help="Load a small sample to look at, where it is not there yet.")
@_option(
    "--log-level",
    default="warning",
    show_default=True,
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="How much is logged to standard error. Keys and tokens never are.",
)
@_option(
    "--log-format",
    default=FORMATS[0],
    show_default=True,
    type=click.Choice(FORMATS),
    help="Whether a log line is text or a JSON object; both have the time with its zone.",
)
@_option(
    "--log-requests",
    is_flag=True,
    help="Log every request: its operation, container, partition key, physical partitions, status, charge and time.",
)
@_option(
    "--slow-query-ms",
    metavar="MS",
    default=None,
    type=click.IntRange(min=0),
    help="Log queries that take this long or longer, with their text and without their parameters.",
)
@_option(
    "--link",
    is_flag=True,
    help="Print the link to the explorer also where the output is no terminal. Who opens it within ten minutes gets "
    "the key, once; only a server on loopback has one.",
)
@_option("--no-link", is_flag=True, help="Print no such link on a terminal either.")
@_option(
    "--record-workload",
    default=Mode.OFF.value,
    show_default=True,
    type=click.Choice([mode.value for mode in Mode]),
    help="Record every request on items, with the values in it or with hashes of them, in the data directory. "
    "`pleiad workload` switches it for one container, whatever stands here.",
)
def serve(
    data: Path,
    ephemeral: bool,
    host: str,
    host_names: tuple[str, ...],
    port: int,
    heads: tuple[str, ...],
    no_direct: bool,
    profile: str,
    consistency: str,
    sample: bool,
    log_level: str,
    log_format: str,
    log_requests: bool,
    link: bool,
    no_link: bool,
    record_workload: str,
    workers: int,
    **given: Any,
) -> None:
    """Serve a database that Cosmos DB clients work against.

    HTTP, HTTPS and direct mode answer on the same port; the certificate is made on the first start and kept in the
    data directory. The server prints its endpoint and connection string, answers health checks at /_pleiad/health and
    readiness checks at /_pleiad/ready without a key, and on SIGTERM or Ctrl-C finishes running requests before it
    exits.

    \b
    Examples:
      pleiad serve                        data in ./pleiad-data, port 8081
      pleiad serve --ephemeral --port 0   a throw-away database on a free port
      PLEIAD_KEY=$(openssl rand -base64 64 | tr -d '\\n') \\
          pleiad serve --host 0.0.0.0 --host-name db.example.com
    """
    _refuse_both(click.get_current_context())
    fill_standard_descriptors()
    raise_descriptor_limit()
    give_back_free_memory()
    try:
        settings = Settings(
            data=None if ephemeral else data,
            host=host,
            host_names=_words(host_names),
            port=port,
            heads=_words(heads),
            ports=_taken_ports(given),
            direct=not no_direct,
            limits=limit_profiles.load(profile),
            consistency=BY_OPTION[consistency],
            log_requests=log_requests,
            record_workload=Mode(record_workload),
            **given,
        )
        shows_link = (link or (sys.stdout is not None and sys.stdout.isatty())) and not no_link
        logging_on = partial(logging_to_standard_error, log_level, log_format)
        if workers > 1:
            Supervisor(settings, workers, sample, shows_link, logging_on, _logged(settings)).run()
            return
        with logging_on(_logged(settings)):
            run(serve_until_stopped(Node(settings), sample, shows_link))
    except REFUSALS as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"cannot serve on {host}:{port} from {data}: {error.strerror or error}"
        ) from error


def _refuse_both(context: click.Context) -> None:
    """Refuses data that is to be kept and not to be kept; an option only wins over a variable."""
    data, ephemeral = (context.get_parameter_source(name) for name in ("data", "ephemeral"))
    is_overruled = (data, ephemeral) == (ParameterSource.ENVIRONMENT, ParameterSource.COMMANDLINE)
    if context.params["ephemeral"] and data is not ParameterSource.DEFAULT and not is_overruled:
        raise click.UsageError(
            "--ephemeral keeps nothing, so it has no use for --data: give only one of them"
        )


def _logged(settings: Settings) -> tuple[str, ...]:
    """The loggers that were asked for by options of their own, whatever the level is."""
    wanted = {REQUESTS: settings.log_requests, SLOW: settings.slow_query_ms is not None}
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def _taken_ports(given: dict[str, Any]) -> dict[str, int]:
    """The ports of further heads, taken out of the options; all that is left is a setting by the same name."""
    ports = {head.name: given.pop(f"{head.name}_port") for head in HEADS if head.name != NOSQL}
    return {name: port for name, port in ports.items() if port is not None}


def _words(given: tuple[str, ...]) -> tuple[str, ...]:
    """Names that may be given one by one, or several in one text."""
    return tuple(word for text in given for word in text.replace(",", " ").split())
