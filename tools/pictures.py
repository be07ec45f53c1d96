"""The pictures of `docs/`: commands run in a terminal of 80 columns on a server with the sample, drawn as SVG.

`python -m tools.pictures` draws them anew into docs/pictures. Numbers of a run, such as times, differ from one to the
next; commit them when what they show has changed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from itertools import islice
from pathlib import Path
from subprocess import DEVNULL

from pleiad.account.keys import EMULATOR_KEY
from pleiad.client.connection import Connection

PICTURES = {
    "look-around": ["pleiad ls", "pleiad ls sample/flights --limit 4"],
    "query": [
        "pleiad query sample/food \"SELECT c.id, c.description FROM c WHERE c.foodGroup = 'Beef Products'\"",
        'pleiad query sample/food "SELECT VALUE COUNT(1) FROM c" --explain',
    ],
    "partitions": ["pleiad partitions sample/devices"],
    "top": ["pleiad top --looks 1 --interval 2"],
}
"""What each picture shows."""
COLUMNS = 80
_LETTER_WIDTH, _LINE_HEIGHT, _MARGIN = 8.0, 18, 14


def main(folder: Path) -> None:
    """Draws all pictures into a folder."""
    with _sample_server() as endpoint:
        environment = {**os.environ, "PLEIAD_ENDPOINT": endpoint, "COLUMNS": str(COLUMNS)}
        ended = threading.Event()
        worker = threading.Thread(target=_keep_busy, args=(endpoint, ended))
        worker.start()
        try:
            for name, commands in PICTURES.items():
                lines = [line for command in commands for line in _captured(command, environment)]
                (folder / f"{name}.svg").write_text(drawn(lines), encoding="utf-8")
        finally:
            ended.set()
            worker.join()


@contextmanager
def _sample_server() -> Iterator[str]:
    """A server with the sample; its endpoint."""
    command = [sys.executable, "-m", "pleiad", "serve", "--ephemeral", "--port", "0", "--sample"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        (endpoint,) = islice(
            (line.split()[1] for line in process.stdout if line.split()[:1] == ["endpoint"]), 1
        )
        subprocess.run(
            [sys.executable, "-m", "pleiad", "wait", "--endpoint", endpoint], check=True, stdout=DEVNULL
        )
        yield endpoint
    finally:
        process.terminate()
        process.communicate()


def _captured(command: str, environment: dict[str, str]) -> list[str]:
    """The lines of a command: it with its prompt, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return [f"$ {command}", *done.stdout.rstrip().splitlines(), ""]


def _keep_busy(endpoint: str, ended: threading.Event) -> None:
    """What `pleiad top` has to show: queries and reads of an application."""
    link = ("dbs", "sample", "colls", "food")
    texts = ["SELECT * FROM c WHERE c.foodGroup = 'Beef Products'", "SELECT VALUE COUNT(1) FROM c"]
    with Connection(endpoint, EMULATOR_KEY) as connection:
        while not ended.wait(0.02):
            for text in texts:
                connection.query(link, {"query": text}, {})


def drawn(lines: list[str]) -> str:
    """A picture of a terminal with these lines."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    columns = max(COLUMNS, *map(len, lines))
    width, height = columns * _LETTER_WIDTH + 2 * _MARGIN, len(lines) * _LINE_HEIGHT + 2 * _MARGIN
    rows = "\n".join(
        f'<text x="{_MARGIN}" y="{_MARGIN + _LINE_HEIGHT * (at + 0.75):g}"{_style(line)}>{escape(line)}</text>'
        for at, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">\n'
        f'<rect width="{width:g}" height="{height:g}" rx="6" fill="#16202c"/>\n'
        '<g fill="#d8dee6" xml:space="preserve" font-size="13.3" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">\n'
        f"{rows}\n</g>\n</svg>\n"
    )


def _style(line: str) -> str:
    return ' fill="#7fd1b9"' if line.startswith("$ ") else ""


if __name__ == "__main__":
    main(Path(__file__).resolve().parent.parent / "docs" / "pictures")
