"""`pleiad check`: looks for damage in an account that no server has open."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pleiad.cli.view.progress_line import ProgressLine
from pleiad.cli.view.words import counted
from pleiad.job.backup.manifest import BackupError, faults_of, read_manifest
from pleiad.job.check import CheckError, CheckReport, Tell, check_directory
from pleiad.store.postgres.database import SCHEMES, DriverMissingError, driver, or_of_driver
from pleiad.store.sqlite.directory import BACKUP_FILE


@click.command()
@click.argument("place", metavar="DATA", envvar="PLEIAD_CHECK")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def check(place: str, as_json: bool) -> None:
    """Look for damage in DATA: a data directory, or a database as postgresql://user@host/database.

    Every item, version and record is compared with its checksum, indexes with the rows and back, counters with what
    they count, and segments with what the catalog knows of them; files that nobody knows are named. Nothing is
    written. A data directory must not be in use by a server; a database may be. DATA may be a backup too, whose files
    are compared with the checksums in it.

    The exit code is 0 when all is whole, and 1 when something is damaged or missing or could not be looked at. Give a
    connection string with a password by the variable PLEIAD_CHECK, which no process list shows.

    \b
    Examples:
      pleiad check pleiad-data
      pleiad check --json /var/lib/pleiad
      PLEIAD_CHECK=postgresql://pleiad@db.example/pleiad pleiad check
    """
    line = ProgressLine()

    def tell(done: int, total: int, name: str) -> None:
        line.step("looked through", done, total, "segments")

    try:
        if place.startswith(SCHEMES):
            report = _check_database(place, tell)
        else:
            directory = Path(place.removeprefix("sqlite:"))
            manifest = read_manifest(directory) if (directory / BACKUP_FILE).exists() else None
            report = check_directory(directory, tell)
            # The files of a backup are compared with the checksums that it has of them, too.
            for path, fault in faults_of(directory, manifest) if manifest is not None else ():
                report.wrong(path, fault)
    except (CheckError, BackupError, DriverMissingError) as error:
        raise click.ClickException(str(error)) from error
    except or_of_driver(OSError) as error:
        raise click.ClickException(f"{type(error).__name__}: {error}".strip()) from error
    finally:
        line.clear()
    click.echo(json.dumps(_as_json(report)) if as_json else _as_text(report))
    if not report.is_whole:
        sys.exit(1)


def _check_database(dsn: str, tell: Tell) -> CheckReport:
    driver()
    from pleiad.job.check_database import check_database

    return check_database(dsn, tell)


def _as_text(report: CheckReport) -> str:
    lines = [
        f"{'note' if finding.is_note else 'DAMAGE'}  {finding.place}: {finding.message}"
        for finding in report.findings
    ]
    versions = f" and {counted(report.versions, 'version')}" if report.versions else ""
    seen = f"{counted(report.items, 'item')}{versions} in {counted(report.segments, 'segment')}"
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
