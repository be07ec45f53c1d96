"""`pleiad copy-data`: moves a whole account from one store to another."""

from __future__ import annotations

import asyncio
import sys
import time

import apsw
import click
import psycopg

from pleiad.errors import PleiadError
from pleiad.job.copy_data import Copied, CopyProgress, CopyStage, copy_account
from pleiad.job.place import CopyError, DataPlace, opened_alone, parse_place
from pleiad.store.postgres.schema import SchemaError as DatabaseSchemaError
from pleiad.store.sqlite.schema import SchemaError

_BAR_CHARACTERS = 24
_DRAWINGS_SECONDS = 0.1
_LINES_SECONDS = 5.0


@click.command("copy-data", short_help="Copy an account to another store.")
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
      pleiad copy-data --from sqlite:pleiad-data --to postgresql://pleiad@db.example/pleiad
      pleiad copy-data --from postgresql://pleiad@db.example/pleiad --to sqlite:pleiad-data
      pleiad copy-data --from sqlite:pleiad-data --to sqlite:second-data
    """
    try:
        origin, goal = parse_place(source), parse_place(target)
        if origin.identity == goal.identity:
            raise CopyError("source and target are the same")
        copied = asyncio.run(_copy(origin, goal))
    except CopyError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; the same command goes on where it was") from None
    except (PleiadError, SchemaError, DatabaseSchemaError, apsw.Error, psycopg.Error, OSError) as error:
        raise click.ClickException(
            f"the copy stopped: {error}; when that is mended, the same command goes on where it was"
        ) from error
    resumed = f", {copied.resumed_items:,} of them by an earlier run" if copied.resumed_items else ""
    partitions = "partition" if copied.partitions == 1 else "partitions"
    versions = f" and {copied.versions:,} versions" if copied.versions else ""
    click.echo(
        f"copied {copied.items:,} items{versions} in {copied.partitions:,} physical {partitions}{resumed}; "
        f"counts and checksums agree"
    )


async def _copy(source: DataPlace, target: DataPlace) -> Copied:
    meter = Meter(sys.stderr.isatty())
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
    """Shows how far a copy is: a bar on a terminal, else a line now and then."""

    def __init__(self, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._phase: CopyStage | None = None
        self._began = self._shown = 0.0
        self._done_at_first = 0

    def tell(self, step: CopyProgress) -> None:
        """Takes note of a step, and shows it unless the last one was shown a moment ago."""
        now = time.monotonic()
        if step.phase is not self._phase:
            self._phase, self._began, self._done_at_first = step.phase, now, step.done
            self._shown = 0.0
            if step.done < step.total and not self._is_terminal:
                return
        pause = _DRAWINGS_SECONDS if self._is_terminal else _LINES_SECONDS
        if now - self._shown < pause and step.done < step.total:
            return
        self._shown = now
        text = progress_text(step, step.done - self._done_at_first, now - self._began)
        if self._is_terminal:
            click.echo(f"\r{bar(step)} {text}\x1b[K", err=True, nl=False)
        else:
            click.echo(text, err=True)

    def end(self) -> None:
        """Leaves the line of the bar."""
        if self._is_terminal and self._phase is not None:
            click.echo("", err=True)


def bar(step: CopyProgress) -> str:
    """A bar as full as the phase is done."""
    full = _BAR_CHARACTERS * min(step.done, step.total) // step.total if step.total else _BAR_CHARACTERS
    return f"[{'#' * full}{'.' * (_BAR_CHARACTERS - full)}]"


def progress_text(step: CopyProgress, new: int, seconds: float) -> str:
    """How far a phase is; with its speed and the time left once something was done."""
    text = f"{step.phase.value} {step.done:,} of {step.total:,} items"
    if new <= 0 or seconds <= 0:
        return text
    left = max(0, step.total - step.done) * seconds / new
    return f"{text}, {new / seconds:,.0f} items/s, {duration(left)} left"


def duration(seconds: float) -> str:
    """A time in the two units that matter."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"
