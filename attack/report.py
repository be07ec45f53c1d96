"""What a run showed: figures by class and store, broken promises with the way to see them again, as table and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from attack.settings import Settings
from attack.watch import Watch


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What one class of attack showed on one store."""

    name: str
    store: str
    requests: int = 0
    reads: int = 0
    stall_ms: float = 0.0
    """The longest point read beside the attack, without the time the machine gave to others."""
    stall_wall_ms: float = 0.0
    p99_ms: float = 0.0
    peak_mb: float = 0.0
    errors_500: int = 0
    tracebacks: int = 0
    trespasses: int = 0
    """Accesses that should have failed and did not."""
    lost: int = 0
    """Data that was acknowledged and is gone, or came back as something else."""
    broken: list[str] = field(default_factory=list)
    """Promises that did not hold, each with what shows it."""

    def breaks(self, promise: str) -> None:
        """Notes a promise that did not hold."""
        self.broken.append(promise)

    def trespass(self, what: str) -> None:
        """Notes an access that should have failed."""
        self.trespasses += 1
        self.breaks(f"access: {what}")

    def lose(self, what: str) -> None:
        """Notes data that is gone or wrong."""
        self.lost += 1
        self.breaks(f"data: {what}")

    def answered(self, status: int, what: str) -> None:
        """Counts an answer; a 500 is never a good one."""
        self.requests += 1
        if status == 500:
            self.errors_500 += 1
            self.breaks(f"500: {what}")

    def take(self, watch: Watch, settings: Settings, timed: bool = True) -> None:
        """Takes over what the bystander felt, and holds it against the promises."""
        reads = watch.reads
        self.reads += reads.count
        self.stall_ms = max(self.stall_ms, reads.longest_ms())
        self.stall_wall_ms = max(self.stall_wall_ms, reads.longest_ms(wall=True))
        self.p99_ms = max(self.p99_ms, reads.p99_ms())
        self.peak_mb = max(self.peak_mb, watch.peak_mb)
        if reads.failed:
            self.breaks(f"{reads.failed} of {reads.count} point reads beside the attack failed")
        if timed and reads.longest_ms() > settings.stall_ms_max:
            self.breaks(f"a point read was held up for {reads.longest_ms():,.0f} ms")
        if timed and reads.p99_ms() > settings.p99_ms_max:
            self.breaks(f"p99 of the point reads was {reads.p99_ms():,.1f} ms")
        if watch.peak_mb > settings.resident_mb_max:
            self.breaks(f"the server took {watch.peak_mb:,.0f} MB")

    def took_tracebacks(self, count: int, said: str) -> None:
        """Notes the tracebacks of a log."""
        self.tracebacks += count
        if count:
            place = said.find("Traceback (most recent call last)")
            last = next(
                (line for line in said[place:].splitlines()[1:] if line and not line.startswith(" ")), ""
            )
            self.breaks(f"{count} tracebacks in the log, such as: {last[:200]}")


SHOWN_MAX = 40
"""Broken promises of one class that the table shows; the JSON has all."""

TITLES = (
    "class", "store", "requests", "reads", "stall ms", "(wall)", "p99 ms", "peak MB", "500s", "tracebacks",
    "trespasses", "lost", "broken",
)  # fmt: skip


def _cells(outcome: Outcome) -> tuple[str, ...]:
    def shown(value: float, digits: int = 0) -> str:
        return f"{value:,.{digits}f}" if value else "-"

    return (
        outcome.name,
        outcome.store,
        f"{outcome.requests:,}",
        shown(outcome.reads),
        shown(outcome.stall_ms),
        shown(outcome.stall_wall_ms),
        shown(outcome.p99_ms, 1),
        shown(outcome.peak_mb),
        f"{outcome.errors_500}",
        f"{outcome.tracebacks}",
        f"{outcome.trespasses}",
        f"{outcome.lost}",
        f"{len(outcome.broken)}",
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """The run as aligned columns, and below them every promise that did not hold."""
    rows = [TITLES, *map(_cells, outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    for outcome in outcomes:
        lines += [f"\n{outcome.name} on {outcome.store}:"] if outcome.broken else []
        lines += [f"  - {text}" for text in outcome.broken[:SHOWN_MAX]]
        more = len(outcome.broken) - SHOWN_MAX
        lines += [f"  - and {more:,} more"] if more > 0 else []
    return "\n".join(lines)


def save(outcomes: Sequence[Outcome], path: Path, settings: Settings) -> None:
    """The run as JSON, for a program to compare."""
    path.parent.mkdir(parents=True, exist_ok=True)
    run = {"settings": asdict(settings), "outcomes": [asdict(outcome) for outcome in outcomes]}
    path.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
