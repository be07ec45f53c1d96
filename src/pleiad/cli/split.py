"""`pleiad split`: divides a physical partition in two."""

from __future__ import annotations

import click

from pleiad.cli.items import container_argument
from pleiad.cli.options import asking, server_options
from pleiad.cli.settled import wait_until_settled
from pleiad.cli.view.table import shown
from pleiad.cli.view.words import counted


@click.command()
@container_argument
@click.argument("partition", metavar="[PARTITION]", required=False)
@click.option("--no-wait", is_flag=True, help="Do not wait until the rows have been copied.")
@server_options
def split(container: tuple[str, str], partition: str | None, no_wait: bool, endpoint: str, key: str) -> None:
    """Divide a physical partition of a container in two, each with half of its logical partitions.

    PARTITION is its id, as `pleiad partitions` shows it; a container that has only one needs none. The split itself
    takes a moment whatever the size, and clients go on working; then the rows are copied so that each half has its
    own segment, which this command waits for. A partition with a single logical partition cannot be split.

    \b
    Examples:
      pleiad split sample/food
      pleiad split sample/food 2 --no-wait
    """
    with asking(endpoint, key) as admin:
        made = admin.split(*container, {} if partition is None else {"partition": partition})
        left, right = made["partitions"]
        click.echo(
            f"split {shown(made['parent'])} into {left['id']} ({counted(left['items'], 'item')}) "
            f"and {right['id']} ({counted(right['items'], 'item')})"
        )
        if not no_wait:
            wait_until_settled(admin, container)
