"""`pleiad check`: looks for damage in an account that no server has open."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click
import psycopg

from pleiad.job.check import CheckError, CheckReport, check_directory
from pleiad.job.check_database import check_database

_PROGRESS_SECONDS = 2.0


@click.command("check", short_help="Look for damage in a data directory or a database.")
@click.argument("place", metavar="DATA", envvar="PLEIAD_CHECK")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def check(place: str, as_json: bool) -> None:
    """Look for damage in DATA: a data directory, or a database as postgresql://user@host/database.

    Every item, version and record is compared with its checksum, indexes with the rows and back, counters with what
    they count, and segments with what the catalog knows of them; files that nobody knows are named. Nothing is
    written. A data directory must not be in use by a server; a database may be.

    The exit code is 0 when all is whole, and 1 when something is damaged or missing or could not be looked at. Give a
    connection string with a password by the variable PLEIAD_CHECK, which no process list shows.

    \b
    Examples:
      pleiad check pleiad-data
      pleiad check --json /var/lib/pleiad
      PLEIAD_CHECK=postgresql://pleiad@db.example/pleiad pleiad check
    """
    progress = _Progress()
    try:
        if place.startswith(("postgresql://", "postgres://")):
            report = check_database(place, progress.tell)
        else:
            report = check_directory(Path(place.removeprefix("sqlite:")), progress.tell)
    except CheckError as error:
        raise click.ClickException(str(error)) from error
    except (OSError, psycopg.Error) as error:
        raise click.ClickException(f"{type(error).__name__}: {error}".strip()) from error
    click.echo(json.dumps(_as_json(report)) if as_json else _as_text(report))
    if not report.is_whole:
        sys.exit(1)


class _Progress:
    """Tells on standard error how far it is, now and then."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def tell(self, done: int, total: int, name: str) -> None:
        if time.monotonic() - self._told >= _PROGRESS_SECONDS:
            self._told = time.monotonic()
            click.echo(f"looked through {done:,} of {total:,} segments; next is {name}", err=True)


def _as_text(report: CheckReport) -> str:
    lines = [
        f"{'note' if finding.is_note else 'DAMAGE'}  {finding.place}: {finding.message}"
        for finding in report.findings
    ]
    versions = f" and {report.versions:,} versions" if report.versions else ""
    seen = f"{report.items:,} items{versions} in {report.segments:,} segments"
    wrong = sum(not finding.is_note for finding in report.findings)
    lines.append(f"{seen}: all is whole" if report.is_whole else f"{seen}: {wrong} found wrong")
    return "\n".join(lines)


def _as_json(report: CheckReport) -> dict[str, object]:
    return {
        "ok": report.is_whole,
        "segments": report.segments,
        "items": report.items,
        "versions": report.versions,
        "itemsWithoutChecksum": report.without_checksum,
        "findings": [
            {
                "kind": "note" if finding.is_note else "damage",
                "place": finding.place,
                "message": finding.message,
            }
            for finding in report.findings
        ],
    }
