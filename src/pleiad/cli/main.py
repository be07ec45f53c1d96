"""The `pleiad` command: its verbs, put together."""

from __future__ import annotations

import click

from pleiad.cli.check import check
from pleiad.cli.copy_data import copy_data
from pleiad.cli.faults import faults
from pleiad.cli.merge import merge
from pleiad.cli.partitions import partitions
from pleiad.cli.query import query
from pleiad.cli.serve import serve
from pleiad.cli.split import split
from pleiad.cli.throughput import throughput


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="pleiad")
def cli() -> None:
    """Pleiad: a partitioned database that Cosmos DB clients work against, run by yourself.

    Start one with `pleiad serve` and point any Cosmos DB SDK at the endpoint it prints.
    """


cli.add_command(serve)
cli.add_command(query)
cli.add_command(partitions)
cli.add_command(split)
cli.add_command(merge)
cli.add_command(throughput)
cli.add_command(faults)
cli.add_command(copy_data)
cli.add_command(check)


def main() -> None:
    """The entry point of the installed command."""
    cli()
