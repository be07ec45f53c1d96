"""`pleiad get`: prints one item."""

from __future__ import annotations

from typing import Any

import click

from pleiad.cli.items import charge_text, container_argument, key_of_item, key_option, telling
from pleiad.cli.options import opening, server_options
from pleiad.cli.view.item import item_shown, json_option, system_option
from pleiad.cli.view.table import json_text


@click.command()
@container_argument
@click.argument("id")
@key_option
@system_option
@json_option
@server_options
def get(
    container: tuple[str, str],
    id: str,
    partition_key: list[Any] | None,
    with_system: bool,
    as_json: bool,
    endpoint: str,
    key: str,
) -> None:
    """Print the item ID of a container of a running server, as JSON.

    With --json it is one line. What it cost follows on standard error; without the partition key the item has to be
    searched for first, which costs more with each physical partition.

    \b
    Examples:
      pleiad get sample/flights PL101 --partition-key LAX
      pleiad get sample/food 01001 --system
      pleiad get shop/events 7 --partition-key '["contoso", 5]'
    """
    with opening(endpoint, key) as account, telling(container, id, partition_key):
        found = key_of_item(account, container, id, partition_key)
        answer = account.read_item(container, id, found)
    click.echo(json_text(item_shown(answer.json(), with_system), indented=not as_json))
    click.echo(charge_text(answer), err=True)
