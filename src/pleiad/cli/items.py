"""What the verbs on single items share: the key of an item, and what is said when it is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click

from pleiad.cli.key import KEY_HELP, definition_of, key_of, key_text, key_values
from pleiad.cli.options import Command, complete_names, container_names
from pleiad.cli.view.table import shown
from pleiad.client.account import Account
from pleiad.client.admin import RequestRefusedError
from pleiad.client.connection import Answer

container_argument = click.argument(
    "container", metavar="DB/CONTAINER", callback=container_names, shell_complete=complete_names
)
key_option = click.option(
    "--partition-key",
    metavar="VALUE",
    callback=key_values,
    help=f"{KEY_HELP} Without it the one item with this id is looked for.",
)
_FOUND_MAX = 2


def if_match_option(help_text: str) -> Callable[[Command], Command]:
    """The option --if-match."""
    return click.option("--if-match", metavar="ETAG", callback=_quoted, help=help_text)


def _quoted(context: click.Context, option: click.Parameter, etag: str | None) -> str | None:
    """An ETag with its quotes, which are a part of it and which shells take away."""
    return etag if etag is None or etag == "*" or etag.startswith('"') else f'"{etag}"'


def key_of_item(account: Account, container: tuple[str, str], id: str, given: list[Any] | None) -> list[Any]:
    """The key of an item: the one that is given, else that of the only item with this id."""
    if given is not None:
        return given
    definition = definition_of(account.read(*container))
    if definition.paths == ("/id",):
        return [id]
    text = "SELECT * FROM c WHERE c.id = @id"
    keys = [key_of(definition, item) for item in account.query(container, text, {"id": id}, limit=_FOUND_MAX)]
    if not keys:
        raise click.ClickException(f"there is no item {shown(id)} in {shown('/'.join(container))}")
    if len(keys) > 1:
        raise click.ClickException(
            f"more than one item has the id {shown(id)}: say which with --partition-key, "
            f"such as {' or '.join(map(key_text, keys))}"
        )
    return keys[0]


@contextlib.contextmanager
def telling(container: tuple[str, str], id: str, key: list[Any] | None) -> Iterator[None]:
    """What the server refuses of an item, in a sentence that names it."""
    try:
        yield
    except RequestRefusedError as error:
        place = shown("/".join(container))
        if error.status == 404 and "wner resource" not in str(error) and key is not None:
            text = f"there is no item {shown(id)} with the partition key {key_text(key)} in {place}"
        elif error.status == 409:
            text = f"there is an item {shown(id)} in {place} already, or one with the same unique key"
        elif error.status == 412:
            text = f"the item {shown(id)} has another ETag: it was changed since"
        else:
            raise
        raise click.ClickException(text) from None


def charge_text(answer: Answer) -> str:
    """What a request cost."""
    return f"{float(answer.headers.get('x-ms-request-charge', '0')):.2f} RU"
