"""What the process knows of itself, as metrics: its build, processor time, memory and descriptors.

The names are those that client libraries of Prometheus use, so that dashboards for any process show this one.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import apsw

from pleiad.heads.admin.metrics_page import Page

if sys.platform != "win32":
    import resource

_STARTED_AT = time.time()
_PROC = Path("/proc/self")


def add_process(made: Page, store: str) -> None:
    """Build, and what the system tells of the process; what it does not tell is left out."""
    build = {
        "version": version("pleiad"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "store": store,
    }
    made.add("pleiad_build_info", "gauge", "What is running; its value says nothing.", [(build, 1)])
    spent = os.times()
    made.add(
        "process_cpu_seconds_total",
        "counter",
        "Processor time of the process, its script processes left out.",
        [({}, spent.user + spent.system)],
    )
    made.add(
        "process_start_time_seconds", "gauge", "When the process was started.", [({}, round(_STARTED_AT, 2))]
    )
    memory = memory_bytes()
    if memory is not None:
        made.add("process_virtual_memory_bytes", "gauge", "Address space of the process.", [({}, memory[0])])
        made.add("process_resident_memory_bytes", "gauge", "Memory of the process.", [({}, memory[1])])
    _add_descriptors(made)


def _add_descriptors(made: Page) -> None:
    if sys.platform == "win32":
        return
    try:
        used = len(os.listdir(_PROC / "fd"))
    except OSError:
        return
    made.add("process_open_fds", "gauge", "Descriptors in use.", [({}, used)])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if most != resource.RLIM_INFINITY:
        made.add("process_max_fds", "gauge", "Descriptors that the process may use.", [({}, most)])


def memory_bytes() -> tuple[int, int] | None:
    """How much address space and memory the process has, where the system tells."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        pages = (_PROC / "statm").read_text(encoding="ascii").split()
        size = os.sysconf("SC_PAGE_SIZE")
        return int(pages[0]) * size, int(pages[1]) * size
    except (OSError, ValueError, IndexError):
        return None
