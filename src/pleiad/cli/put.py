"""`pleiad put`: writes one item."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from pleiad.cli.items import charge_text, container_argument, if_match_option, telling
from pleiad.cli.key import definition_of, key_of
from pleiad.cli.options import opening, server_options
from pleiad.cli.view.item import item_shown, json_option, system_option
from pleiad.cli.view.table import json_text, shown

_CREATED = 201


def _item(context: click.Context, argument: click.Parameter, given: str) -> dict[str, Any]:
    """The item that is given: its JSON, the file it is in, or - for standard input."""
    if given.lstrip()[:1] in ("{", "["):
        text, name = given, "the item"
    elif given == "-":
        text, name = sys.stdin.read(), "standard input"
    else:
        name = given
        try:
            text = Path(given).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise click.BadParameter(
                f"{given} cannot be read ({reason}); an item is JSON, a file, or - for standard input"
            ) from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise click.BadParameter(f"{name} must be one JSON object with a text as id")
    return value


@click.command()
@container_argument
@click.argument("item", metavar="ITEM", default="-", callback=_item)
@click.option("--create", "must_be_new", is_flag=True, help="Refuse when there is such an item already.")
@if_match_option("Replace the item only if it has this ETag, as `pleiad get --system` shows it.")
@system_option
@json_option
@server_options
def put(
    container: tuple[str, str],
    item: dict[str, Any],
    must_be_new: bool,
    if_match: str | None,
    with_system: bool,
    as_json: bool,
    endpoint: str,
    key: str,
) -> None:
    """Write ITEM into a container of a running server; what is there under its key and id is replaced.

    ITEM is a JSON object, the name of a file with one, or - for standard input, which is also what is read without it.
    Its partition key is found in it. With --json the item is printed as it was written.

    \b
    Examples:
      pleiad put sample/users '{"id": "profile", "userId": "Maia"}'
      pleiad put sample/users maia.json --create
      pleiad get sample/users profile --partition-key Maia --system > m.json
      pleiad put sample/users m.json --if-match "$(jq -r ._etag m.json)"
    """
    if must_be_new and if_match is not None:
        raise click.UsageError("a new item has no ETag: give only one of --create and --if-match")
    with opening(endpoint, key) as account:
        found = key_of(definition_of(account.read(*container)), item)
        with telling(container, item["id"], found):
            if must_be_new:
                answer = account.create_item(container, item, found)
            elif if_match is not None:
                answer = account.replace_item(container, item, found, if_match)
            else:
                answer = account.upsert_item(container, item, found)
    if as_json:
        click.echo(json_text(item_shown(answer.json(), with_system)))
    done = "created" if answer.status == _CREATED else "replaced"
    click.echo(f"{done} {shown(item['id'])}, {charge_text(answer)}", err=as_json)
