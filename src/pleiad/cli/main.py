"""The `pleiad` command: its verbs, each loaded when it is named, so that none waits for what another needs."""

from __future__ import annotations

import difflib
import errno
import importlib
import keyword
import os
import sys

import click

VERBS = {
    "serve": "Serve a database.",
    "wait": "Wait until a server is ready.",
    "ls": "List databases, containers or items.",
    "show": "Show what a database or container is.",
    "create": "Create a database or container.",
    "get": "Print an item.",
    "put": "Write an item.",
    "rm": "Delete an item, container or database.",
    "query": "Run a query and see what it costs.",
    "shell": "Type verbs and queries at a prompt.",
    "partitions": "Show physical partitions.",
    "top": "Watch what keeps a server busy.",
    "workload": "Record the requests on a container.",
    "split": "Split a physical partition.",
    "merge": "Merge physical partitions.",
    "throughput": "Show or set throughput.",
    "faults": "Make requests fail on demand.",
    "scenario": "See good and bad partition keys at work.",
    "import": "Bring a file of items into a container.",
    "export": "Write the items of a container to a file.",
    "advise": "Choose a partition key from measurement.",
    "copy": "Copy a container, with another partition key.",
    "copy-data": "Copy an account to another store.",
    "check": "Look for damage in a data directory or a database.",
    "backup": "Back up an account in SQLite.",
    "restore": "Make a data directory of a backup.",
}
"""What each verb does; it is the command of the same name in the file of the same name."""


class Verbs(click.Group):
    """The verbs by name."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return verb(name) if name in VERBS else None

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            for likely in difflib.get_close_matches(args[0], VERBS, 1):
                raise click.UsageError(f"{error.message} Did you mean '{likely}'?", context) from None
            raise

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def verb(name: str) -> click.Command:
    """The command of a verb."""
    file = name.replace("-", "_") + ("_" if keyword.iskeyword(name) else "")
    command: click.Command = getattr(importlib.import_module(f"pleiad.cli.{file}"), file)
    return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pleiad")
def cli() -> None:
    """Pleiad: a partitioned database that Cosmos DB clients work against, run by yourself.

    Start one with `pleiad serve` and point any Cosmos DB SDK at the endpoint it prints.
    """


def main() -> None:
    """The entry point of the installed command."""
    try:
        cli()
    except OSError as error:
        # Verbs tell of the files they write by name; what is left is the output.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) or error.filename:
            raise
        click.echo(f"Error: the output cannot be written: {error.strerror}", err=True)
        # Nothing that is still held back is to be tried once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
