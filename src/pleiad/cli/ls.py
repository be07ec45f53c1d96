"""`pleiad ls`: what there is in an account, a database or a container."""

from __future__ import annotations

from typing import Any

import click

from pleiad.cli.key import KEY_HELP, definition_of, key_values, paths_text
from pleiad.cli.options import complete_names, database_or_container, opening, server_options
from pleiad.cli.view.item import definition_shown, echo_rows, item_shown, json_option, system_option
from pleiad.cli.view.words import counted, throughput_text
from pleiad.client.account import Account

LIMIT_DEFAULT = 100


@click.command()
@click.argument(
    "place",
    metavar="[DB[/CONTAINER]]",
    required=False,
    callback=database_or_container,
    shell_complete=complete_names,
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=LIMIT_DEFAULT, show_default=True,
              help="List so many items at most.")  # fmt: skip
@click.option(
    "--partition-key", metavar="VALUE", callback=key_values, help=f"Only items of one key. {KEY_HELP}"
)
@system_option
@json_option
@server_options
def ls(
    place: tuple[str, str | None] | None,
    limit: int,
    partition_key: list[Any] | None,
    with_system: bool,
    as_json: bool,
    endpoint: str,
    key: str,
) -> None:
    """List the databases of a running server, the containers of a database, or the items of a container.

    Columns are cut where the terminal is narrow; --json has everything.

    \b
    Examples:
      pleiad ls
      pleiad ls sample
      pleiad ls sample/food --limit 10
      pleiad ls sample/flights --partition-key LAX --json
    """
    database, container = place or (None, None)
    if partition_key is not None and container is None:
        raise click.UsageError("a partition key is one of a container: name it as DB/CONTAINER")
    with opening(endpoint, key) as account:
        if database is None:
            _list_databases(account, with_system, as_json)
        elif container is None:
            _list_containers(account, database, with_system, as_json)
        else:
            _list_items(account, (database, container), partition_key, limit, with_system, as_json)


def _list_databases(account: Account, with_system: bool, as_json: bool) -> None:
    databases = account.databases()
    if as_json:
        echo_rows([definition_shown(each, with_system) for each in databases], as_json=True)
        return
    throughputs = account.throughputs()
    rows = [
        {
            "database": each["id"],
            "containers": len(account.containers(each["id"])),
            "RU/s": throughput_text(throughputs.get(each["_rid"])),
            **(_system_of(each) if with_system else {}),
        }
        for each in databases
    ]
    echo_rows(rows, as_json=False)
    if not rows:
        click.echo("there are no databases yet: pleiad create DB/CONTAINER --partition-key /PATH", err=True)


def _list_containers(account: Account, database: str, with_system: bool, as_json: bool) -> None:
    containers = account.containers(database)
    if as_json:
        echo_rows([definition_shown(each, with_system) for each in containers], as_json=True)
        return
    throughputs = account.throughputs()
    shared = throughputs.get(account.read(database)["_rid"])
    rows = [
        {
            "container": each["id"],
            "partition key": paths_text(definition_of(each)),
            "RU/s": throughput_text(throughputs.get(each["_rid"]), shared),
            **(_system_of(each) if with_system else {}),
        }
        for each in containers
    ]
    echo_rows(rows, as_json=False)
    if not rows:
        click.echo(f"there are no containers in {database} yet", err=True)


def _system_of(resource: dict[str, Any]) -> dict[str, Any]:
    return {name: resource[name] for name in ("_rid", "_etag", "_ts")}


def _list_items(
    account: Account,
    container: tuple[str, str],
    partition_key: list[Any] | None,
    limit: int,
    with_system: bool,
    as_json: bool,
) -> None:
    # One more than wanted tells whether there are more.
    found = list(account.query(container, "SELECT * FROM c", key=partition_key, limit=limit + 1))
    rows = [item_shown(item, with_system) for item in found[:limit]]
    if not as_json:
        paths = definition_of(account.read(*container)).path_steps
        first = [steps[0] for steps in paths if len(steps) == 1] + ["id"]
        rows = [{name: row[name] for name in dict.fromkeys([*first, *row]) if name in row} for row in rows]
    echo_rows(rows, as_json)
    more = "; there are more: --limit N" if len(found) > limit else ""
    click.echo(counted(len(rows), "item") + more, err=True)
