"""Waiting for a change of the partition map, with a line that tells how far it is."""

from __future__ import annotations

import time

import click

from pleiad.cli.view.progress_line import ProgressLine
from pleiad.client.admin import Admin

_POLL_SECONDS = 0.2


def wait_until_settled(admin: Admin, container: tuple[str, str]) -> None:
    """Returns when every physical partition has a segment of its own; Ctrl-C stops the waiting only."""
    line = ProgressLine()
    try:
        while True:
            answer = admin.partitions(*container, largest=0, hottest=0)
            if answer["settled"]:
                break
            if line.is_due:
                copying = [each["id"] for each in answer["partitions"] if each["sharesSegment"]]
                left = f"{len(copying)} to go" if copying else "nearly done"
                line.show(f"copying rows into segments of their own, {left} ...")
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        line.clear()
        click.echo("the copying goes on in the server", err=True)
        return
    line.clear()
    click.echo("done: every physical partition has a segment of its own")
