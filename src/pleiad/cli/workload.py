"""`pleiad workload`: switches the workload record of a container, shows it, and moves it between files and servers."""

from __future__ import annotations

import io
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import click

from pleiad.cli.options import asking, container_names, server_options
from pleiad.cli.partitions import look_of_terminal
from pleiad.cli.view.table import json_text, table
from pleiad.cli.view.words import counted
from pleiad.limits import size_text
from pleiad.workload import record
from pleiad.workload.record import BadLine

_PIECE_BYTES = 1 << 20
_TOO_MANY_REQUESTS = 429
_TOLD_MAX = 10

_container = click.argument("container", metavar="DB/CONTAINER", callback=container_names)
_as_hashes = click.option(
    "--hashes", is_flag=True, help="Put hashes in the place of keys, ids and values; equal ones stay equal."
)


@click.group()
def workload() -> None:
    """Record the requests on the items of a container: what was asked, for which key, at what charge.

    The record is what a partition key is chosen by. It is kept by the server within a limit, the oldest requests go
    first, and it stays when the server is restarted.

    \b
    Examples:
      pleiad workload on sample/food
      pleiad workload show sample/food
      pleiad workload export sample/food requests.jsonl --hashes
      pleiad workload off sample/food
    """


@workload.command("on", short_help="Begin to record.")
@_container
@_as_hashes
@server_options
def switch_on(container: tuple[str, str], hashes: bool, endpoint: str, key: str) -> None:
    """Record every request on the items of DB/CONTAINER from now on."""
    with asking(endpoint, key) as admin:
        admin.switch_workload(*container, "hashes" if hashes else "values")
    what = "hashes of the values" if hashes else "values"
    click.echo(f"requests on {'/'.join(container)} are recorded, with {what} in them")


@workload.command("off", short_help="Stop recording.")
@_container
@server_options
def switch_off(container: tuple[str, str], endpoint: str, key: str) -> None:
    """Record no more requests on DB/CONTAINER; what was recorded stays."""
    with asking(endpoint, key) as admin:
        admin.switch_workload(*container, "off")
    click.echo(f"requests on {'/'.join(container)} are not recorded any more; what was recorded stays")


@workload.command("clear", short_help="Remove a record.")
@_container
@server_options
def clear(container: tuple[str, str], endpoint: str, key: str) -> None:
    """Remove what was recorded of DB/CONTAINER, and its switch: it goes by what the server was started with."""
    with asking(endpoint, key) as admin:
        admin.forget_workload(*container)
    click.echo(f"the record of {'/'.join(container)} is removed")


@workload.command("show", short_help="Sum a record up.")
@_container
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@server_options
def show(container: tuple[str, str], as_json: bool, endpoint: str, key: str) -> None:
    """Show whether DB/CONTAINER is recorded, and its record by operation.

    For each operation: requests, request units and their mean, the physical partitions that a request went to
    (fan-out), requests without a partition key, and those that were answered with 429.
    """
    with asking(endpoint, key) as admin:
        state = admin.workload(*container)
        sums = _summed(_requests(admin.workload_lines(*container)))
    rows = [each.row(name) for name, each in sorted(sums.items(), key=lambda pair: -pair[1].charge_ru)]
    if as_json:
        click.echo(json_text({**state, "operations": rows}, indented=True))
        return
    click.echo(_heading("/".join(container), state))
    text = table(rows, look_of_terminal().columns) if rows else None
    if text:
        click.echo(f"\n{text}")


@workload.command("export", short_help="Write a record to a file.")
@_container
@click.argument("file", metavar="FILE")
@_as_hashes
@server_options
def export(container: tuple[str, str], file: str, hashes: bool, endpoint: str, key: str) -> None:
    """Write the record of DB/CONTAINER to FILE, as JSON lines; - is standard output.

    The form is described in docs/workload.md. Hashes are those of one secret of the server, so several files of one
    server can be compared.
    """
    count = 0
    with asking(endpoint, key) as admin, _written(file) as out:
        for lines in admin.workload_lines(*container, hashed=hashes):
            out.write(lines)
            count += lines.count(b"\n")
    click.echo(f"exported {counted(count, 'request')}", err=True)


@workload.command("import", short_help="Add a file to a record.")
@_container
@click.argument("file", metavar="FILE", type=click.File("rb"))
@server_options
def import_(container: tuple[str, str], file: IO[bytes], endpoint: str, key: str) -> None:
    """Put the requests in FILE behind the record of DB/CONTAINER; - is standard input.

    FILE has JSON lines, exported by another server or made from the logs of a service. Bad lines are told and left
    out, and the exit code is 1 then.
    """
    bad: list[BadLine] = []
    count = 0
    with asking(endpoint, key) as admin:
        for lines in _pieces(file, bad):
            count += admin.add_workload(*container, lines)
    click.echo(f"added {counted(count, 'request')} to the record of {'/'.join(container)}", err=True)
    if bad:
        for each in bad[:_TOLD_MAX]:
            click.echo(f"{file.name}, {each}", err=True)
        raise click.ClickException(f"{counted(len(bad), 'line')} of {file.name} could not be read")


@dataclass(slots=True)
class _Sums:
    """The requests of one operation, added up."""

    requests: int = 0
    charge_ru: float = 0.0
    partitions: int = 0
    keyless: int = 0
    throttled: int = 0

    def row(self, operation: str) -> dict[str, Any]:
        return {
            "operation": operation,
            "requests": self.requests,
            "RU": round(self.charge_ru, 2),
            "RU each": round(self.charge_ru / self.requests, 2),
            "fan-out": round(self.partitions / self.requests, 1),
            "no key": self.keyless,
            "429s": self.throttled,
        }


def _summed(requests: Iterable[record.Request]) -> dict[str, _Sums]:
    sums: dict[str, _Sums] = defaultdict(_Sums)
    for request in requests:
        each = sums[request.operation.value]
        each.requests += 1
        each.charge_ru += request.charge
        each.partitions += request.partitions
        each.keyless += request.key is None
        each.throttled += request.status == _TOO_MANY_REQUESTS
    return sums


def _heading(name: str, state: dict[str, Any]) -> str:
    mode = {"off": "is not recorded", "values": "is recorded", "hashes": "is recorded with hashes"}
    lost = f", {counted(state['lost'], 'request')} lost" if state["lost"] else ""
    return (
        f"{name} {mode[state['record']]}   {counted(state['records'], 'request')} in "
        f"{size_text(state['bytes'])} of {size_text(state['limitBytes'])}{lost}"
    )


def _requests(pieces: Iterable[bytes]) -> Iterator[record.Request]:
    for lines in pieces:
        yield from record.read(io.BytesIO(lines), lambda _: None)


def _pieces(file: IO[bytes], bad: list[BadLine]) -> Iterator[bytes]:
    """The good lines of a file, in pieces that a server takes."""
    lines: list[bytes] = []
    size_bytes = 0
    for request in record.read(file, bad.append):
        line = record.encode(request) + b"\n"
        if lines and size_bytes + len(line) > _PIECE_BYTES:
            yield b"".join(lines)
            lines, size_bytes = [], 0
        lines.append(line)
        size_bytes += len(line)
    if lines:
        yield b"".join(lines)


@contextmanager
def _written(file: str) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears when it is whole."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    beside = f"{file}.part"
    try:
        with open(beside, "wb") as out:
            yield out
        os.replace(beside, file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror or error}") from None
