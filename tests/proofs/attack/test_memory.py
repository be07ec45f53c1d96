"""Memory, in short: see `attack/classes/memory.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attack.classes import memory
from attack.settings import Settings
from tests.waiting import SECONDS_MAX


def test_memory_has_an_end(settings: Settings, attacked: tuple[str, Path]) -> None:
    outcome = memory.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests > 50


MANY = {
    "whole doubles of an item": "numbers._TOKEN.sub(numbers._shortest, b'1.0,' * 150_000)",
    "other doubles of an item": "numbers._TOKEN.sub(numbers._shortest, b'0.50,' * 150_000)",
    "results of a query": "[measure.text_of(number) for number in range(150_000)]",
    "longer results of a query": "[measure.text_of({'k': 'k' * 1_500, 'n': n}) for n in range(30_000)]",
}
# What `resource` tells of a process may be of the one it was forked from.
_GROWN = """
from pathlib import Path
from pleiad.item import numbers
from pleiad.query import measure
def peak_kb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
before = peak_kb()
{work}
print(peak_kb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it is told in other units, or not at all")
@pytest.mark.parametrize("name", MANY)
def test_very_many_short_texts_take_no_kilobytes_each(name: str) -> None:
    program = [sys.executable, "-c", _GROWN.format(work=MANY[name])]
    grown_kb = int(subprocess.run(program, capture_output=True, check=True, timeout=SECONDS_MAX).stdout)
    assert grown_kb < 150_000
