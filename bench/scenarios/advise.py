"""What advice costs: choosing among twelve keys, beside reading and decoding the same file once.

Both run as processes of their own and are compared by their CPU time, so the ratio holds on a busy machine. The modules
are compiled before, as they are where Pleiad is installed.
Bars, higher is better:
- ``advise_time``: the time of reading and decoding over the time of advising; a third at least.
- ``advise_memory``: 1 GB over what advising takes at its peak; one at least.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import orjson

from bench.load import LoadProcess
from bench.report import Bar, FamilyReport
from bench.settings import Settings

ITEMS = 1_000_000
ITEMS_QUICK = 50_000
_FEW = 1_000
KEYS = (
    "/id /tenantId /userId /deviceId /city /email /state /tenantId,/userId /tenantId,/id /city,/deviceId,/id "
    "concat(/tenantId,/city) suffix(/tenantId,/id,100)"
)
_MEMORY_KB = 1024 * 1024
_READ = (
    "import sys; from pathlib import Path; from pleiad.job.item_file.reader import ReadOptions, open_items\n"
    "with open_items(Path(sys.argv[1]), ReadOptions()) as file:\n"
    "    for entry in file: pass\n"
)


class _Used(NamedTuple):
    cpu_seconds: float
    memory_kb: int


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """A file of items, read and advised on in turns."""
    count = ITEMS_QUICK if settings.rounds < 2 else ITEMS
    times, memory = [], []
    with tempfile.TemporaryDirectory(prefix="pleiad-bench-") as folder:
        file = Path(folder) / "items.jsonl"
        _write(file, count)
        compiled = Path(folder) / "compiled"
        few = Path(folder) / "few.jsonl"
        _write(few, _FEW)
        _advised(few, compiled)
        for _ in range(max(1, min(3, settings.rounds))):
            read = _used([sys.executable, "-c", _READ, str(file)], compiled)
            advised = _advised(file, compiled)
            times.append(read.cpu_seconds / advised.cpu_seconds)
            memory.append(_MEMORY_KB / advised.memory_kb)
    return FamilyReport(
        lines=(),
        bars=(
            Bar(
                name="advise_time",
                ratio=statistics.median(times),
                bar=1 / 3,
                meaning=f"CPU time of reading {count:,} items of 1 KB over that of advising on 12 keys",
            ),
            Bar(
                name="advise_memory",
                ratio=min(memory),
                bar=1.0,
                meaning=f"1 GB over the memory of advising on {count:,} items of 1 KB",
            ),
        ),
    )


def _write(file: Path, count: int) -> None:
    chosen = random.Random(1)
    with file.open("wb") as lines:
        for number in range(count):
            item = {
                "id": f"order-{number:08d}",
                "tenantId": f"tenant-{int(chosen.paretovariate(1.1)) % 2000}",
                "userId": f"user-{chosen.randrange(count // 10 + 1)}",
                "deviceId": f"device-{chosen.randrange(5000)}",
                "city": f"city-{chosen.randrange(300)}",
                "email": f"u{chosen.randrange(count)}@example.org",
                "state": chosen.choice(("open", "paid", "sent")),
                "at": f"2025-{1 + number * 12 // count:02d}-{1 + number * 336 // count % 28:02d}T{number % 24:02d}:00",
                "lines": [
                    {"sku": f"s{chosen.randrange(1000)}", "count": 1, "text": "x" * 60} for _ in range(6)
                ],
                "note": "y" * 180,
            }
            lines.write(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))


def _advised(file: Path, compiled: Path) -> _Used:
    words = ["advise", str(file), "--candidates", KEYS, "--json", "--quiet"]
    return _used([sys.executable, "-m", "pleiad", *words], compiled)


def _used(command: list[str], compiled: Path) -> _Used:
    """What a process takes, with compiled modules kept in a folder; it must end well."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ended with {process.returncode}")
    return _Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
