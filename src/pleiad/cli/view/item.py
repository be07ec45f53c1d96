"""Items and definitions on a terminal: tables that fit it, without what the system adds unless that is asked for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from pleiad.cli.view.table import json_text, table
from pleiad.item.body import SYSTEM_PROPERTIES

_OF_EVERY_ITEM = frozenset({"_rid", "_self", "_etag", "_ts"})

system_option = click.option(
    "--system", "with_system", is_flag=True, help="Show what the system adds too: _etag, _ts, _rid and so on."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def item_shown(item: Any, with_system: bool) -> Any:
    """A whole item without its system properties; anything else as it is, since it was asked for by name."""
    if with_system or not isinstance(item, dict) or not item.keys() >= _OF_EVERY_ITEM:
        return item
    return {name: value for name, value in item.items() if name not in SYSTEM_PROPERTIES}


def definition_shown(resource: Mapping[str, Any], with_system: bool) -> dict[str, Any]:
    """A database or container without what the system adds, whose names all begin alike."""
    return {name: value for name, value in resource.items() if with_system or not name.startswith("_")}


def terminal_columns() -> int | None:
    """How wide standard output is; None where nobody looks at it."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def echo_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Rows as a table, or as one JSON array."""
    if as_json:
        click.echo(json_text(list(rows), indented=True))
    elif rows:
        flat = [{name: _flat(value) for name, value in row.items()} for row in rows]
        click.echo(table(flat, terminal_columns()))


def _flat(value: Any) -> Any:
    return json_text(value) if isinstance(value, dict | list) else value
