"""`pleiad scenario`: well-known workloads with a good and a bad partition key, run on a server of their own."""

from __future__ import annotations

from dataclasses import asdict

import click

from pleiad.cli.view.table import json_text

SEED_DEFAULT = 1


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--seed", metavar="N", type=click.IntRange(min=0), default=SEED_DEFAULT, show_default=True,
              help="What items and requests are drawn from; the same seed gives the same figures.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def scenario(name: str | None, seed: int, as_json: bool) -> None:
    """Run the scenario NAME, or list those there are.

    Each makes items and requests, starts a server of its own with limits scaled down (a physical partition serves
    100 RU/s, a logical partition holds 200 KB), and shows for a good and a bad partition key what each physical
    partition stores, serves and refuses. Nothing else needs to run, and nothing is left behind.

    \b
    Examples:
      pleiad scenario
      pleiad scenario many-writes
      pleiad scenario tenants-mixed --seed 7 --json
    """
    from pleiad.scenario import knowledge, view
    from pleiad.scenario.run import run
    from pleiad.scenario.shelf import SCENARIOS

    if name is None:
        titles = {each.name: each.title for each in SCENARIOS.values()} | {knowledge.NAME: knowledge.TITLE}
        width = max(map(len, titles))
        lines = [f"{each:<{width}}  {title}" for each, title in titles.items()]
        listed = [{"name": each, "title": title} for each, title in titles.items()]
        click.echo(json_text(listed) if as_json else "\n".join(lines))
        return
    if name == knowledge.NAME:
        asked = knowledge.questions()
        click.echo(json_text(list(map(asdict, asked)), indented=True) if as_json else knowledge.text(asked))
        return
    found = SCENARIOS.get(name)
    if found is None:
        names = ", ".join([*SCENARIOS, knowledge.NAME])
        raise click.BadParameter(f"there is no scenario '{name}': they are {names}")
    result = run(found, seed, lambda told: click.echo(f"running {told} ...", err=True))
    click.echo(json_text(view.as_json(result), indented=True) if as_json else view.text(result))
