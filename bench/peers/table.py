"""The table of ratios, in Markdown as it stands in ``docs/performance.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One operation beside one peer."""

    peer: str
    operation: str
    connections: int
    said: str
    """Why there are no figures."""
    own_rate: float = 0.0
    rate: float = 0.0
    ratio: float = 0.0
    cpu_ratio: float = 0.0


def table(rows: Sequence[Row], notes: Sequence[str], machine: str, when: str) -> str:
    lines = [f"{when}; {machine}.", *(f"- {note}" for note in notes), ""]
    lines += [
        "| operation | beside | connections | Pleiad /s | peer /s | ratio | ratio by processor time |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        start = f"| {row.operation} | {row.peer} | {row.connections} |"
        if row.said:
            lines.append(f"{start} {row.said} | | | |")
        else:
            figures = f" {row.own_rate:,.0f} | {row.rate:,.0f} | **{row.ratio:.2f}** | {row.cpu_ratio:.2f} |"
            lines.append(start + figures)
    return "\n".join(lines) + "\n"
