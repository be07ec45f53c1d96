"""`pleiad split`: divides a physical partition in two."""

from __future__ import annotations

import click

from pleiad.cli.options import asking, container_names, server_options
from pleiad.cli.progress import wait_until_settled
from pleiad.cli.table import shown


@click.command(short_help="Split a physical partition.")
@click.argument("container", metavar="DB/CONTAINER", callback=container_names)
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
            f"split {shown(made['parent'])} into {left['id']} ({left['items']:,} items) "
            f"and {right['id']} ({right['items']:,} items)"
        )
        if not no_wait:
            wait_until_settled(admin, container)
