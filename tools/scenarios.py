"""``python -m tools.scenarios``: run every scenario and write docs/scenarios.md and docs/knowledge-check.md."""

from __future__ import annotations

import sys
from pathlib import Path

from pleiad.cli.scenario import SEED_DEFAULT
from pleiad.scenario.knowledge import page_sections, questions
from pleiad.scenario.run import run
from pleiad.scenario.shelf import SCENARIOS
from pleiad.scenario.view import page_section

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "scenarios.md"
KNOWLEDGE_PAGE = DOCS / "knowledge-check.md"
KNOWLEDGE_HEAD = """# Knowledge check

After this page you can tell logical from physical partitions, choose a partition key, and make a synthetic one.
[concepts.md](concepts.md) explains the words, [scenarios.md](scenarios.md) shows keys at work. What stands below the
answers was shown by a live server: `pleiad scenario knowledge-check` asks it again. This page is made by
`python -m tools.scenarios`.
"""
HEAD = """# Scenarios

What a partition key does to a workload, seen on a real server. `pleiad scenario` lists the scenarios, and
`pleiad scenario NAME` runs one: it makes items and requests, starts a server of its own, tries a good and a bad key on
them, and shows what each physical partition stores, serves and refuses. This page is made from such runs by
`python -m tools.scenarios`, and a test runs them again.

The limits are scaled down so that little data shows what much data does: a physical partition serves 100 RU/s instead
of 10,000, and a logical partition holds 200 KB instead of 20 GB. Throughput is measured by a clock that the run turns
second by second, so the same seed gives the same figures on every machine; everything else is as in production. A
request that is refused is not sent again.

The bars compare the physical partitions with the largest of them: even bars are a good key, uneven ones a bad key.
"""


def main() -> None:
    sections = []
    for scenario in SCENARIOS.values():
        print(scenario.name, file=sys.stderr)
        sections.append(page_section(run(scenario, SEED_DEFAULT)))
    PAGE.write_text("\n".join([HEAD, *sections]), encoding="utf-8")
    KNOWLEDGE_PAGE.write_text(f"{KNOWLEDGE_HEAD}\n{page_sections(questions())}", encoding="utf-8")


if __name__ == "__main__":
    main()
