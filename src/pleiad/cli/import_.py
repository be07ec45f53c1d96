"""`pleiad import`: brings the items of a file into a container of a running server."""

from __future__ import annotations

import time
from pathlib import Path

import click

from pleiad.cli.options import container_names, server_options
from pleiad.cli.view.progress_line import ProgressLine
from pleiad.cli.view.table import shown
from pleiad.cli.view.words import counted
from pleiad.client.admin import RequestRefusedError
from pleiad.client.bulk import BulkWriter
from pleiad.client.connection import Connection, ConnectionFailedError
from pleiad.client.containers import (
    FoundContainer,
    create_container,
    find_container,
    partition_key_of,
    with_bounds,
)
from pleiad.client.import_items import ImportCounts, ImportOptions, ImportStoppedError, ItemImport
from pleiad.errors import PleiadError
from pleiad.job.import_state import ImportIdentity, ImportState, StateFile, identity_of_source
from pleiad.job.item_file.entry import Entry, ItemFileError
from pleiad.job.item_file.form import Form
from pleiad.job.item_file.reader import ItemFile, ReadOptions, open_items
from pleiad.job.rejects import Rejects
from pleiad.keys.definition import KeyDefinition
from pleiad.limits import Limits

_REJECTS_SHOWN = 10
_HELD_BACK = 0.5
"""Of an import whose connections waited for request units for so much of its time it is said how to get more."""
_HELD_BACK_SECONDS = 3.0
"""Not before that: what a container saved up may be gone in a moment."""


def key_paths(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """The option --partition-key: paths with commas between them."""
    if text is None:
        return ()
    paths = tuple(path.strip() for path in text.split(","))
    try:
        KeyDefinition.from_json(partition_key_of(paths), Limits())
    except PleiadError as error:
        raise click.BadParameter(error.message) from None
    return paths


def chosen_form(context: click.Context, option: click.Parameter, word: str | None) -> Form | None:
    """The option --format."""
    return None if word is None else Form(word)


def column_names(context: click.Context, option: click.Parameter, text: str) -> frozenset[str]:
    """The option --text: names with commas between them."""
    return frozenset(filter(None, text.split(",")))


def one_letter(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """The option --delimiter: one character, or the two that stand for a tab."""
    letter = "\t" if text == "\\t" else text
    if letter is not None and (len(letter) != 1 or letter in '"\r\n'):
        raise click.BadParameter(f"'{text}' is not one character")
    return letter


@click.command("import")
@click.argument("file", metavar="FILE")
@click.argument("container", metavar="DB/CONTAINER", callback=container_names)
@server_options
@click.option("--partition-key", "paths", metavar="PATHS", callback=key_paths,
              help="The partition key of the container, such as /city, or /country,/city for a hierarchical one. Where "
              "there is no container, it is made with it; where there is one, it must be its key.")  # fmt: skip
@click.option("--throughput", "throughput_ru", metavar="RU", type=click.IntRange(min=1),
              help="The RU/s of a container that is made.")  # fmt: skip
@click.option("--format", "form", type=click.Choice([form.value for form in Form]), callback=chosen_form,
              show_default="by the name of the file, or by its first bytes",
              help="How items stand in the file.")  # fmt: skip
@click.option("--delimiter", metavar="CHARACTER", callback=one_letter, show_default="a comma; a tab for .tsv",
              help="What stands between the cells of CSV.")  # fmt: skip
@click.option("--text", "text_columns", metavar="COLUMNS", default="", callback=column_names,
              help="Columns of CSV whose cells are text even where they look like numbers, with commas between them; "
              "* for all.")  # fmt: skip
@click.option("--upsert", "is_upsert", is_flag=True,
              help="Replace items that exist. Otherwise they stay, and those of the file are rejected.")  # fmt: skip
@click.option("--generate-id", "generates_ids", is_flag=True, help="Give items without an id one.")
@click.option("--items-per-second", metavar="N", type=click.FloatRange(min=0, min_open=True),
              help="Go no faster than that.")  # fmt: skip
@click.option("--ru-per-second", metavar="RU", type=click.FloatRange(min=0, min_open=True),
              help="Use no more request units than that.")  # fmt: skip
@click.option("--connections", metavar="N", type=click.IntRange(1, 64), default=24, show_default=True,
              help="Requests at a time.")  # fmt: skip
@click.option("--rejects", "rejects_path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              show_default="FILE.rejects.jsonl; none for standard input",
              help="Where to put what could not be brought in, with lines and reasons.")  # fmt: skip
@click.option("--max-rejects", "rejects_max", metavar="N", type=click.IntRange(min=0), default=1_000,
              show_default=True, help="Stop when there are more.")  # fmt: skip
@click.option("--state", "state_path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              show_default="FILE.import-state; none for standard input",
              help="Where to note how far the import is.")  # fmt: skip
@click.option("--restart", is_flag=True, help="Begin anew, whatever an earlier run has noted.")
@click.option("--quiet", is_flag=True, help="Tell no progress.")
def import_(
    file: str,
    container: tuple[str, str],
    endpoint: str,
    key: str,
    paths: tuple[str, ...],
    throughput_ru: int | None,
    form: Form | None,
    delimiter: str | None,
    text_columns: frozenset[str],
    is_upsert: bool,
    generates_ids: bool,
    items_per_second: float | None,
    ru_per_second: float | None,
    connections: int,
    rejects_path: Path | None,
    rejects_max: int,
    state_path: Path | None,
    restart: bool,
    quiet: bool,
) -> None:
    """Bring the items of FILE into a container of a running server; - is standard input.

    FILE is JSON lines, JSON (an array, or objects one after the other), CSV or Parquet, plain or packed with gzip or
    zstd. An import that was interrupted goes on where it was when the same command is given again: nothing is lost, and
    nothing is there twice. Refusals for the rate (429) are waited for.

    \b
    Examples:
      pleiad import orders.jsonl shop/orders --partition-key /customerId
      pleiad import people.csv.gz town/people --partition-key /country,/city
      pleiad import orders.parquet shop/orders --upsert --ru-per-second 2000
      zcat orders.jsonl.gz | pleiad import - shop/orders

    The exit code is 0 when every item was brought in, 1 when some were rejected or it stopped, 2 for a wrong command.
    """
    path = None if file == "-" else Path(file)
    reading = ReadOptions(form=form, delimiter=delimiter, text_columns=text_columns)
    options = ImportOptions(
        is_upsert=is_upsert,
        generates_ids=generates_ids,
        connections=connections,
        items_per_second=items_per_second,
        ru_per_second=ru_per_second,
        rejects_max=rejects_max,
    )
    rejects = Rejects(rejects_path or (path and Path(f"{path}.rejects.jsonl")))
    state_file = StateFile(state_path or (path and Path(f"{path}.import-state")))
    _refuse_input(path, rejects.path, state_file.path)
    try:
        with open_items(path, reading) as items:
            found = _container(endpoint, key, container, paths, throughput_ru)
            state, is_resumed = _state(state_file, rejects, path, endpoint, found, is_upsert, restart)
            teller = _Teller(ProgressLine(quiet), items, found, options)
            run = ItemImport(
                lambda: BulkWriter(endpoint, key, found, is_upsert),
                found,
                options,
                state,
                state_file,
                rejects,
                teller.tell,
                teller.reject,
                is_resumed,
            )
            counts = teller.run(run)
    except (ConnectionFailedError, RequestRefusedError, ItemFileError) as error:
        raise click.ClickException(str(error)) from None
    teller.end(counts, rejects.path)


def _refuse_input(path: Path | None, *written: Path | None) -> None:
    """What the import writes may not stand in place of what it reads, nor of what else it writes."""
    places = [each.resolve() for each in (path, *written) if each is not None]
    if len(set(places)) < len(places):
        raise click.UsageError(
            "--rejects and --state need a file of their own each, and not the one that is imported"
        )


def _container(
    endpoint: str, key: str, names: tuple[str, str], paths: tuple[str, ...], throughput_ru: int | None
) -> FoundContainer:
    """The container to import into, made if it has to be."""
    name = "/".join(names)
    with Connection(endpoint, key) as connection:
        found = find_container(connection, *names)
        if found is None and not paths:
            raise click.ClickException(
                f"there is no container {name}: make it, or give its --partition-key and it is made"
            )
        if found is None:
            definition = {"id": names[1], "partitionKey": partition_key_of(paths)}
            found = create_container(connection, names[0], definition, throughput_ru)
            click.echo(f"made the container {name} with the partition key {', '.join(paths)}", err=True)
        elif paths and found.key.paths != paths:
            raise click.ClickException(
                f"the partition key of {name} is {', '.join(found.key.paths)}, and a key never changes"
            )
        return with_bounds(connection, found)


def _state(
    state_file: StateFile,
    rejects: Rejects,
    path: Path | None,
    endpoint: str,
    container: FoundContainer,
    is_upsert: bool,
    restart: bool,
) -> tuple[ImportState, bool]:
    """Where the import begins, and whether an earlier run has come before it."""
    source, size_bytes, modified_ns = identity_of_source(path)
    identity = ImportIdentity(
        source=source,
        source_bytes=size_bytes,
        source_modified_ns=modified_ns,
        endpoint=endpoint.rstrip("/"),
        container=f"{container.database}/{container.name}",
        container_rid=container.rid,
        is_upsert=is_upsert,
    )
    if restart:
        state_file.remove()
    state = state_file.load(identity)
    if state is None:
        rejects.begin()
        return ImportState(identity=identity), False
    rejects.keep_up_to(state.done)
    click.echo(f"an earlier run brought it up to entry {state.done:,}; it goes on from there", err=True)
    return state, True


class _Teller:
    """What the person at the terminal is told."""

    def __init__(
        self, line: ProgressLine, items: ItemFile, container: FoundContainer, options: ImportOptions
    ) -> None:
        self._line = line
        self._items = items
        self._is_limit_known = options.ru_per_second is not None
        self._container = f"{container.database}/{container.name}"
        self._began = time.monotonic()
        self._written_before = 0
        self._rejects_shown = 0

    def run(self, run: ItemImport) -> ImportCounts:
        """The whole import; what stops it is one message."""
        self._written_before = run.counts.written
        try:
            return run.run(self._items)
        except KeyboardInterrupt:
            reason = "interrupted"
        except (ImportStoppedError, RequestRefusedError) as error:
            reason = str(error)
        finally:
            self._line.clear()
        again = "; the same command goes on from here" if run.is_kept else ""
        counts = run.counts
        raise click.ClickException(
            f"{reason}\nstopped after {counted(counts.written, 'item')} and {counted(counts.rejected, 'reject')}{again}"
        )

    def tell(self, counts: ImportCounts) -> None:
        if self._line.is_due:
            self._tell_limit(counts)
            self._line.show(self._progress(counts), self._share)

    def _tell_limit(self, counts: ImportCounts) -> None:
        """Says once that the container's throughput is what an import waits for, while more can still be given."""
        seconds = time.monotonic() - self._began
        if self._is_limit_known or counts.throttled_seconds <= _HELD_BACK * max(seconds, _HELD_BACK_SECONDS):
            return
        self._is_limit_known = True
        self._line.clear()
        click.echo(
            f"the throughput of the container holds it back: `pleiad throughput {self._container} RU` gives it more",
            err=True,
        )

    def _progress(self, counts: ImportCounts) -> str:
        text = f"{counted(counts.written, 'item')}, {self._rate(counts):,.0f} items/s"
        if counts.rejected:
            text += f", {counts.rejected:,} rejected"
        share = self._share
        return text if share is None else f"{share:.0%} {text}"

    @property
    def _share(self) -> float | None:
        """How much of the file was read, where its size is known."""
        size_bytes = self._items.size_bytes
        return self._items.read_bytes / size_bytes if size_bytes else None

    def _rate(self, counts: ImportCounts) -> float:
        return (counts.written - self._written_before) / max(time.monotonic() - self._began, 1e-3)

    def reject(self, entry: Entry, reason: str) -> None:
        """From any thread."""
        self._rejects_shown += 1
        if self._rejects_shown <= _REJECTS_SHOWN:
            self._line.clear()
            click.echo(f"line {entry.line}: {shown(reason.partition(chr(13))[0])}", err=True)

    def end(self, counts: ImportCounts, rejects: Path | None) -> None:
        seconds = time.monotonic() - self._began
        resumed = f" ({counts.resumed:,} entries by an earlier run)" if counts.resumed else ""
        click.echo(
            f"imported {counted(counts.written, 'item')}{resumed} in {seconds:,.1f} s, "
            f"{self._rate(counts):,.0f} items/s, {counts.charge_ru:,.0f} RU",
            err=True,
        )
        self._tell_limit(counts)
        if counts.rejected:
            where = "" if rejects is None else f", see {rejects}"
            raise click.ClickException(f"{counted(counts.rejected, 'item')} rejected{where}")
