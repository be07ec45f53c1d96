"""What reading a new query text costs: tokens, syntax tree and bound plan of a text of 1 KB that no cache has.

Measured in this process, beside Python reading a text of its own, so that the ratio does not depend on the machine.
Bar:
- ``parse_bind_1kb_vs_python``: texts parsed and bound a second over Python expressions parsed a second.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable

from bench.load import LoadProcess
from bench.report import Bar, FamilyReport
from bench.settings import Settings
from pleiad.limits import Limits
from pleiad.query.bind.statements import bind
from pleiad.query.syntax.parser import parse

_CONDITIONS = " AND ".join(
    f"(c.field{number} = {number} OR STARTSWITH(c.name{number}, 'prefix{number}') AND c.value{number} >= {number}.5)"
    for number in range(11)
)
TEXT = (
    "SELECT c.id, c.name AS title, UPPER(c.kind) AS kind, [c.a, c.b] AS pair FROM c JOIN t IN c.tags "
    f"WHERE {_CONDITIONS} ORDER BY c.id"
)
_PYTHON = (
    "x = ["
    + ",".join(
        f"f{number}(a.b{number}, 'str{number}', {number} + b{number} * 3) and (c{number} or d{number})"
        for number in range(20)
    )
    + "]"
)
REPEATS = 40
RATIO_MIN = 0.16
"""0.8 of what it was before the language was read as the service reads it (0.20)."""


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """The best of several rounds of each, taken in turns."""
    limits = Limits()

    def read() -> None:
        bind(parse(TEXT, limits), limits, TEXT)

    def yardstick() -> None:
        ast.parse(_PYTHON)

    own, other = float("inf"), float("inf")
    for _ in range(max(5, settings.rounds)):
        own = min(own, seconds_of(read))
        other = min(other, seconds_of(yardstick))
    return FamilyReport(
        lines=(),
        bars=(
            Bar(
                name="parse_bind_1kb_vs_python",
                ratio=other / own,
                bar=RATIO_MIN,
                meaning=f"texts of 1 KB parsed and bound/s ({1 / own:.0f}) over Python's own parser on such a text",
            ),
        ),
    )


def seconds_of(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    started = time.process_time()
    for _ in range(REPEATS):
        call()
    return (time.process_time() - started) / REPEATS
