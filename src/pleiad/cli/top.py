"""`pleiad top`: what keeps a server busy, again and again."""

from __future__ import annotations

import sys
import time
from itertools import count, zip_longest
from typing import Any

import click

from pleiad.cli.options import asking, server_options
from pleiad.cli.partitions import look_of_terminal
from pleiad.cli.view.table import json_text, table
from pleiad.cli.view.words import counted
from pleiad.client.admin import Admin

ORDERS = {"ru": "RU/s", "ms": "ms", "fan-out": "fan-out", "requests": "req/s"}
"""What may stand on top, and the column it is by."""
_SUMS = ("requests", "throttled", "ru", "ms", "partitions")
_NOTHING: dict[str, Any] = {**dict.fromkeys(_SUMS, 0), "buckets": ()}
_PERCENTILE = 0.99
_LINES_MAX = 15


@click.command()
@click.option("--by", type=click.Choice(list(ORDERS)), default="ru", show_default=True,
              help="What has most of this stands on top.")  # fmt: skip
@click.option("--interval", metavar="SECONDS", type=click.FloatRange(0.1, 30), default=2.0, show_default=True,
              help="The time between two looks.")  # fmt: skip
@click.option("--looks", metavar="N", type=click.IntRange(min=1), help="End after so many looks.")
@click.option("--lines", metavar="N", type=click.IntRange(1, 1_000), default=_LINES_MAX, show_default=True,
              help="Show so many kinds of requests at most.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print each look as one line of JSON.")
@server_options
def top(
    by: str, interval: float, looks: int | None, lines: int, as_json: bool, endpoint: str, key: str
) -> None:
    """Show what keeps a running server busy, until Ctrl-C.

    For each container, operation and text of a query: requests and request units a second, the mean time and the 99th
    percentile on the server in milliseconds, the physical partitions that a request went to (fan-out), and how many
    were answered with 429. The server counts this only while somebody looks.

    \b
    Examples:
      pleiad top
      pleiad top --by fan-out
      pleiad top --looks 1 --interval 10 --json
    """
    with asking(endpoint, key) as admin:
        try:
            _watch(admin, by, interval, looks, lines, as_json)
        except KeyboardInterrupt:
            click.echo()


def _watch(admin: Admin, by: str, interval: float, looks: int | None, lines: int, as_json: bool) -> None:
    before = admin.busiest()
    for _ in count() if looks is None else range(looks):
        time.sleep(interval)
        now = admin.busiest()
        rows = sorted(between(before, now), key=lambda row: -row[ORDERS[by]])
        before = now
        if as_json:
            click.echo(json_text({"at": now["at"], "entries": rows}))
            continue
        if sys.stdout.isatty() and looks is None:
            click.clear()
        click.echo(_picture(rows, lines))


def _picture(rows: list[dict[str, Any]], lines: int) -> str:
    requests = sum(row["req/s"] for row in rows)
    charge = sum(row["RU/s"] for row in rows)
    heading = f"{requests:,.1f} requests/s   {charge:,.1f} RU/s   {counted(len(rows), 'kind')} of requests"
    shown = [{**row, "query": " ".join(row["query"].split())} for row in rows[:lines]]
    if not any(row["query"] for row in shown):
        shown = [{name: value for name, value in row.items() if name != "query"} for row in shown]
    text = table(shown, look_of_terminal().columns) if shown else None
    return heading if text is None else f"{heading}\n\n{text}\n"


def between(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """What came between two answers of the server, by the second."""
    seconds = max(now["at"] - before["at"], 0.001)
    known = {_kind(entry): entry for entry in before["entries"]}
    rows = []
    for entry in now["entries"]:
        old = known.get(_kind(entry), _NOTHING)
        if old["requests"] > entry["requests"]:
            old = _NOTHING  # the server has begun anew
        grown = {name: entry[name] - old[name] for name in _SUMS}
        requests = grown["requests"]
        if not requests:
            continue
        buckets = [new - was for new, was in zip_longest(entry["buckets"], old["buckets"], fillvalue=0)]
        rows.append(
            {
                "container": entry["container"],
                "operation": entry["operation"],
                "req/s": round(requests / seconds, 1),
                "RU/s": round(grown["ru"] / seconds, 1),
                "ms": round(grown["ms"] / requests, 2),
                "p99": _percentile(buckets, now["boundsMs"]),
                "fan-out": round(grown["partitions"] / requests, 1),
                "429s": grown["throttled"],
                "query": entry["query"],
            }
        )
    return rows


def _kind(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["container"], entry["operation"], entry["query"]


def _percentile(buckets: list[int], bounds: list[float]) -> float:
    """The upper end of the class that the percentile is in; of the last, which has none, its lower end."""
    wanted, seen = _PERCENTILE * sum(buckets), 0
    for requests, bound in zip(buckets, bounds, strict=False):
        seen += requests
        if seen >= wanted:
            return bound
    return bounds[-1]
