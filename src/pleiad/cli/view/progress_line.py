"""How far a verb is: one line that is drawn anew on a terminal, else a line now and then."""

from __future__ import annotations

import shutil
import sys
import time

import click

_DRAWINGS_SECONDS = 0.1
_LINES_SECONDS = 5.0
_BAR_CHARACTERS_MAX = 24
_BAR_CHARACTERS_MIN = 4


class ProgressLine:
    """Shows texts on standard error, unless the last one was shown a moment ago."""

    def __init__(self, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = time.monotonic()
        self._is_drawn = False

    @property
    def is_due(self) -> bool:
        """Whether it is time for another text."""
        pause = _DRAWINGS_SECONDS if self._is_terminal else _LINES_SECONDS
        return not self._is_quiet and time.monotonic() - self._shown_at >= pause

    def show(self, text: str, share: float | None = None) -> None:
        """Shows a text; on a terminal with a bar before it where it is known how much is done."""
        self._shown_at = time.monotonic()
        if self._is_terminal:
            line = in_columns(text, share, shutil.get_terminal_size().columns)
            click.echo(f"\r{line}\x1b[K", err=True, nl=False)
            self._is_drawn = True
        else:
            click.echo(text, err=True)

    def step(self, what: str, done: int, total: int, unit: str) -> None:
        """Shows how far something is, if it is time for it."""
        if self.is_due:
            self.show(f"{what} {done:,} of {total:,} {unit}", done / total if total else None)

    def clear(self) -> None:
        """Takes the line away, so that something else can be said."""
        if self._is_drawn:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._is_drawn = False


def in_columns(text: str, share: float | None, columns: int) -> str:
    """A text in one line of a terminal, with a bar: where that is narrow the bar gives way, and then the text."""
    # The last column stays free: a terminal that has it filled goes on to the next line.
    width = min(_BAR_CHARACTERS_MAX, columns - 1 - len(f"[] {text}"))
    if share is not None and width >= _BAR_CHARACTERS_MIN:
        text = f"{bar(share, width)} {text}"
    return text[: columns - 1]


def bar(share: float, width: int) -> str:
    """A bar as full as something is done."""
    full = int(width * min(max(share, 0.0), 1.0))
    return f"[{'#' * full}{'.' * (width - full)}]"


def duration(seconds: float) -> str:
    """A time in the two units that matter."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"
