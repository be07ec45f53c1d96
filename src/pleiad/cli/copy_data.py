"""`pleiad copy-data`: moves a whole account from one store to another."""

from __future__ import annotations

import asyncio
import time

import apsw
import click

from pleiad.cli.view.progress_line import ProgressLine, duration
from pleiad.cli.view.words import counted
from pleiad.errors import PleiadError
from pleiad.job.copy_data import Copied, CopyProgress, CopyStage, copy_account
from pleiad.job.place import CopyError, DataPlace, opened_alone, parse_place
from pleiad.store.postgres.database import DriverMissingError, or_of_driver
from pleiad.store.postgres.database import SchemaError as DatabaseSchemaError
from pleiad.store.sqlite.schema import SchemaError


@click.command("copy-data")
@click.option(
    "--from",
    "source",
    metavar="PLACE",
    required=True,
    envvar="PLEIAD_COPY_FROM",
    show_envvar=True,
    help="The account to copy: sqlite:DIR, or postgresql://... No server may run on it.",
)
@click.option(
    "--to",
    "target",
    metavar="PLACE",
    required=True,
    envvar="PLEIAD_COPY_TO",
    show_envvar=True,
    help="Where to copy it: a directory or database without an account. It is made when it is new.",
)
def copy_data(source: str, target: str) -> None:
    """Copy a whole account from one store to another: SQLite to PostgreSQL, back, or to a new directory.

    Databases, containers with their physical partitions, throughput, users, permissions, scripts and all items go
    over as they are, so that ETags, session tokens, continuation tokens and change feeds go on to hold. The source is
    only read. Stop its servers first; none can start until the copy has ended.

    A copy that was interrupted goes on where it was when the same command is given again. At the end each physical
    partition is compared by count and checksum, and only then does the account appear in the target. Give a
    connection string with a password by the variable, which no process list shows.

    \b
    Examples:
      pleiad copy-data --from sqlite:pleiad-data --to postgresql://me@db/pleiad
      pleiad copy-data --from postgresql://me@db/pleiad --to sqlite:pleiad-data
      pleiad copy-data --from sqlite:pleiad-data --to sqlite:second-data
    """
    try:
        origin, goal = parse_place(source), parse_place(target)
        if origin.identity == goal.identity:
            raise CopyError("source and target are the same")
        copied = asyncio.run(_copy(origin, goal))
    except (CopyError, DriverMissingError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; the same command goes on where it was") from None
    except or_of_driver(PleiadError, SchemaError, DatabaseSchemaError, apsw.Error, OSError) as error:
        raise click.ClickException(
            f"the copy stopped: {error}; when that is mended, the same command goes on where it was"
        ) from error
    resumed = f", {copied.resumed_items:,} of them by an earlier run" if copied.resumed_items else ""
    versions = f" and {counted(copied.versions, 'version')}" if copied.versions else ""
    click.echo(
        f"copied {counted(copied.items, 'item')}{versions} in {counted(copied.partitions, 'physical partition')}"
        f"{resumed}; counts and checksums agree"
    )


async def _copy(source: DataPlace, target: DataPlace) -> Copied:
    meter = Meter()
    async with (
        opened_alone(source, must_exist=True) as origin,
        opened_alone(target, must_exist=False) as goal,
    ):
        click.echo(f"from {source}\nto   {target}", err=True)
        try:
            return await copy_account(origin, goal, meter.tell)
        finally:
            meter.end()


class Meter:
    """Shows how far a copy is."""

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._phase: CopyStage | None = None
        self._began = 0.0
        self._is_new = False
        """Whether nothing of the phase was shown yet."""
        self._done_at_first = 0

    def tell(self, step: CopyProgress) -> None:
        """Takes note of a step, and shows it unless another of its phase was shown a moment ago."""
        now = time.monotonic()
        if step.phase is not self._phase:
            self._phase, self._began, self._done_at_first = step.phase, now, step.done
            self._is_new = True
            if step.done < step.total:
                return
        if self._is_new or self._line.is_due or step.done >= step.total:
            self._is_new = False
            share = step.done / step.total if step.total else 1.0
            self._line.show(progress_text(step, step.done - self._done_at_first, now - self._began), share)

    def end(self) -> None:
        self._line.clear()


def progress_text(step: CopyProgress, new: int, seconds: float) -> str:
    """How far a phase is; with its speed and the time left once something was done."""
    text = f"{step.phase.value} {step.done:,} of {counted(step.total, 'item')}"
    if new <= 0 or seconds <= 0:
        return text
    left = max(0, step.total - step.done) * seconds / new
    return f"{text}, {new / seconds:,.0f} items/s, {duration(left)} left"
