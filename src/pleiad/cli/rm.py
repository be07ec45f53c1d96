"""`pleiad rm`: deletes an item, a container or a database."""

from __future__ import annotations

from typing import Any

import click

from pleiad.cli.items import charge_text, if_match_option, key_of_item, key_option, telling
from pleiad.cli.options import complete_names, database_or_container, opening, server_options
from pleiad.cli.view.table import shown
from pleiad.cli.view.words import counted
from pleiad.client.account import Account


@click.command()
@click.argument(
    "place", metavar="DB[/CONTAINER]", callback=database_or_container, shell_complete=complete_names
)
@click.argument("id", metavar="[ID]", required=False)
@key_option
@if_match_option("Delete the item only if it has this ETag.")
@click.option("--yes", is_flag=True, help="Do not ask before a container or database is deleted.")
@server_options
def rm(
    place: tuple[str, str | None],
    id: str | None,
    partition_key: list[Any] | None,
    if_match: str | None,
    yes: bool,
    endpoint: str,
    key: str,
) -> None:
    """Delete the item ID of a container, or a container or database with everything in it.

    Before a container or a database is deleted, its name has to be typed once more.

    \b
    Examples:
      pleiad rm sample/users profile --partition-key Andrew
      pleiad rm sample/food
      pleiad rm sample --yes
    """
    database, container = place
    if container is None and id is not None:
        raise click.UsageError("an item is in a container: name it as DB/CONTAINER")
    if id is None and (partition_key is not None or if_match is not None):
        raise click.UsageError("name the item to delete: DB/CONTAINER ID")
    with opening(endpoint, key) as account:
        if container is not None and id is not None:
            with telling((database, container), id, partition_key):
                found = key_of_item(account, (database, container), id, partition_key)
                answer = account.delete_item((database, container), id, found, if_match)
            click.echo(f"deleted {shown(id)}, {charge_text(answer)}")
            return
        name = database if container is None else f"{database}/{container}"
        what = _described(account, database, container)
        if not yes:
            _ask(name, what)
        account.delete(database, container)
        click.echo(f"deleted {what}")


def _described(account: Account, database: str, container: str | None) -> str:
    """What would go; it fails when there is nothing of that name."""
    if container is not None:
        account.read(database, container)
        return f"the container {shown(f'{database}/{container}')}"
    account.read(database)
    count = len(account.containers(database))
    return f"the database {shown(database)} with {counted(count, 'container')}"


def _ask(name: str, what: str) -> None:
    try:
        typed = click.prompt(f"This deletes {what} for good. Type {shown(name)} to go on", err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.ClickException("nothing was deleted; --yes deletes without asking") from None
    if typed != name:
        raise click.ClickException("that is another name; nothing was deleted")
