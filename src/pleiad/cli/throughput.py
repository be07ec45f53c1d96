"""`pleiad throughput`: shows and sets the RU/s of a database or container, and shows those of the whole account."""

from __future__ import annotations

from typing import Any

import click

from pleiad.cli.options import asking, database_or_container, server_options


def _shares(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    shares = {}
    for text in given:
        id, equals, rate = text.partition("=")
        if not equals or not id or not rate.isascii() or not rate.isdigit():
            raise click.BadParameter(f"'{text}' is not of the form ID=RU, such as 0=3000")
        shares[id] = float(rate)
    return shares


@click.command()
@click.argument("target", metavar="[DB[/CONTAINER]]", required=False, callback=database_or_container)
@click.argument("value", metavar="[RU]", required=False, type=click.IntRange(min=1))
@click.option("--autoscale", "autoscale_max", metavar="MAX", type=click.IntRange(min=1),
              help="Scale by use, from a tenth of MAX up to MAX.")  # fmt: skip
@click.option("--partition", "shares", metavar="ID=RU", multiple=True, callback=_shares,
              help="What a physical partition gets of the container's throughput; to be given for each of them, and "
              "together they are all of it.")  # fmt: skip
@click.option("--even", is_flag=True, help="Give every physical partition the same share again.")
@server_options
def throughput(
    target: tuple[str, str | None] | None,
    value: int | None,
    autoscale_max: int | None,
    shares: dict[str, float],
    even: bool,
    endpoint: str,
    key: str,
) -> None:
    """Show the throughput of a database or container, or set it to RU request units per second.

    Without a name it tells what the whole account has and may have.

    \b
    Examples:
      pleiad throughput                                all together
      pleiad throughput sample/food                    what it has
      pleiad throughput sample/food 1000               a fixed figure
      pleiad throughput sample/food --autoscale 4000   from 400 to 4000, by use
      pleiad throughput sample                         what its containers share
      pleiad throughput shop/orders --partition 0=9000 --partition 1=3000
    """
    if target is None:
        if value is not None or autoscale_max is not None or shares or even:
            raise click.UsageError("name the database or container: DB or DB/CONTAINER")
        with asking(endpoint, key) as admin:
            click.echo(_account_sentence(admin.account_throughput()))
        return
    database, container = target
    if sum([value is not None, autoscale_max is not None, bool(shares), even]) > 1:
        raise click.UsageError("give only one of RU, --autoscale, --partition and --even")
    if (shares or even) and container is None:
        raise click.UsageError("only the throughput of a container is shared out: name it as DB/CONTAINER")
    with asking(endpoint, key) as admin:
        if (shares or even) and container is not None:
            rates = admin.redistribute(database, container, shares or None)
            click.echo("\n".join(f"partition {id}: {rate:,.0f} RU/s" for id, rate in rates.items()))
            return
        if value is not None:
            found = admin.set_throughput(*target, {"ru": value})
        elif autoscale_max is not None:
            found = admin.set_throughput(*target, {"autoscaleMaximumRu": autoscale_max})
        else:
            found = admin.throughput(*target)
    click.echo(_sentence(found))


def _account_sentence(found: dict[str, Any]) -> str:
    limit = found["limitRu"]
    return f"{found['ru']:,} RU/s in all, " + (f"of {limit:,} RU/s at most" if limit else "without a limit")


def _sentence(found: dict[str, Any]) -> str:
    if "autoscaleMaximumRu" in found:
        most = found["autoscaleMaximumRu"]
        return f"autoscale from {most // 10:,} to {most:,} RU/s"
    return f"{found['ru']:,} RU/s"
