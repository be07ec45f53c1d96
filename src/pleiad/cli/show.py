"""`pleiad show`: what a database or container is, in words or as its definition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from pleiad.cli.key import definition_of, paths_text
from pleiad.cli.options import complete_names, database_or_container, opening, server_options
from pleiad.cli.view.item import definition_shown, json_option, system_option
from pleiad.cli.view.table import json_text, shown
from pleiad.cli.view.words import counted, throughput_text
from pleiad.client.account import Throughput

Lines = list[tuple[str, str]]


@click.command()
@click.argument(
    "place", metavar="DB[/CONTAINER]", callback=database_or_container, shell_complete=complete_names
)
@system_option
@json_option
@server_options
def show(place: tuple[str, str | None], with_system: bool, as_json: bool, endpoint: str, key: str) -> None:
    """Show what a database or container of a running server is.

    With --json it is the definition as clients read it, and as `pleiad create --definition` takes it.

    \b
    Examples:
      pleiad show sample
      pleiad show sample/food
      pleiad show sample/food --json
    """
    database, container = place
    with opening(endpoint, key) as account:
        found = account.read(database, container)
        if as_json:
            click.echo(json_text(definition_shown(found, with_system), indented=True))
            return
        throughputs = account.throughputs()
        own = throughputs.get(found["_rid"])
        if container is None:
            names = [each["id"] for each in account.containers(database)]
            lines = _database_lines(found, names, own)
        else:
            shared = throughputs.get(account.read(database)["_rid"])
            lines = _container_lines(f"{database}/{container}", found, own, shared)
    if with_system:
        lines += [(name, str(found[name])) for name in ("_rid", "_etag", "_ts") if name in found]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        click.echo(f"{name:<{width}}  {text}")


def _database_lines(database: dict[str, Any], containers: list[str], own: Throughput | None) -> Lines:
    return [
        ("database", shown(database["id"])),
        ("containers", ", ".join(map(shown, containers)) or "none"),
        ("throughput", _throughput(own, None)),
        ("changed", _time(database["_ts"])),
    ]


def _container_lines(
    name: str, container: dict[str, Any], own: Throughput | None, shared: Throughput | None
) -> Lines:
    definition = definition_of(container)
    hashed = "hierarchical" if definition.kind == "MultiHash" else f"hash version {definition.version}"
    unique = container.get("uniqueKeyPolicy", {}).get("uniqueKeys", [])
    lines = [
        ("container", shown(name)),
        ("partition key", f"{paths_text(definition)} ({hashed})"),
        ("throughput", _throughput(own, shared)),
        ("time to live", _ttl(container.get("defaultTtl"))),
        ("indexing", _indexing(container.get("indexingPolicy", {}))),
    ]
    for each in unique:
        lines.append(("unique key", ", ".join(map(shown, each["paths"]))))
    for member, title in (("changeFeedPolicy", "change feed"), ("computedProperties", "computed")):
        if container.get(member):
            lines.append((title, json_text(container[member])))
    return [*lines, ("changed", _time(container["_ts"]))]


def _throughput(own: Throughput | None, shared: Throughput | None) -> str:
    text = throughput_text(own, shared)
    return f"{text} RU/s" if text else "none of its own"


def _ttl(seconds: int | None) -> str:
    if seconds is None:
        return "off"
    return "set by items" if seconds == -1 else counted(seconds, "second")


def _indexing(policy: dict[str, Any]) -> str:
    if str(policy.get("indexingMode", "")).lower() == "none":
        return "none"
    texts = []
    for member, word in (("includedPaths", "included"), ("excludedPaths", "excluded")):
        paths = [shown(each["path"]) for each in policy.get(member, [])]
        if paths:
            texts.append(f"{word} {', '.join(paths)}")
    composite = len(policy.get("compositeIndexes", []))
    if composite:
        texts.append(counted(composite, "composite index", "composite indexes"))
    return "; ".join(texts) or "default"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
