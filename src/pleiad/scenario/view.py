"""A run as text of at most 80 columns, as JSON, and as a section of the page of scenarios."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

from pleiad.limits import size_text
from pleiad.scenario.model import LOGICAL_BYTES, PARTITION_RU, AttemptResult, PartitionResult, ScenarioResult

COLUMNS = 80
_BAR_COLUMNS = 16
_NAME_COLUMNS = 13


def text(result: ScenarioResult) -> str:
    """What the terminal shows."""
    scenario = result.scenario
    blocks = [f"{scenario.title}  (seed {result.seed})", _wrapped(scenario.story)]
    blocks += [attempt_text(attempt) for attempt in result.attempts]
    claims = [
        textwrap.fill(
            sentence, COLUMNS, initial_indent="  yes  " if holds else "  NO   ", subsequent_indent=" " * 7
        )
        for sentence, holds in result.claims()
    ]
    blocks += ["\n".join(["What happens", *claims]), _wrapped(scenario.lesson)]
    return "\n\n".join(blocks)


def attempt_text(attempt: AttemptResult) -> str:
    """One partition key: its physical partitions with bars, and the sums below them."""
    largest_bytes = max(each.size_bytes for each in attempt.partitions) or 1
    largest_ru = max(each.charge_ru for each in attempt.partitions) or 1.0
    no_bar = " " * _BAR_COLUMNS
    lines = [
        f"key {attempt.title}",
        f"{'partition':<{_NAME_COLUMNS}} {'stored':>8} {no_bar} {'RU':>8} {no_bar} {'429s':>6}",
    ]
    for each in attempt.partitions:
        size_bar, ru_bar = _bar(each.size_bytes / largest_bytes), _bar(each.charge_ru / largest_ru)
        lines.append(
            f"{_name(attempt, each):<{_NAME_COLUMNS}} {size_text(each.size_bytes):>8} {size_bar} "
            f"{each.charge_ru:>8,.0f} {ru_bar} {each.throttled:>6,}"
        )
    return "\n".join([*lines, *_sums(attempt)])


def _sums(attempt: AttemptResult) -> list[str]:
    parts = [
        f"{attempt.requests:,} requests",
        f"{attempt.throttled_percent:.0f} % throttled",
        f"{attempt.charge_ru:,.0f} RU served",
    ]
    if attempt.queries:
        parts.append(f"a query visits {attempt.fan_out:.1f}")
    parts.append(f"largest key {attempt.largest_percent:.1f} % of its limit")
    lines = [_wrapped(", ".join(parts))]
    if attempt.throttled_of:
        refused = ", ".join(f"{count:,} of {party}" for party, count in attempt.throttled_of.items())
        lines.append(_wrapped(f"refused: {refused}"))
    return lines


def _name(attempt: AttemptResult, partition: PartitionResult) -> str:
    is_alone = len({each.container for each in attempt.partitions}) == 1
    return partition.id if is_alone else f"{partition.container}/{partition.id}"


def _bar(share: float) -> str:
    return ("█" * round(share * _BAR_COLUMNS)).ljust(_BAR_COLUMNS, "░")


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, COLUMNS)


def as_json(result: ScenarioResult) -> dict[str, Any]:
    """All figures of a run."""
    return {
        "scenario": result.scenario.name,
        "seed": result.seed,
        "partitionRu": PARTITION_RU,
        "logicalPartitionBytes": LOGICAL_BYTES,
        "attempts": [
            {
                **dataclasses.asdict(each),
                "throttled_of": dict(each.throttled_of),
                "throttled_percent": round(each.throttled_percent, 2),
                "fan_out": round(each.fan_out, 3),
            }
            for each in result.attempts
        ],
        "claims": [{"sentence": sentence, "holds": holds} for sentence, holds in result.claims()],
    }


def page_section(result: ScenarioResult) -> str:
    """The run as a section in Markdown."""
    scenario = result.scenario
    blocks = [f"## {scenario.title}", scenario.story]
    blocks.append("```text\n" + "\n\n".join(map(attempt_text, result.attempts)) + "\n```")
    blocks.append("\n".join(f"- {sentence}" for sentence, holds in result.claims() if holds))
    blocks += [f"**{scenario.lesson}**", f"```sh\npleiad scenario {scenario.name}\n```"]
    return "\n\n".join(blocks) + "\n"
