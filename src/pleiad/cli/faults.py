"""`pleiad faults`: sets, lists and clears faults on demand."""

from __future__ import annotations

from typing import Any

import click

from pleiad.cli.options import asking, database_or_container, server_options
from pleiad.cli.view.table import json_text, shown
from pleiad.cli.view.words import counted
from pleiad.engine.faults import BY_WORD, OPERATIONS, SECONDS_DEFAULT
from pleiad.engine.phase import HOLDABLE


@click.group()
def faults() -> None:
    """Make requests of a running server fail, be late or lose their connection, to see what a client does then.

    \b
    Examples:
      pleiad faults add 429 --count 20             the next 20 are throttled
      pleiad faults add 503 --share 0.1 --seed 7   one in ten fails
      pleiad faults add late --delay-ms 500 --operation query --on sample/food
      pleiad faults add cut-after --operation create    written, never told
      pleiad faults add hold --phase committing --on sample/food
      pleiad faults list
      pleiad faults clear

    A fault ends when its count is used up, when its time is over, or when it is cleared.
    """


@faults.command("add", short_help="Set a fault.")
@click.argument("fault", metavar="FAULT", type=click.Choice(list(BY_WORD)))
@click.option("--count", metavar="N", type=click.IntRange(min=1),
              help="Meet so many requests. Without it and --share, one.")  # fmt: skip
@click.option("--share", metavar="PART", type=click.FloatRange(0, 1, min_open=True),
              help="Meet this part of the requests, such as 0.1 for one in ten.")  # fmt: skip
@click.option("--seed", metavar="N", type=click.IntRange(min=0), help="What --share is drawn from.")
@click.option("--on", metavar="DB[/CONTAINER]", callback=database_or_container,
              help="Only requests on this database or container.")  # fmt: skip
@click.option("--partition", metavar="ID", help="Only requests to this physical partition of the container.")
@click.option("--operation", metavar="OPERATION", type=click.Choice(OPERATIONS),
              help=f"Only this operation, of {', '.join(OPERATIONS)}; 'any' is metadata too.")  # fmt: skip
@click.option("--delay-ms", metavar="MS", type=click.IntRange(min=0), help="Wait so long first.")
@click.option("--retry-after-ms", metavar="MS", type=click.IntRange(min=0),
              help="What a 429 tells the client to wait.")  # fmt: skip
@click.option("--phase", type=click.Choice(list(HOLDABLE)), help="Where a hold makes splits and merges wait.")
@click.option("--seconds", metavar="S", type=click.FloatRange(min=0, min_open=True), default=SECONDS_DEFAULT,
              show_default=True, help="How long the fault lasts.")  # fmt: skip
@server_options
def add(fault: str, on: tuple[str, str | None] | None, endpoint: str, key: str, **given: Any) -> None:
    """Set a fault on a running server.

    FAULT is 429, 449, 408, 410/1002, 410/1007, 500 or 503 for an answer instead of the operation; late for the
    operation after a delay; cut-before or cut-after for a connection that is closed before or after the operation;
    hold for splits and merges that wait at a phase.
    """
    database, container = on or (None, None)
    names = {"delay_ms": "delayMs", "retry_after_ms": "retryAfterMs"}
    rule = {names.get(name, name): value for name, value in given.items()}
    rule |= {"fault": fault, "database": database, "container": container}
    with asking(endpoint, key) as admin:
        made = admin.add_fault({name: value for name, value in rule.items() if value is not None})
    click.echo(f"fault {made['id']}: {_sentence(made)}")


@faults.command("list", short_help="Show the faults in force.")
@click.option("--json", "as_json", is_flag=True, help="Print what the server tells, as JSON.")
@server_options
def list_all(endpoint: str, key: str, as_json: bool) -> None:
    """Show the faults in force on a running server."""
    with asking(endpoint, key) as admin:
        found = admin.faults()
    if as_json:
        click.echo(json_text(found, indented=True))
    elif not found:
        click.echo("no faults are set")
    for each in () if as_json else found:
        click.echo(f"fault {each['id']}: {_sentence(each)}")


@faults.command("clear", short_help="End faults.")
@click.argument("id", metavar="[ID]", required=False)
@server_options
def clear(id: str | None, endpoint: str, key: str) -> None:
    """End the fault ID, or all of them."""
    with asking(endpoint, key) as admin:
        if id is not None:
            admin.remove_fault(id)
            click.echo(f"ended fault {id}")
            return
        count = admin.clear_faults()
    click.echo(f"ended {counted(count, 'fault')}")


def _sentence(rule: dict[str, Any]) -> str:
    """A rule in words."""
    parts = [rule["fault"]]
    if "phase" in rule:
        parts.append(f"splits and merges at {rule['phase']}")
    if "delayMs" in rule:
        parts.append(f"after {rule['delayMs']:,} ms")
    if "share" in rule:
        parts.append(f"for {100 * rule['share']:g}% of requests (seed {rule['seed']})")
    if "count" in rule:
        parts.append(f"for {counted(rule['count'], 'request')}")
    place = "/".join(shown(rule[name]) for name in ("database", "container") if name in rule)
    if place:
        parts.append(f"on {place}")
    if "partition" in rule:
        parts.append(f"partition {shown(rule['partition'])}")
    if "operation" in rule:
        parts.append(f"operation {rule['operation']}")
    elif "phase" not in rule:
        parts.append("any operation on items")
    parts.append(f"met {counted(rule['hits'], 'time')}")
    parts.append(f"{rule['secondsLeft']:.0f} s left")
    return ", ".join(parts)
