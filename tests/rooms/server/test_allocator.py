"""What was freed goes back to the machine."""

import subprocess
import sys

import pytest

from tests.waiting import SECONDS_MAX

_FREED = """
import pathlib, sys
from pleiad.server.allocator import give_back_free_memory

def resident_mb():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

if sys.argv[1] == "told" and not give_back_free_memory():
    raise SystemExit("not glibc")
# The first large block that is freed raises the size from which glibc maps blocks; the next are then cut from the heap.
large = bytearray(30_000_000)
del large
before = resident_mb()
bodies, pins = [], []
for _ in range(40):
    bodies.append(bytearray(b"x" * 4_000_000))
    pins.append(bytearray(2_000))  # a small object behind each body keeps the heap from shrinking
del bodies
print(resident_mb() - before)
"""


def _kept_mb(how: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _FREED, how], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    if "not glibc" in done.stderr:
        pytest.skip("the allocator here is not glibc's")
    return float(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and glibc are needed")
def test_large_blocks_are_given_back_when_they_are_freed() -> None:
    untold, told = _kept_mb("untold"), _kept_mb("told")

    assert told < 10
    assert told < untold
