"""`pleiad backup`: a backup of an account in SQLite, by its running server or of a directory at rest."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pleiad.cli.options import asking, server_options
from pleiad.cli.view.progress_line import ProgressLine
from pleiad.cli.view.table import table
from pleiad.cli.view.words import counted
from pleiad.client.admin import Admin
from pleiad.job.backup.make import make_backup
from pleiad.job.backup.manifest import BackupError
from pleiad.job.backup.shelf import Shelf
from pleiad.job.backup.source import at_rest
from pleiad.store.postgres.database import SCHEMES
from pleiad.store.sqlite.schema import SchemaError

_POLL_SECONDS = 0.2
_POSTGRES = (
    "an account in PostgreSQL is backed up with PostgreSQL's own programs, which see one moment while servers run: "
    "pg_dump for one database, pg_basebackup for the whole server and any point in time"
)


@click.command()
@server_options
@click.option(
    "--data",
    metavar="DIR",
    default=None,
    help="Back up this data directory, which no server has open, instead of asking a server.",
)
@click.option(
    "--to",
    "target",
    metavar="DIR",
    default=None,
    type=click.Path(path_type=Path),
    help="With --data or --list: the folder of the backups. A server has its own, by `serve --backup-dir`.",
)
@click.option(
    "--keep",
    metavar="N",
    default=None,
    type=click.IntRange(1, 100_000),
    help="Afterwards remove the oldest backups of the account beyond this number.",
)
@click.option("--list", "lists", is_flag=True, help="List the backups there are, and take none.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def backup(
    endpoint: str,
    key: str,
    data: str | None,
    target: Path | None,
    keep: int | None,
    lists: bool,
    as_json: bool,
) -> None:
    """Back up an account in SQLite, while its server runs or while none does.

    A backup is a folder that is complete in itself and holds one point in time: every write that was acknowledged
    before the backup began is in it. Segments that have not changed since the last backup are shared with it and
    not copied again. Each copy is compared with its checksums, and the backup appears when all of it is on the disk.

    A running server is asked with the master key, and puts the backup into the folder it was started with. Accounts
    in PostgreSQL are backed up with pg_dump or pg_basebackup.

    \b
    Examples:
      pleiad backup --keep 14
      pleiad backup --list
      pleiad backup --data pleiad-data --to /mnt/backups
    """
    if data is not None and data.startswith(SCHEMES):
        raise click.ClickException(_POSTGRES)
    if data is not None and target is None:
        raise click.UsageError("--data needs --to, the folder of the backups")
    if lists and keep is not None:
        raise click.UsageError("--keep is for a backup that is taken: --list takes none")
    if target is not None and data is None and not lists:
        raise click.UsageError(
            "--to is for --data: a server puts backups into the folder of its --backup-dir"
        )
    if target is not None:
        found = _list_at(target) if lists else [_at_rest(Path(data or ""), target, keep)]
    else:
        with asking(endpoint, key) as admin:
            found = list(admin.backups()["backups"]) if lists else [_by_server(admin, keep)]
    if as_json:
        click.echo(json.dumps({"backups": found} if lists else found[0]))
    else:
        click.echo(_table(found) if lists else _told(found[0]))


def _list_at(target: Path) -> list[dict[str, Any]]:
    return [each.summary() for each in Shelf(target).all()]


def _at_rest(data: Path, target: Path, keep: int | None) -> dict[str, Any]:
    meter = ProgressLine()
    shelf = Shelf(target)
    try:
        with at_rest(data) as source:
            made = make_backup(
                source,
                shelf,
                None,
                lambda step: meter.step(step.stage.value, step.done_bytes, step.total_bytes, "bytes"),
            )
        removed = [] if keep is None else shelf.thin_out(made, keep)
    except (BackupError, SchemaError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; nothing of the backup is left") from None
    finally:
        meter.clear()
    return {**made.summary(), "removed": removed}


def _by_server(admin: Admin, keep: int | None) -> dict[str, Any]:
    """Has a server take a backup; Ctrl-C stops the waiting only."""
    meter = ProgressLine()
    run = admin.start_backup(keep)
    try:
        while run["state"] not in ("whole", "failed"):
            meter.step(run["state"], run["bytesDone"], run["bytesTotal"], "bytes")
            time.sleep(_POLL_SECONDS)
            run = admin.backup(run["name"])
    except KeyboardInterrupt:
        raise click.ClickException(f"the backup {run['name']} goes on in the server") from None
    finally:
        meter.clear()
    if run["state"] == "failed":
        raise click.ClickException(f"the server made no backup: {run['problem']}")
    return run


def _told(made: Mapping[str, Any]) -> str:
    line = (
        f"backup {made['name']} of {made['takenAt']}: {counted(made['segments'], 'segment')}, {made['bytes']:,} bytes, "
        f"{made['newBytes']:,} of them new"
    )
    removed = made.get("removed")
    return f"{line}\nremoved: {', '.join(removed)}" if removed else line


def _table(found: list[dict[str, Any]]) -> str:
    if not found:
        return "there are no backups"
    columns = ("name", "segments", "bytes", "newBytes")
    return table([{name: each[name] for name in columns} for each in found], None) or ""
