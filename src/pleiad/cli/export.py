"""`pleiad export`: writes the items of a container of a running server into a file."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from pleiad.cli.closed_pipe import drop_output
from pleiad.cli.import_ import chosen_form, one_letter
from pleiad.cli.options import container_names, server_options
from pleiad.cli.view.progress_line import ProgressLine
from pleiad.cli.view.words import counted
from pleiad.client.admin import RequestRefusedError
from pleiad.client.connection import Connection, ConnectionFailedError
from pleiad.client.containers import FoundContainer, find_container
from pleiad.client.export_items import ExportCounts, query_items, read_items
from pleiad.job.item_file.entry import ItemFileError
from pleiad.job.item_file.form import (
    Compression,
    Form,
    compression_of_name,
    definition_path,
    delimiter_of_name,
    form_of_name,
    words,
)
from pleiad.job.item_file.writer import writing_items


@click.command()
@click.argument("container", metavar="DB/CONTAINER", callback=container_names)
@click.argument("file", metavar="FILE")
@server_options
@click.option("--format", "form", type=click.Choice([form.value for form in Form]), callback=chosen_form,
              show_default="by the name of the file; jsonl on standard output",
              help="How items stand in the file.")  # fmt: skip
@click.option("--compress", "compression", type=click.Choice([each.value for each in Compression]),
              show_default="by the name of the file", help="How to pack it.")  # fmt: skip
@click.option("--delimiter", metavar="CHARACTER", callback=one_letter, show_default="a comma; a tab for .tsv",
              help="What stands between the cells of CSV.")  # fmt: skip
@click.option(
    "--query", "query_text", metavar="QUERY", help="Write the results of a query instead of all items."
)
@click.option(
    "--system", "has_system", is_flag=True, help="Keep the system properties, _rid, _etag, _ts and so on."
)
@click.option("--definition", "has_definition", is_flag=True,
              help="Also write the definition of the container beside FILE, for `pleiad serve --load`.")  # fmt: skip
@click.option("--connections", metavar="N", type=click.IntRange(1, 64), default=4, show_default=True,
              help="Physical partitions that are read at a time.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Tell no progress.")
def export(
    container: tuple[str, str],
    file: str,
    endpoint: str,
    key: str,
    form: Form | None,
    compression: str | None,
    delimiter: str | None,
    query_text: str | None,
    has_system: bool,
    has_definition: bool,
    connections: int,
    quiet: bool,
) -> None:
    """Write the items of a container of a running server into FILE; - is standard output.

    The form is JSON lines, a JSON array, CSV or Parquet, plain or packed with gzip or zstd, as the name of the file
    says. The file appears when it is whole, in place of one that was there. Items come in no order, results of a query
    in its own; what is written while the export runs may or may not be in it.

    \b
    Examples:
      pleiad export shop/orders orders.jsonl
      pleiad export shop/orders orders.parquet
      pleiad export shop/orders open.csv.gz \\
          --query "SELECT * FROM c WHERE c.state = 'open'"
      pleiad export shop/orders - | jq -c .total

    The exit code is 0 when all was written, 1 when it was not, and 2 when the command itself was wrong.
    """
    path = None if file == "-" else Path(file)
    if has_definition and path is None:
        raise click.UsageError("--definition needs the name of a file, beside which it is written")
    chosen = _form(path, form)
    packed = Compression(compression) if compression else compression_of_name(file)
    counts, line, began = ExportCounts(), ProgressLine(quiet), time.monotonic()
    try:
        found = _found(endpoint, key, container)
        pages = (
            read_items(lambda: Connection(endpoint, key), found, connections, has_system, counts)
            if query_text is None
            else query_items(lambda: Connection(endpoint, key), found, query_text, has_system, counts)
        )
        with writing_items(path, chosen, packed, delimiter or delimiter_of_name(file)) as writer:
            for page in pages:
                writer.write(page)
                if line.is_due:
                    line.show(counted(counts.items, "item"))
        if has_definition and path is not None:
            _write_definition(definition_path(path), found)
    except (ConnectionFailedError, RequestRefusedError, ItemFileError) as error:
        line.clear()
        raise click.ClickException(str(error)) from None
    except BrokenPipeError:
        drop_output()  # the reader has what it wanted
        return
    line.clear()
    seconds = max(time.monotonic() - began, 1e-3)
    click.echo(
        f"exported {counted(counts.items, 'item')} in {seconds:,.1f} s, {counts.items / seconds:,.0f} items/s, "
        f"{counts.charge_ru:,.0f} RU",
        err=True,
    )


def _form(path: Path | None, given: Form | None) -> Form:
    if given is not None:
        return given
    form = Form.JSONL if path is None else form_of_name(path.name)
    if form is None:
        raise click.UsageError(
            f"the name {path} does not tell a form: give --format with {words(list(Form))}"
        )
    return form


def _found(endpoint: str, key: str, names: tuple[str, str]) -> FoundContainer:
    with Connection(endpoint, key) as connection:
        found = find_container(connection, *names)
    if found is None:
        raise click.ClickException(f"there is no container {'/'.join(names)}")
    return found


def _write_definition(path: Path, container: FoundContainer) -> None:
    definition = {name: value for name, value in container.definition.items() if not name.startswith("_")}
    try:
        path.write_text(json.dumps(definition, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ItemFileError(f"{path} cannot be written: {error.strerror}") from None
