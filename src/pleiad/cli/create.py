"""`pleiad create`: makes a database, or a container with its partition key."""

from __future__ import annotations

import json
import re
from typing import IO, Any

import click

from pleiad.cli.options import complete_names, database_or_container, opening, server_options
from pleiad.cli.view.item import definition_shown, json_option, system_option
from pleiad.cli.view.table import json_text, shown
from pleiad.client.account import Account, Throughput
from pleiad.client.admin import RequestRefusedError

_EXISTS = 409


def _definition(context: click.Context, option: click.Parameter, file: IO[str] | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        value = json.load(file)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{file.name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise click.BadParameter(f"{file.name} must hold a JSON object")
    return value


def _paths(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    paths = [path for text in given for path in re.split(",(?=/)", text)]
    for path in paths:
        if not path.startswith("/"):
            raise click.BadParameter(f"'{path}' is not a path of a property: it begins with a slash, /{path}")
    return paths


@click.command()
@click.argument(
    "place", metavar="DB[/CONTAINER]", callback=database_or_container, shell_complete=complete_names
)
@click.option("--partition-key", "paths", metavar="PATHS", multiple=True, callback=_paths,
              help="The path of the property that is the container's partition key, such as /city; two or three, "
              "with commas between them, are the levels of a hierarchical key.")  # fmt: skip
@click.option("--throughput", "throughput_ru", metavar="RU", type=click.IntRange(min=1),
              help="Provisioned throughput, in RU/s.")  # fmt: skip
@click.option("--autoscale", "autoscale_max", metavar="MAX", type=click.IntRange(min=1),
              help="Throughput that scales by use, up to MAX RU/s.")  # fmt: skip
@click.option("--ttl", metavar="SECONDS", type=click.IntRange(min=-1),
              help="Let items expire after so many seconds; -1: only those that say so.")  # fmt: skip
@click.option("--definition", metavar="FILE", type=click.File(encoding="utf-8"), callback=_definition,
              help="A JSON file with what else the container is to have, as `pleiad show --json` prints it; "
              "- is standard input.")  # fmt: skip
@click.option("--if-missing", is_flag=True, help="Do nothing when it is there already.")
@system_option
@json_option
@server_options
def create(
    place: tuple[str, str | None],
    paths: list[str],
    throughput_ru: int | None,
    autoscale_max: int | None,
    ttl: int | None,
    definition: dict[str, Any],
    if_missing: bool,
    with_system: bool,
    as_json: bool,
    endpoint: str,
    key: str,
) -> None:
    """Create a database, or a container and, where it is missing, its database.

    A container needs a partition key, which cannot be changed later. Throughput given for a database is shared by its
    containers.

    \b
    Examples:
      pleiad create shop
      pleiad create shop/orders --partition-key /customerId
      pleiad create shop/events --partition-key /tenant,/user
      pleiad create shop/carts --partition-key /id --ttl 3600 --autoscale 4000
    """
    database, container = place
    if throughput_ru is not None and autoscale_max is not None:
        raise click.UsageError("give only one of --throughput and --autoscale")
    throughput = _throughput(throughput_ru, autoscale_max)
    wanted = {**definition, "id": container}
    if paths:
        wanted["partitionKey"] = {
            "paths": paths,
            "kind": "Hash" if len(paths) == 1 else "MultiHash",
            "version": 2,
        }
    if ttl is not None:
        wanted["defaultTtl"] = ttl
    if container is None and len(wanted) > 1:
        raise click.UsageError("only a container has that: name it as DB/CONTAINER")
    if container is not None and "partitionKey" not in wanted:
        raise click.UsageError("a container needs its partition key: --partition-key /PATH")
    with opening(endpoint, key) as account:
        try:
            if container is None:
                made = account.create_database(database, throughput)
            else:
                made = _create_container(account, database, wanted, throughput)
        except RequestRefusedError as error:
            if error.status != _EXISTS:
                raise
            if not if_missing:
                raise click.ClickException(f"{_named(place)} is there already") from None
            made = account.read(database, container)
            click.echo(f"{_named(place)} is there already", err=True)
        else:
            click.echo(f"created {_named(place)}", err=as_json)
    if as_json:
        click.echo(json_text(definition_shown(made, with_system), indented=True))


def _throughput(ru: int | None, autoscale_max: int | None) -> Throughput | None:
    if autoscale_max is not None:
        return Throughput(autoscale_max, autoscale=True)
    return None if ru is None else Throughput(ru)


def _create_container(
    account: Account, database: str, definition: dict[str, Any], throughput: Throughput | None
) -> dict[str, Any]:
    if database not in [each["id"] for each in account.databases()]:
        try:
            account.create_database(database)
        except RequestRefusedError as error:
            if error.status != _EXISTS:  # somebody else was faster
                raise
    return account.create_container(database, definition, throughput)


def _named(place: tuple[str, str | None]) -> str:
    database, container = place
    return shown(f"the database {database}" if container is None else f"the container {database}/{container}")
