"""`pleiad merge`: makes one physical partition of neighbours."""

from __future__ import annotations

import click

from pleiad.cli.items import container_argument
from pleiad.cli.options import asking, server_options
from pleiad.cli.settled import wait_until_settled
from pleiad.cli.view.table import shown
from pleiad.cli.view.words import counted


@click.command()
@container_argument
@click.argument("partitions", metavar="PARTITION PARTITION...", nargs=-1, required=True)
@click.option("--no-wait", is_flag=True, help="Do not wait for a merge that takes longer.")
@server_options
def merge(
    container: tuple[str, str], partitions: tuple[str, ...], no_wait: bool, endpoint: str, key: str
) -> None:
    """Make one physical partition of two or more whose ranges are next to each other.

    The throughput of the container must be low enough for the partitions that remain, and together they must not be
    larger than one may be. Their rows are copied while clients go on working.

    \b
    Examples:
      pleiad merge sample/food 1 2
      pleiad throughput sample/food 1000 && pleiad merge sample/food 3 4 5
    """
    if len(partitions) < 2:
        raise click.UsageError("a merge takes two or more partitions")
    with asking(endpoint, key) as admin:
        made = admin.merge(*container, {"partitions": list(partitions)})
        names = ", ".join(map(shown, partitions))
        if made["settled"]:
            merged = made["partition"]
            click.echo(f"merged {names} into {merged['id']} ({counted(merged['items'], 'item')})")
            return
        click.echo(f"merging {names} goes on")
        if not no_wait:
            wait_until_settled(admin, container)
