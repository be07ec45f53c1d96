"""What a run showed: rounds put together, bars kept or missed, as a table, as JSON and in the documentation.

``build/bench.json`` holds the bars only, for a program to compare: ``{name: {"ratio": …, "bar": …}}``, higher
is better. ``build/bench-run.json`` holds the whole last run, for the tables of the documentation.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.load import Measure
from bench.process import BUILD, ROOT

BARS_FILE = BUILD / "bench.json"
RUN_FILE = BUILD / "bench-run.json"
DOCS_FILE = ROOT / "docs" / "performance.md"
MARK_BEGIN = "<!-- bench: begin -->"
MARK_END = "<!-- bench: end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One scenario: medians over its rounds, the worst latency of all, and how busy each side's core was."""

    name: str
    rounds: int
    rate: float
    rate_min: float
    rate_max: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    rate_per_cpu: float  # per second of server CPU time: steadier than the rate when other work interferes
    server_cpu_percent: float
    client_cpu_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One number that must not fall below its bar; higher is better."""

    name: str
    ratio: float
    bar: float
    meaning: str

    @property
    def kept(self) -> bool:
        """Whether the bar is reached."""
        return self.ratio >= self.bar


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyReport:
    """What one family of scenarios showed."""

    lines: tuple[Line, ...]
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A whole run: where, when, how long the rounds were, and what every family showed."""

    machine: str
    date: str
    load_average: float  # of the minute before the run: other work on the machine
    rounds: int
    seconds: float
    lines: tuple[Line, ...]
    bars: tuple[Bar, ...]


def line(name: str, measures: Sequence[Measure]) -> Line:
    """The rounds of one scenario as one line."""
    rates = [measure.rate for measure in measures]
    return Line(
        name=name,
        rounds=len(measures),
        rate=statistics.median(rates),
        rate_min=min(rates),
        rate_max=max(rates),
        p50_ms=statistics.median(measure.p50_ms for measure in measures),
        p99_ms=statistics.median(measure.p99_ms for measure in measures),
        max_ms=max(measure.max_ms for measure in measures),
        rate_per_cpu=statistics.median(m.requests / max(m.server_cpu_seconds, 0.01) for m in measures),
        server_cpu_percent=statistics.median(100 * m.server_cpu_seconds / m.seconds for m in measures),
        client_cpu_percent=statistics.median(100 * m.client_cpu_seconds / m.seconds for m in measures),
    )


def paired_ratio(above: Sequence[Measure], below: Sequence[Measure]) -> float:
    """The median of the rate ratios of neighbouring rounds, so that slow drift of the machine cancels out."""
    return statistics.median(a.rate / b.rate for a, b in zip(above, below, strict=True))


LINE_TITLES = (
    "scenario",
    "requests/s",
    "range",
    "p50 ms",
    "p99 ms",
    "max ms",
    "per CPU s",
    "server CPU",
    "client CPU",
)
BAR_TITLES = ("bar", "ratio", "bar at", "", "meaning")


def _line_cells(row: Line) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.rate:,.0f}",
        f"{row.rate_min:,.0f}-{row.rate_max:,.0f}",
        f"{row.p50_ms:.2f}",
        f"{row.p99_ms:.2f}",
        f"{row.max_ms:.1f}",
        f"{row.rate_per_cpu:,.0f}",
        f"{row.server_cpu_percent:.0f} %",
        f"{row.client_cpu_percent:.0f} %",
    )


def _bar_cells(bar: Bar) -> tuple[str, ...]:
    return (bar.name, f"{bar.ratio:.2f}", f"{bar.bar:g}", "ok" if bar.kept else "under", bar.meaning)


def text_table(run: Run) -> str:
    """The run as aligned columns for a terminal."""
    parts = [
        f"{run.machine}\n{run.rounds} rounds of {run.seconds:g} s; "
        f"load average before the run {run.load_average:.2f}",
        _columns([LINE_TITLES, *(_line_cells(row) for row in run.lines)]),
        _columns([BAR_TITLES, *(_bar_cells(bar) for bar in run.bars)]),
    ]
    return "\n\n".join(parts)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Names to the left, numbers to the right, the last text column of bars to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {0, 4} if len(rows[0]) == len(BAR_TITLES) else {0}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def markdown_tables(run: Run) -> str:
    """The run as the tables of the documentation."""
    return "\n\n".join(
        (
            f"Measured {run.date} on: {run.machine}. {run.rounds} rounds of {run.seconds:g} s per scenario; "
            f"load average of the machine before the run {run.load_average:.2f}.",
            _markdown([LINE_TITLES, *(_line_cells(row) for row in run.lines)]),
            _markdown([BAR_TITLES, *(_bar_cells(bar) for bar in run.bars)]),
        )
    )


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def save(run: Run) -> None:
    """Write both JSON files."""
    BUILD.mkdir(exist_ok=True)
    bars = {bar.name: {"ratio": round(bar.ratio, 4), "bar": bar.bar} for bar in run.bars}
    BARS_FILE.write_text(json.dumps(bars, indent=2) + "\n", encoding="utf-8")
    RUN_FILE.write_text(json.dumps(asdict(run), indent=2) + "\n", encoding="utf-8")


def load_last() -> Run:
    """The last run that was saved. Raises FileNotFoundError when there is none."""
    values = json.loads(RUN_FILE.read_text(encoding="utf-8"))
    values["lines"] = tuple(Line(**row) for row in values["lines"])
    values["bars"] = tuple(Bar(**row) for row in values["bars"])
    return Run(**values)


def write_docs(run: Run, path: Path = DOCS_FILE) -> None:
    """Replace what stands between the two marker comments by the tables of the run."""
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(MARK_BEGIN)
    _, end, after = rest.partition(MARK_END)
    if not begin or not end:
        raise ValueError(f"{path.name} has no place between '{MARK_BEGIN}' and '{MARK_END}'")
    path.write_text(f"{before}{begin}\n{markdown_tables(run)}\n{end}{after}", encoding="utf-8")
