"""`pleiad advise`: which partition key fits the items of a file or container, and the requests on them."""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pleiad.cli.import_ import chosen_form, one_letter
from pleiad.cli.options import server_options
from pleiad.cli.view.progress_line import ProgressLine
from pleiad.cli.view.words import counted
from pleiad.job.item_file.form import Form
from pleiad.limits import Limits

if TYPE_CHECKING:
    from pleiad.advise.advice import AdviceOptions, Growth
    from pleiad.advise.key import Key
    from pleiad.advise.queries import Asked
    from pleiad.advise.recorded import Record
    from pleiad.advise.report import Prices, Report
    from pleiad.advise.table import Table
    from pleiad.client.containers import FoundContainer
    from pleiad.job.item_file.entry import Entry
    from pleiad.job.item_file.reader import ReadOptions

_CONNECTIONS = 4
_THROUGHPUT_MAX = 1_000_000_000
_ITEM_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".gz", ".zst")
_FACTOR = re.compile(r"([0-9.]+)\s*(?:x|times)?")
_YEARS = re.compile(r"([0-9.]+)\s*(?:y|years?)")


def _growth(context: click.Context, option: click.Parameter, text: str | None) -> Growth:
    from pleiad.advise.advice import Growth

    if text is None:
        return Growth()
    for pattern, name in ((_YEARS, "years"), (_FACTOR, "factor")):
        found = pattern.fullmatch(text.strip().lower())
        if found is not None:
            try:
                value = float(found[1])
            except ValueError:
                break
            if 0 < value <= 1_000_000:
                return Growth(**{name: value})
    raise click.BadParameter(f"'{text}' is neither a factor, such as 10, nor a number of years, such as 5y")


def _throughput(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 1 <= value <= _THROUGHPUT_MAX:  # what is no number is not either
        raise click.BadParameter(f"{value:g} is not between 1 and {_THROUGHPUT_MAX:,} RU/s")
    return value


def _prices(context: click.Context, option: click.Parameter, text: str | None) -> Prices:
    from pleiad.advise.report import Prices

    prices = Prices()
    for part in (text or "").split(","):
        name, _, value = part.strip().partition("=")
        try:
            if name in ("ru-hour", "gb-month"):
                amount = float(value)
                if not 0 <= amount < 1e9:
                    raise ValueError(value)
                prices = replace(prices, **{name.replace("-", "_"): amount})  # type: ignore[arg-type]
            elif name == "currency" and value.isalpha() and len(value) <= 8:
                prices = replace(prices, currency=value.upper())
            elif part.strip():
                raise ValueError(part)
        except ValueError:
            raise click.BadParameter(
                f"'{part.strip()}' is no price: give ru-hour=0.008,gb-month=0.25,currency=USD, or some of them"
            ) from None
    return prices


def _candidates(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[Key, ...]:
    from pleiad.advise.key import KeyTextError, parse

    try:
        return tuple(parse(each, Limits()) for text in texts for each in text.split())
    except KeyTextError as error:
        raise click.BadParameter(str(error)) from None


def _source(context: click.Context, argument: click.Parameter, text: str) -> str:
    """The source; looked at before the options, which need what an extra brings."""
    if importlib.util.find_spec("numpy") is None:
        raise click.ClickException("advice needs more libraries: pip install numpy msgspec datasketches")
    return text


@click.command()
@click.argument("source", metavar="SOURCE", is_eager=True, callback=_source)
@server_options
@click.option("--format", "form", type=click.Choice([form.value for form in Form]), callback=chosen_form,
              show_default="by the name of the file, or by its first bytes",
              help="How items stand in the file.")  # fmt: skip
@click.option("--delimiter", metavar="CHARACTER", callback=one_letter, show_default="a comma; a tab for .tsv",
              help="What stands between the cells of CSV.")  # fmt: skip
@click.option("--queries", "queries_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Query texts with their rates: a line is a rate per second and a query, or create, read, replace or "
              "delete.")  # fmt: skip
@click.option("--workload", "workload_file", metavar="FILE", type=click.Path(path_type=Path),
              show_default="the record of the container, if it has one",
              help="A workload record, as `pleiad workload export` writes it.")  # fmt: skip
@click.option("--throughput", "throughput_ru", metavar="RU", type=float, callback=_throughput,
              show_default="that of the container, or what the requests need when spread evenly",
              help="The throughput to try keys with, in RU/s.")  # fmt: skip
@click.option("--growth", metavar="FACTOR|YEARS", callback=_growth,
              help="Judge keys when everything is so many times as large, such as 10, or in some years, "
              "such as 5y.")  # fmt: skip
@click.option("--candidates", metavar="KEYS", multiple=True, callback=_candidates,
              show_default="found in the items and the requests",
              help="The keys to try, with spaces between them: /a, /a,/b (hierarchical), concat(/a,/b), "
              "random(/a,100), suffix(/a,/b,100), hour(/t), day(/t), month(/t).")  # fmt: skip
@click.option("--sample", "rows_max", metavar="N", type=click.IntRange(min=100), default=2_000_000, show_default=True,
              help="How many items to keep for measuring; of more, a random sample.")  # fmt: skip
@click.option("--prices", metavar="PRICES", callback=_prices,
              show_default="ru-hour=0.008,gb-month=0.25,currency=USD",
              help="What 100 RU/s cost for an hour, and a GB for a month.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, with all numbers.")
@click.option("--html", "html_file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, writable=True),
              help="Also write the report as a page that needs nothing else.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Tell no progress.")
def advise(
    source: str,
    endpoint: str,
    key: str,
    queries_file: Path | None,
    workload_file: Path | None,
    form: Form | None,
    delimiter: str | None,
    throughput_ru: float | None,
    growth: Growth,
    candidates: tuple[Key, ...],
    rows_max: int,
    prices: Prices,
    as_json: bool,
    html_file: Path | None,
    quiet: bool,
) -> None:
    """Choose a partition key from measurement.

    SOURCE is a file of items (JSON lines, a JSON array, CSV or Parquet), which needs no server, or DB/CONTAINER of a
    running one. Keys are found in the items, tried with the requests on simulated physical partitions, and ranked with
    the reasons.

    \b
    Examples:
      pleiad advise orders.jsonl
      pleiad advise orders.csv --queries queries.txt --growth 10
      pleiad advise shop/orders --html advice.html
      pleiad advise shop/orders --candidates "/tenantId /tenantId,/userId"

    The exit code is 0 when a key was found, 1 when none was, and 2 when the command itself was wrong.
    """
    if queries_file is not None and workload_file is not None:
        raise click.UsageError("give only one of --queries and --workload")
    if html_file is not None and not html_file.parent.is_dir():
        raise click.BadParameter(f"there is no directory {html_file.parent}", param_hint="--html")
    from pleiad.advise.advice import AdviceOptions, NothingToAdviseError
    from pleiad.advise.queries import QueriesError
    from pleiad.client.admin import RequestRefusedError
    from pleiad.client.connection import ConnectionFailedError
    from pleiad.job.item_file.entry import ItemFileError
    from pleiad.job.item_file.reader import ReadOptions

    line = ProgressLine(quiet)
    reading = ReadOptions(form=form, delimiter=delimiter)
    asking = _Asking(source, endpoint, key, queries_file, workload_file, rows_max, candidates, reading)
    options = AdviceOptions(throughput_ru=throughput_ru, growth=growth, candidates=candidates, prices=prices)
    try:
        report = _report(asking, options, line)
    except (
        NothingToAdviseError,
        QueriesError,
        ItemFileError,
        ConnectionFailedError,
        RequestRefusedError,
    ) as error:
        line.clear()
        raise click.ClickException(str(error)) from None
    line.clear()
    _show(report, as_json, html_file)
    if report.best is None:
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _Asking:
    """Where items and requests come from."""

    source: str
    endpoint: str
    key: str
    queries_file: Path | None
    workload_file: Path | None
    rows_max: int
    candidates: tuple[Key, ...]
    reading: ReadOptions

    @property
    def container(self) -> tuple[str, str] | None:
        """The names of the container, unless the source is a file."""
        if self.source == "-" or Path(self.source).exists() or self.source.lower().endswith(_ITEM_ENDINGS):
            return None
        names = self.source.split("/")
        if len(names) != 2 or not all(names):
            raise click.ClickException(
                f"there is no file {self.source}, and a container is named DB/CONTAINER"
            )
        return names[0], names[1]


def _report(asking: _Asking, options: AdviceOptions, line: ProgressLine) -> Report:
    from pleiad.advise.advice import advise as advise_on
    from pleiad.advise.sources import demands_of

    names = asking.container
    asked = None if asking.queries_file is None else _asked(asking.queries_file)
    record = None if asking.workload_file is None else _record_of_file(asking.workload_file, names)
    found: FoundContainer | None = None
    if names is not None:
        found, throughput_ru, recorded = _container(asking, names, asked is None and record is None)
        record = record or recorded
        options = replace(
            options, current=found.key.paths, throughput_ru=options.throughput_ru or throughput_ru
        )
    table = _table(asking, found, asked, record, line)
    demands, notes = demands_of(table, asked, record, options)
    return advise_on(
        asking.source,
        table,
        demands,
        replace(options, notes=notes),
        lambda what, done, total: line.step(f"trying {what},", done, total, "keys"),
    )


def _table(
    asking: _Asking,
    found: FoundContainer | None,
    asked: list[Asked] | None,
    record: Record | None,
    line: ProgressLine,
) -> Table:
    from pleiad.advise.sources import reading_options
    from pleiad.advise.table import read_table
    from pleiad.job.item_file.entry import batched
    from pleiad.job.item_file.reader import open_items

    reading = reading_options(
        asking.candidates,
        asked,
        record,
        () if found is None else found.key.paths,
        rows_max=asking.rows_max,
        indexing=None if found is None else found.definition.get("indexingPolicy"),
    )

    def tell(items: int) -> None:
        if line.is_due:
            line.show(f"read {counted(items, 'item')}")

    with ExitStack() as stack:
        if found is None:
            path = None if asking.source == "-" else Path(asking.source)
            file = stack.enter_context(open_items(path, asking.reading))
            return read_table(file.batches(), reading, tell, file.leave_out_but)
        return read_table(batched(_entries(asking, found)), reading, tell)


def _entries(asking: _Asking, found: FoundContainer) -> Iterator[Entry]:
    """The items of a container, as those of a file."""
    from pleiad.client.connection import Connection
    from pleiad.client.export_items import ExportCounts, read_items
    from pleiad.job.item_file.entry import Entry

    number = 0
    pages = read_items(
        lambda: Connection(asking.endpoint, asking.key),
        found,
        _CONNECTIONS,
        has_system=True,
        counts=ExportCounts(),
        is_recorded=False,
    )
    for page in pages:
        for item in page:
            number += 1
            yield Entry(number, number, b"", item)


def _asked(path: Path) -> list[Asked]:
    from pleiad.advise.queries import QueriesError, read_queries

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise click.ClickException(f"{path} cannot be read: {reason}") from None
    try:
        return read_queries(text.splitlines(), Limits())
    except QueriesError as error:
        raise click.ClickException(f"{path}: {error}") from None


def _record_of_file(path: Path, names: tuple[str, str] | None) -> Record:
    from pleiad.advise.recorded import RecordReader
    from pleiad.workload.record import BadLine, read

    bad: list[str] = []
    reader = RecordReader("/".join(names) if names is not None else "")
    count = 0

    def note(line: BadLine) -> None:
        nonlocal count
        count += 1
        if len(bad) < 5:
            bad.append(str(line))

    try:
        with path.open("rb") as file:
            reader.take(read(file, note))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
    record = reader.finish(bad, count)
    if not record.requests:
        reason = (
            bad[0]
            if bad
            else f"none of its requests is on {reader.container}"
            if record.others
            else "it is empty"
        )
        raise click.ClickException(f"{path} has no requests to try keys with: {reason}")
    return record


def _container(
    asking: _Asking, names: tuple[str, str], wants_record: bool
) -> tuple[FoundContainer, float | None, Record | None]:
    """The container, its throughput, and what is recorded of its requests."""
    from pleiad.advise.recorded import RecordReader
    from pleiad.client.account import Account
    from pleiad.client.admin import Admin
    from pleiad.client.connection import Connection
    from pleiad.client.containers import find_container
    from pleiad.workload.record import read

    with Connection(asking.endpoint, asking.key) as connection:
        found = find_container(connection, *names)
        if found is None:
            raise click.ClickException(
                f"there is no file {asking.source}, and no container of that name at {asking.endpoint}"
            )
        offer = Account(connection).throughputs().get(found.rid)
        record = None
        if wants_record:
            reader = RecordReader("/".join(names))
            for piece in Admin(connection).workload_lines(*names):
                reader.take(read(io.BytesIO(piece), lambda line: None))
            record = reader.finish()
    return found, None if offer is None else float(offer.ru), record


def _show(report: Report, as_json: bool, html_file: Path | None) -> None:
    from pleiad.advise.html import page_of
    from pleiad.advise.report import to_json
    from pleiad.cli.view.advice import text_of

    # The report first: what took minutes is not lost when the page has no place.
    if as_json:
        click.echo(to_json(report).decode(), nl=False)
    else:
        click.echo(text_of(report))
    if html_file is None:
        return
    try:
        html_file.write_text(page_of(report), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{html_file} cannot be written: {error.strerror}") from None
    if not as_json:
        click.echo(f"\nThe report as a page: {html_file}")
