"""`pleiad throughput`: shows and sets the request units per second of a database or container."""

from __future__ import annotations

from typing import Any

import click

from pleiad.cli.options import asking, database_or_container, server_options


@click.command(short_help="Show or set throughput.")
@click.argument("target", metavar="DB[/CONTAINER]", callback=database_or_container)
@click.argument("value", metavar="[RU]", required=False, type=click.IntRange(min=1))
@click.option("--autoscale", "autoscale_max", metavar="MAX", type=click.IntRange(min=1),
              help="Scale by use, from a tenth of MAX up to MAX.")  # fmt: skip
@server_options
def throughput(
    target: tuple[str, str | None], value: int | None, autoscale_max: int | None, endpoint: str, key: str
) -> None:
    """Show the throughput of a database or container, or set it to RU request units per second.

    \b
    Examples:
      pleiad throughput sample/food                     what it has
      pleiad throughput sample/food 1000                a fixed figure
      pleiad throughput sample/food --autoscale 4000    from 400 to 4000, by use
      pleiad throughput sample                          what the containers of a database share
    """
    if value is not None and autoscale_max is not None:
        raise click.UsageError("throughput is either a fixed figure or --autoscale, not both")
    with asking(endpoint, key) as admin:
        if value is not None:
            found = admin.set_throughput(*target, {"ru": value})
        elif autoscale_max is not None:
            found = admin.set_throughput(*target, {"autoscaleMaximumRu": autoscale_max})
        else:
            found = admin.throughput(*target)
    click.echo(_sentence(found))


def _sentence(found: dict[str, Any]) -> str:
    if "autoscaleMaximumRu" in found:
        most = found["autoscaleMaximumRu"]
        return f"autoscale from {most // 10:,} to {most:,} RU/s"
    return f"{found['ru']:,} RU/s"
