"""All containers of an account with their physical partitions, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pleiad.cli.view.partition import Look
from pleiad.cli.view.table import shown, table
from pleiad.limits import size_text


def containers_view(answers: Sequence[dict[str, Any]], look: Look) -> str:
    """The answers of the admin API about each container as a table that fits."""
    if not answers:
        return "there are no containers yet"
    rows = [_row(answer) for answer in answers]
    for name in ("busy", "429s", "over"):
        if all(row[name] is None for row in rows):
            for row in rows:
                del row[name]
    return table(rows, look.columns) or ""


def _row(answer: dict[str, Any]) -> dict[str, Any]:
    partitions = answer["partitions"]
    loads = [each["ru"] for each in partitions if "ru" in each]
    throughput = answer["throughput"]
    return {
        "container": f"{answer['database']}/{answer['container']}",
        "key": ", ".join(map(shown, answer["partitionKey"])),
        "partitions": len(partitions),
        "items": sum(each["items"] for each in partitions),
        "size": size_text(sum(each["bytes"] for each in partitions)),
        "RU/s": throughput.get("ru") if throughput else None,
        "busy": f"{max(load['normalizedPercent'] for load in loads):.0f}%" if loads else None,
        "429s": sum(load["throttled"] for load in loads) if loads else None,
        "over": sum(load["overBudget"] for load in loads) or None,
    }
