"""`pleiad restore`: makes a data directory of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from pleiad.cli.view.progress_line import ProgressLine
from pleiad.cli.view.words import counted
from pleiad.job.backup.manifest import BackupError, moment
from pleiad.job.backup.restore import find_backup
from pleiad.job.backup.restore import restore as restore_backup


@click.command()
@click.argument("place", metavar="BACKUP", type=click.Path(path_type=Path))
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
def restore(place: Path, data: Path) -> None:
    """Make the data directory DATA of BACKUP: the folder of one backup, or a folder of backups for the newest.

    DATA must be new or empty. Every file is compared with the checksum of the backup, and then all items, indexes and
    counters are looked through as by `pleiad check`, before anything is put in place. A restore that was interrupted
    leaves a directory on which no server starts; the same command begins it again.

    What was written after the backup is not there. Clients that saw it have to begin new sessions and to start their
    change feeds anew; see Backup and restore in docs/operate.md.

    \b
    Examples:
      pleiad restore /mnt/backups/2026-11-17T142003Z pleiad-data
      pleiad restore /mnt/backups pleiad-data
    """
    shown = ProgressLine()
    try:
        folder, manifest = find_backup(place)
        report = restore_backup(folder, manifest, data, shown.step)
    except BackupError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; the same command begins again") from None
    finally:
        shown.clear()
    click.echo(
        f"restored {counted(report.items, 'item')} in {counted(report.segments, 'segment')} "
        f"as of {moment(manifest.taken_at)} to {data}"
    )
