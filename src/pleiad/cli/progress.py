"""Waiting for a change of the partition map, with a line that tells how far it is."""

from __future__ import annotations

import sys
import time

import click

from pleiad.client.admin import Admin

_POLL_SECONDS = 0.2


def wait_until_settled(admin: Admin, container: tuple[str, str]) -> None:
    """Returns when every physical partition has a segment of its own; Ctrl-C stops the waiting only."""
    shows = sys.stderr.isatty()
    try:
        while True:
            answer = admin.partitions(*container, largest=0, hottest=0)
            if answer["settled"]:
                break
            if shows:
                copying = [each["id"] for each in answer["partitions"] if each["sharesSegment"]]
                left = f"{len(copying)} to go" if copying else "nearly done"
                click.echo(f"\rcopying rows into segments of their own, {left} ...\x1b[K", err=True, nl=False)
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        click.echo("\nthe copying goes on in the server", err=True)
        return
    if shows:
        click.echo("\r\x1b[K", err=True, nl=False)
    click.echo("done: every physical partition has a segment of its own")
