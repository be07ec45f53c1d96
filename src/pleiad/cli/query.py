"""`pleiad query`: runs a query from the terminal and says what it cost.

Results go to standard output and nothing else does; the summary, the explanation and errors go to standard
error, so the results can be piped. A failure is one message, with a mark under the place in the query where
there is one.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import click

from pleiad.cli.closed_pipe import drop_output
from pleiad.cli.items import container_argument
from pleiad.cli.key import key_values
from pleiad.cli.options import server_options
from pleiad.cli.view.item import item_shown, system_option, terminal_columns
from pleiad.cli.view.table import json_text, shown, table, width_of
from pleiad.cli.view.words import counted
from pleiad.client.account import KEY_HEADER
from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Answer, Connection, ConnectionFailedError

LIMIT_DEFAULT = 100
_PAGE_ITEMS_MAX = 1_000
_ERROR_COLUMNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one page brought and what the server tells about it."""

    results: list[Any]
    charge_ru: float
    charge_parts: tuple[tuple[str, float], ...]
    partitions: tuple[str, ...]
    metrics: dict[str, float]
    indexes: dict[str, Any]
    continuation: str


class QueryFailedError(Exception):
    """The server refused the query; the text is for the person at the terminal."""


def _json_value(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise click.BadParameter(
            f"{what} must be JSON, and {text!r} is not; a text keeps its quotes: '\"{text}\"'"
        ) from None


def _parameters(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> list[dict[str, Any]]:
    parameters = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip("@"):
            raise click.BadParameter(f"'{text}' is not of the form name=JSON, such as city='\"Oslo\"'")
        parameters.append({"name": "@" + name.removeprefix("@"), "value": _json_value(value, f"'{name}'")})
    return parameters


@click.command()
@container_argument
@click.argument("query", metavar="QUERY")
@server_options
@click.option("--partition-key", metavar="VALUE", callback=key_values,
              help="Ask one logical partition only: its key value, a text as it is or JSON, or a JSON list with "
              "one for each level. A list with the first levels of a hierarchical key asks all beneath.")  # fmt: skip
@click.option("--parameter", "parameters", metavar="NAME=JSON", multiple=True, callback=_parameters,
              help="The value of a parameter of the query; may be given several times.")  # fmt: skip
@click.option("--max-items", metavar="N", type=click.IntRange(1, _PAGE_ITEMS_MAX),
              help="Results in a page at most. The server decides when it is not given.")  # fmt: skip
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=LIMIT_DEFAULT, show_default=True,
              help="Stop after so many results.")  # fmt: skip
@click.option("--all", "wants_all", is_flag=True, help="Fetch every page, whatever the limit.")
@click.option("--format", "form", type=click.Choice(["table", "json", "jsonl"]),
              show_default="table on a terminal, jsonl otherwise",
              help="table: aligned columns where every result is an object of plain values, JSON otherwise, "
              "of whole items without what the system adds; "
              "json: one array; jsonl: one result a line.")  # fmt: skip
@system_option
@click.option("--explain", "wants_explanation", is_flag=True,
              help="Also tell the charge of each page and its parts, the physical partitions, the indexes "
              "used and missing, how many items were loaded, why it goes to so many partitions, and what "
              "that would cost with 50 of them.")  # fmt: skip
def query(
    container: tuple[str, str],
    query: str,
    endpoint: str,
    key: str,
    partition_key: list[Any] | None,
    parameters: list[dict[str, Any]],
    max_items: int | None,
    limit: int,
    wants_all: bool,
    form: str | None,
    with_system: bool,
    wants_explanation: bool,
) -> None:
    """Run QUERY on the items of a container of a running server.

    QUERY is a text in the query language, or - to read it from standard input. Without a partition key in the
    option or in the filter it goes to every physical partition. Results are printed to standard output; a
    summary of items, pages, charge in request units (RU) and physical partitions follows on standard error.

    \b
    Examples:
      pleiad query sample/food "SELECT c.id, c.foodGroup FROM c"
      pleiad query sample/users "SELECT * FROM c WHERE c.userId = @id" \\
          --parameter id='"Andrew"'
      pleiad query sample/flights "SELECT VALUE COUNT(1) FROM c" \\
          --partition-key LAX
      pleiad query sample/food "SELECT * FROM c ORDER BY c.id" --explain
      pleiad query sample/food "SELECT * FROM c" --all > food.jsonl

    The exit code is 0 when the query ran, 1 when the server refused it or did not answer, and 2 when the
    command itself was wrong.
    """
    text = sys.stdin.read() if query == "-" else query
    headers = {"x-ms-documentdb-populatequerymetrics": "True"}
    if wants_explanation:
        headers["x-ms-cosmos-populateindexmetrics-v2"] = "True"
    if partition_key is not None:
        headers[KEY_HEADER] = json.dumps(partition_key)
    printer = _Printer(form or ("table" if sys.stdout.isatty() else "jsonl"), with_system)
    pages = []
    try:
        with Connection(endpoint, key) as connection:
            link = ("dbs", container[0], "colls", container[1])
            asked = _Asked(connection, link, {"query": text, "parameters": parameters}, headers)
            for page in asked.pages(max_items, None if wants_all else limit):
                pages.append(page)
                printer.add(page.results)
            way = _way(connection, container, asked.document, partition_key) if wants_explanation else None
        printer.finish()
    except (ConnectionFailedError, QueryFailedError) as error:
        raise click.ClickException(str(error)) from None
    except BrokenPipeError:
        drop_output()  # the reader has what it wanted
        return
    if wants_explanation:
        click.echo("\n".join([explanation(pages), *way_lines(way)]), err=True)
    click.echo(summary(pages), err=True)


def _way(
    connection: Connection, container: tuple[str, str], document: dict[str, Any], key: list[Any] | None
) -> dict[str, Any] | None:
    """What the server says of the way of the query; None from a server that cannot say."""
    body = document if key is None else {**document, "partitionKey": key}
    try:
        return Admin(connection).explain(*container, body)
    except RequestRefusedError:
        return None


@dataclass(frozen=True, slots=True)
class _Asked:
    """One query on one connection."""

    connection: Connection
    container: tuple[str, ...]
    document: dict[str, Any]
    headers: dict[str, str]

    def pages(self, max_items: int | None, limit: int | None) -> Iterator[Page]:
        """Page after page until there is no more, or as many results as wanted."""
        continuation, left = "", limit
        while left is None or left > 0:
            headers = dict(self.headers)
            if max_items is not None or left is not None:
                wanted = min(max_items or LIMIT_DEFAULT, left or _PAGE_ITEMS_MAX)
                headers["x-ms-max-item-count"] = str(wanted)
            if continuation:
                headers["x-ms-continuation"] = continuation
            answer = self.connection.query(self.container, self.document, headers)
            if not answer.is_success:
                raise QueryFailedError(failure_text(answer, self.document["query"]))
            page = _page(answer)
            yield page
            continuation = page.continuation
            left = None if left is None else left - len(page.results)
            if not continuation:
                return


def _page(answer: Answer) -> Page:
    headers = answer.headers
    try:
        results = answer.json()["Documents"]
        indexes = json.loads(unquote(headers.get("x-ms-cosmos-index-utilization", "")) or "{}")
        charge_ru = float(headers.get("x-ms-request-charge", "0"))
        charge_parts = _pairs(headers.get("x-pleiad-charge-parts", ""))
        metrics = dict(_pairs(headers.get("x-ms-documentdb-query-metrics", "")))
    except (ValueError, TypeError, LookupError):
        raise QueryFailedError(
            "the answer is not one of a query; is the endpoint a Cosmos DB account?"
        ) from None
    return Page(
        results=results,
        charge_ru=charge_ru,
        charge_parts=charge_parts,
        partitions=tuple(filter(None, headers.get("x-pleiad-partitions-visited", "").split(","))),
        metrics=metrics,
        indexes=indexes,
        continuation=headers.get("x-ms-continuation", ""),
    )


def _pairs(text: str) -> tuple[tuple[str, float], ...]:
    """The pairs of a header such as ``loaded=2;returned=1``."""
    return tuple(
        (name, float(value)) for name, _, value in (pair.partition("=") for pair in text.split(";") if pair)
    )


class _Printer:
    """Writes results in one form: lines as they come, tables and arrays when all are there.

    The table is for people, and shows what the system adds to items only when that is asked for.
    """

    def __init__(self, form: str, with_system: bool) -> None:
        self._form = form
        self._with_system = with_system or form != "table"
        self._results: list[Any] = []

    def add(self, results: list[Any]) -> None:
        if self._form != "jsonl":
            self._results += [item_shown(result, self._with_system) for result in results]
            return
        for result in results:
            click.echo(json_text(result))

    def finish(self) -> None:
        if self._form == "jsonl":
            return
        if self._form == "table":
            text = table(self._results, terminal_columns())
            if text is not None:
                click.echo(text, nl=bool(text))
                return
        click.echo(json_text(self._results, indented=True))


# -- what it cost ------------------------------------------------------------------------------------


def _total_ru(pages: list[Page]) -> str:
    return f"{sum(page.charge_ru for page in pages):.2f} RU"


def _partitions(pages: list[Page]) -> list[str]:
    return list(dict.fromkeys(partition for page in pages for partition in page.partitions))


def summary(pages: list[Page]) -> str:
    """One line: items, pages, charge and physical partitions, and whether there is more."""
    parts = [
        counted(sum(len(page.results) for page in pages), "item"),
        counted(len(pages), "page"),
        _total_ru(pages),
    ]
    if partitions := _partitions(pages):
        parts.append(f"{counted(len(partitions), 'physical partition')} ({', '.join(partitions)})")
    line = ", ".join(parts)
    return f"{line}; there are more: --limit N or --all" if pages[-1].continuation else line


def explanation(pages: list[Page]) -> str:
    """How the query was run, as far as the server tells."""
    lines = ["charge"]
    lines += [
        f"  page {number:<4} {page.charge_ru:>10.2f} RU  {counted(len(page.results), 'item')}"
        for number, page in enumerate(pages, 1)
    ]
    sums: dict[str, float] = {}
    for page in pages:
        for name, part_ru in page.charge_parts:
            sums[name] = sums.get(name, 0.0) + part_ru
    if any(sums.values()):
        lines.append("made of")
        lines += [f"  {name:<22} {part_ru:>10.3f} RU" for name, part_ru in sums.items() if part_ru]
    if partitions := _partitions(pages):
        lines += ["physical partitions visited", f"  {', '.join(partitions)}"]
    lines += _index_lines("indexes used", pages[0].indexes.get("UtilizedIndexes"))
    lines += _index_lines("indexes that would help", pages[0].indexes.get("PotentialIndexes"))
    metrics = [page.metrics for page in pages]
    if any(metrics):
        loaded, loaded_bytes, returned, returned_bytes, milliseconds = (
            sum(each.get(name, 0.0) for each in metrics)
            for name in (
                "retrievedDocumentCount",
                "retrievedDocumentSize",
                "outputDocumentCount",
                "outputDocumentSize",
                "totalExecutionTimeInMs",
            )
        )
        lines += [
            "execution",
            f"  loaded     {loaded:>10,.0f} {'item' if loaded == 1 else 'items'}  {loaded_bytes:>14,.0f} bytes",
            f"  returned   {returned:>10,.0f} {'item' if returned == 1 else 'items'}  {returned_bytes:>14,.0f} bytes",
            f"  time       {milliseconds:>10,.2f} ms on the server",
        ]
    return "\n".join(lines)


def way_lines(way: dict[str, Any] | None) -> list[str]:
    """Why the query goes where it goes, what that would cost with many partitions, and other advice."""
    if way is None or "why" not in way:
        return []
    sentences = [way["why"], way["atManyPartitions"]["sentence"]]
    lines = ["the way it takes", *(line for each in sentences for line in _indented(each))]
    if way["advice"]:
        lines.append("advice")
        for each in way["advice"]:
            lines += _indented(f"{each['sentence']} ({each['id']})")
    return lines


def _indented(sentence: str) -> list[str]:
    width = min(terminal_columns() or _ERROR_COLUMNS, _ERROR_COLUMNS)
    return textwrap.wrap(shown(sentence), width, initial_indent="  ", subsequent_indent="  ")


def _index_lines(title: str, indexes: Any) -> list[str]:
    """The single and composite indexes of one list of the index metrics."""
    if not isinstance(indexes, dict):
        return []
    lines = []
    for index in (*indexes.get("SingleIndexes", ()), *indexes.get("CompositeIndexes", ())):
        spec = index.get("IndexSpec") or "(" + ", ".join(index.get("IndexSpecs", ())) + ")"
        impact = index.get("IndexImpactScore")
        lines.append(f"  {shown(spec)}" + (f"   {impact.lower()} impact" if impact else ""))
    return [title, *(lines or ["  none"])]


# -- what went wrong ---------------------------------------------------------------------------------


def failure_text(answer: Answer, query_text: str) -> str:
    """The server's message; for an error of the query with a mark under its place."""
    try:
        body = answer.json()
        message = str(body["message"])
    except (ValueError, TypeError, LookupError):
        return f"the server answered with status {answer.status}"
    message = message.partition("\r\nActivityId:")[0]
    complaints = _complaints(message)
    if not complaints:
        return f"{body.get('code', answer.status)} ({answer.status}): {shown(message)}"
    return "\n".join(_complaint_text(complaint, query_text) for complaint in complaints)


def _complaints(message: str) -> list[dict[str, Any]]:
    """The list of errors that the message of a refused query is, or nothing."""
    try:
        document, _ = json.JSONDecoder().raw_decode(message[message.index("{") :])
    except (ValueError, RecursionError):
        return []
    found = document.get("errors") or document.get("Errors")
    if not isinstance(found, list):
        return []
    return [each if isinstance(each, dict) else {"message": str(each)} for each in found]


def _complaint_text(complaint: dict[str, Any], query_text: str) -> str:
    code = complaint.get("code")
    text = (f"{code}: " if code else "") + shown(str(complaint.get("message", "")))
    location = complaint.get("location")
    if not isinstance(location, dict):
        return text
    start, end = location.get("start"), location.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return text
    return f"{text}\n{marked(query_text, start, end)}"


def marked(query_text: str, start: int, end: int) -> str:
    """The line of the query with that place, and carets under the place."""
    start = max(0, min(start, len(query_text)))
    line_start = query_text.rfind("\n", 0, start) + 1
    line_end = query_text.find("\n", start)
    line_end = len(query_text) if line_end < 0 else line_end
    # A long line is cut to the neighbourhood of the place.
    first = max(line_start, start - _ERROR_COLUMNS // 2)
    last = min(line_end, first + _ERROR_COLUMNS)
    before, place = shown(query_text[first:start]), shown(query_text[start : min(end, last)])
    lead = "…" if first > line_start else ""
    tail = "…" if last < line_end else ""
    line = f"  {lead}{before}{shown(query_text[start:last])}{tail}"
    return f"{line}\n  {' ' * (len(lead) + width_of(before))}{'^' * max(1, width_of(place))}"
