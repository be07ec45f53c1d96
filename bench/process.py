"""What the operating system knows about a process: its core, its CPU time, its memory; and this machine.

Figures come from ``/proc`` and are therefore Linux only; elsewhere they read as zero, and nothing is pinned.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOOPBACK = "127.0.0.1"
MB = 1024 * 1024


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def server_cores() -> set[int]:
    """The core of the server: the first one; empty when there are fewer than two and nothing is pinned."""
    cores = _cores()
    return {cores[0]} if len(cores) >= 2 else set()


def client_cores() -> set[int]:
    """The core of the load generator: the second one; empty when there are fewer than two."""
    cores = _cores()
    return {cores[1]} if len(cores) >= 2 else set()


@contextlib.contextmanager
def pinned(cores: set[int]) -> Iterator[None]:
    """Children started inside inherit these cores, with all their threads; the caller gets its own back."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start(arguments: Sequence[str], log: IO[bytes], cores: set[int] | None = None) -> subprocess.Popen[bytes]:
    """A server child on the server's core or the given ones, with everything it prints going to the log."""
    with pinned(server_cores() if cores is None else cores):
        return subprocess.Popen(
            list(arguments), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )


def stop(child: subprocess.Popen[bytes]) -> None:
    """End a child: politely, and after ten seconds not."""
    child.terminate()
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def free_port() -> int:
    """A port of the loopback address that nothing listens on at this moment."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port


def cpu_seconds(pid: int, fields_counted: Sequence[int] = (11, 12)) -> float:
    """User and system time a process has used so far, over all its threads (10 ms resolution)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    # The command name stands in parentheses and may hold spaces; the fields are counted after it.
    fields = text.rpartition(")")[2].split()
    return sum(int(fields[place]) for place in fields_counted) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_all(pid: int) -> float:
    """What `cpu_seconds` says of a process and all its descendants, those that have ended too."""
    return cpu_seconds(pid, (11, 12, 13, 14)) + sum(cpu_seconds_of_all(child) for child in _children(pid))


def resident_mb(pid: int) -> float:
    """Resident memory of a process and all its descendants.

    A child that still has the command line of its parent is about to become another program. Until then the two have
    one memory, which is counted once.
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    total = pages * os.sysconf("SC_PAGE_SIZE") / MB
    own = _command_line(pid)
    return total + sum(resident_mb(child) for child in _children(pid) if _command_line(child) != own)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_text("ascii").split())
    return found


def machine() -> str:
    """One line that says what the numbers were measured on."""
    model = platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MB / 1024
    count = os.cpu_count() or 1
    return (
        f"{model}, {count} core{'s' if count > 1 else ''}, {memory_gb:.0f} GB, {_file_system(BUILD)}, "
        f"{platform.system()} {platform.release().split('-')[0]}, "
        f"{platform.python_implementation()} {sys.version.split()[0]}"
    )


def _file_system(path: Path) -> str:
    """The type of the file system that holds the path, since durable writes are measured on it."""
    best, kind = "", "unknown file system"
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
            _, point, name, *_ = line.split()
            if len(point) > len(best) and (path == Path(point) or Path(point) in path.parents):
                best, kind = point, name
    return kind
