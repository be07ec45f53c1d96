"""`pleiad copy`: copies of containers, made by their server in the background."""

from __future__ import annotations

import json
import math
import re
import time
from typing import IO, Any

import click

from pleiad.cli.options import asking, complete_names, container_names, server_options
from pleiad.cli.view.progress_line import ProgressLine, bar, duration
from pleiad.cli.view.table import shown, table
from pleiad.cli.view.words import counted
from pleiad.client.admin import Admin
from pleiad.client.connection import ConnectionFailedError

_POLL_SECONDS = 0.2
_BAR_WIDTH = 20
_OVER = ("done", "failed", "cancelled")


def _place(context: click.Context, argument: click.Parameter, text: str | None) -> tuple[str, str] | None:
    return None if text is None else container_names(context, argument, text)


def _paths(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    return [path for text in given for path in re.split(",(?=/)", text)]


def _share(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):  # which no range leaves out
        raise click.BadParameter("it is no number from 0.01 to 1")
    return value


def _sets(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        path, equals, expression = text.partition("=")
        if not equals or not path.startswith("/"):
            raise click.BadParameter(
                f"'{text}' is not a path and an expression, such as /both=CONCAT(c.a, c.b)"
            )
        found[path.strip()] = expression.strip()
    return found


def _policy(context: click.Context, option: click.Parameter, file: IO[str] | None) -> Any:
    try:
        return None if file is None else json.load(file)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"it is not JSON: {error}") from None


@click.command()
@click.argument(
    "source", metavar="[DB/SOURCE", required=False, callback=_place, shell_complete=complete_names
)
@click.argument(
    "target", metavar="DB/TARGET]", required=False, callback=_place, shell_complete=complete_names
)
@click.option("--partition-key", "paths", metavar="PATHS", multiple=True, callback=_paths,
              help="The partition key of the target, such as /city; two or three paths with commas between them are "
              "the levels of a hierarchical key. Without it, that of the source.")  # fmt: skip
@click.option("--set", "sets", metavar="PATH=EXPRESSION", multiple=True, callback=_sets,
              help="Give every item of the target a property, computed from the item `c`. Often it is the "
              "partition key.")  # fmt: skip
@click.option("--online", is_flag=True,
              help="Follow the changes of the source until --complete is called.")  # fmt: skip
@click.option("--switch", is_flag=True,
              help="Follow the source, and at the end give the target its name; the source gets that of the target "
              "and is closed to writes.")  # fmt: skip
@click.option("--share", type=click.FloatRange(0.01, 1), default=None, callback=_share,
              help="How much of the throughput of both containers the copy may use, from 0.01 to 1; 0.1 without "
              "it.")  # fmt: skip
@click.option("--throughput", "throughput_ru", metavar="RU", type=click.IntRange(min=1),
              help="RU/s of the target. Without it, those of the source.")  # fmt: skip
@click.option("--autoscale", "autoscale_max", metavar="MAX", type=click.IntRange(min=1),
              help="Throughput of the target that scales by use, up to MAX RU/s.")  # fmt: skip
@click.option("--shared", is_flag=True, help="Let the target share the throughput of its database.")
@click.option("--unique-key", "unique_keys", metavar="PATHS", multiple=True,
              help="A unique key of the target: one or more paths with commas between them. `none` for no unique "
              "keys. Without it, those of the source.")  # fmt: skip
@click.option("--ttl", metavar="SECONDS", default=None,
              help="Let items of the target expire after so many seconds; -1: only those that say so; off: "
              "never.")  # fmt: skip
@click.option("--indexing-policy", metavar="FILE", type=click.File(encoding="utf-8"), callback=_policy,
              help="A JSON file with the indexing policy of the target.")  # fmt: skip
@click.option("--no-wait", is_flag=True, help="Begin the copy and return at once.")
@click.option("--list", "lists", is_flag=True, help="List the copies under way and the last ones that ended.")
@click.option("--status", metavar="ID", help="Show one copy.")
@click.option("--complete", metavar="ID", help="Complete an online copy, and wait for its end.")
@click.option("--cancel", metavar="ID",
              help="End a copy without a result. A target that the copy has made is removed; one that was there "
              "stays, with what was copied.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
@server_options
def copy(
    source: tuple[str, str] | None,
    target: tuple[str, str] | None,
    no_wait: bool,
    lists: bool,
    status: str | None,
    complete: str | None,
    cancel: str | None,
    as_json: bool,
    endpoint: str,
    key: str,
    **wanted: Any,
) -> None:
    """Copy a container into another one: the way to another partition key, which no container can change in place.

    The server copies in the background and survives a restart, so this command only watches: Ctrl-C ends the
    watching, and the same command goes on with it. The target is made, or is an empty container. At the end every
    item is compared and counted. What is copied is one moment of the source; with --online everything that happens
    to it until --complete, and with --switch everything until the target has its name.

    \b
    Examples:
      pleiad copy shop/orders shop/by-city --partition-key /city
      pleiad copy shop/orders shop/new --partition-key /tenant,/month --switch
      pleiad copy shop/orders shop/new --partition-key /tenantMonth \\
          --set '/tenantMonth=CONCAT(c.tenant, "-", LEFT(c.at, 7))' --online
      pleiad copy --complete 3f0f2ffd03aa
    """
    asked = [given for given in (status, complete, cancel) if given is not None]
    if len(asked) + lists + (source is not None) != 1 or (source is None) != (target is None):
        raise click.UsageError(
            "give a source and a target, or one of --list, --status, --complete and --cancel"
        )
    with asking(endpoint, key) as admin:
        if lists:
            found = admin.copies()
            click.echo(json.dumps({"copies": found}) if as_json else _table(found))
            return
        if status is not None:
            told = admin.copy(status)
        elif cancel is not None:
            told = _watch(admin, admin.cancel_copy(cancel), as_json, until_ready=False)
        elif complete is not None:
            told = _watch(admin, admin.complete_copy(complete), as_json, until_ready=False)
        else:
            assert source is not None
            assert target is not None
            told = admin.start_copy(_plan("/".join(source), "/".join(target), wanted))
            if not no_wait:
                told = _watch(admin, told, as_json, until_ready=True)
    is_failure = told["state"] == "failed" and status is None
    if is_failure and not as_json:
        raise click.ClickException(told_text(told))
    click.echo(json.dumps(told) if as_json else told_text(told))
    if is_failure:
        raise click.exceptions.Exit(1)


def _plan(source: str, target: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The body of the request that begins a copy."""
    plan: dict[str, Any] = {"source": source, "target": target}
    plan |= {"online": wanted["online"], "switch": wanted["switch"]}
    if wanted["paths"]:
        plan["partitionKey"] = wanted["paths"]
    if wanted["sets"]:
        plan["set"] = wanted["sets"]
    if wanted["share"] is not None:
        plan["share"] = wanted["share"]
    ru, autoscale_max, shared = wanted["throughput_ru"], wanted["autoscale_max"], wanted["shared"]
    if (ru is not None) + (autoscale_max is not None) + shared > 1:
        raise click.UsageError("give only one of --throughput, --autoscale and --shared")
    if ru is not None:
        plan["throughput"] = {"ru": ru}
    elif autoscale_max is not None:
        plan["throughput"] = {"autoscaleMaximumRu": autoscale_max}
    elif shared:
        plan["throughput"] = "shared"
    if wanted["unique_keys"]:
        is_none = wanted["unique_keys"] == ("none",)
        plan["uniqueKeys"] = [] if is_none else [re.split(",(?=/)", keys) for keys in wanted["unique_keys"]]
    if wanted["ttl"] is not None:
        plan["defaultTtl"] = _ttl(wanted["ttl"])
    if wanted["indexing_policy"] is not None:
        plan["indexingPolicy"] = wanted["indexing_policy"]
    return plan


def _ttl(text: str) -> int | None:
    if text == "off":
        return None
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is neither a number of seconds nor 'off'", param_hint="--ttl"
        ) from None


def _watch(admin: Admin, told: dict[str, Any], is_quiet: bool, until_ready: bool) -> dict[str, Any]:
    """Shows how far a copy is until it is over, or until it waits to be completed."""
    meter = ProgressLine(is_quiet)
    try:
        while told["state"] not in _OVER:
            if until_ready and told["ready"] and not told["switch"]:
                break
            if meter.is_due:
                meter.show(progress_text(told))
            time.sleep(_POLL_SECONDS)
            told = admin.copy(told["id"])
    except KeyboardInterrupt:
        raise click.ClickException(
            f"the copy {told['id']} goes on in the server: see it with --status, end it with --cancel"
        ) from None
    except ConnectionFailedError as error:
        raise click.ClickException(
            f"{error}\nthe copy {told['id']} goes on when the server is there again: "
            f"see it with `pleiad copy --status {told['id']}`"
        ) from None
    finally:
        meter.clear()
    return told


def progress_text(told: dict[str, Any]) -> str:
    """One line on a copy under way."""
    done, total = told["done"], told["total"]
    share = done / total if total else 0.0
    text = f"{bar(share, _BAR_WIDTH)} {told['step']} {done:,} of {counted(total, 'item')}"
    if told["step"] == "copying" and told["ratePerSecond"]:
        text += f", {told['ratePerSecond']:,.0f} items/s, {duration(told['secondsLeft'] or 0)} left"
    if told["followed"]:
        text += f", {counted(told['followed'], 'change')} followed"
    return text


def told_text(told: dict[str, Any]) -> str:
    """What there is to say of a copy."""
    way = shown(f"{told['source']} to {told['target']}")
    if told["state"] == "done":
        lines = [f"copied {counted(told['verified'], 'item')} from {way}"]
        lines.append(f"counts and checksums agree ({told['checksum']})")
        if told["switch"]:
            lines.append(f"{shown(told['source'])} is the copy now; writers waited {told['heldMs']} ms")
            lines.append(f"what it was before is {shown(told['sourceKeptAs'])}, which takes no writes")
        return "\n".join(lines)
    if told["state"] == "failed":
        items = "".join(f"\n  {shown(item)}" for item in told["items"])
        return f"the copy {told['id']} from {way} failed:\n{shown(told['problem'])}{items}"
    if told["state"] == "cancelled":
        return f"the copy {told['id']} from {way} is cancelled"
    if told["ready"] and not told["switch"]:
        return (
            f"the copy {told['id']} from {way} has caught up and follows:\n"
            f"stop the writers or send them to the target, then\n  pleiad copy --complete {told['id']}"
        )
    return f"the copy {told['id']} from {way} is {told['state']}: {progress_text(told)}"


def _table(found: list[dict[str, Any]]) -> str:
    if not found:
        return "there are no copies"
    columns = ("id", "source", "target", "state", "step")
    rows = [
        {**{name: each[name] for name in columns}, "items": f"{each['done']:,} of {each['total']:,}"}
        for each in found
    ]
    return table(rows, None) or ""
