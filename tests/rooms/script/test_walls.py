"""What a script could do that has broken out of its engine: nothing but talk to the server on its one socket."""

from __future__ import annotations

import base64
import contextlib
import errno
import logging
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pleiad.limits import Limits
from pleiad.script import process, walls, worker
from pleiad.script.pool import ScriptPool
from pleiad.script.process import ScriptProcess
from tests.coroutines import LoopThread

Attempt = Callable[[str], list[Any]]
REFUSED = {errno.EPERM, errno.EACCES, errno.EMFILE, errno.EAGAIN, errno.ENOSYS}
BROKEN_ENGINE = str(Path(__file__).with_name("broken_engine.py"))
SYSCALL = """
def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
"""
ESCAPES = {
    "read a file": "open('/etc/passwd').read()",
    "write a file": "open('/tmp/out', 'w')",
    "list a folder": "os.listdir('/')",
    "look at a file": "os.stat('/etc/passwd')",
    "read the environment of the server": "open(f'/proc/{os.getppid()}/environ').read()",
    "read its own memory as a file": "open('/proc/self/mem')",
    "duplicate a descriptor": "os.dup(0)",
    "make a pipe": "os.pipe()",
    "make a file in memory": "os.memfd_create('x')",
    "open a TCP socket": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "open a UDP socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "open a local socket": "socket.socket(socket.AF_UNIX)",
    "fork": "os.fork()",
    "run a program": "os.execv('/bin/sh', ['sh', '-c', 'true'])",
    "signal the server": "os.kill(os.getppid(), 0)",
    "kill the server": "os.kill(os.getppid(), signal.SIGUSR2)",
    "kill everybody": "os.kill(-1, 0)",
    "become root": "os.setuid(0)",
    "change the working folder": "os.chdir('/tmp')",
    "make memory that runs": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
}
NUMBERED = {
    "x86_64": {"ptrace": "101, 16, os.getppid(), 0, 0", "io_uring_setup": "425, 8, 0", "bpf": "321, 0, 0, 0",
               "perf_event_open": "298, 0, 0, -1, -1, 0", "process_vm_readv": "310, os.getppid(), 0, 0, 0, 0, 0",
               "unshare": "272, 0x10000000", "mount": "165, 0, 0, 0, 0, 0", "prctl": "157, 4, 1, 0, 0, 0",
               "keyctl": "250, 0, 0, 0, 0, 0", "userfaultfd": "323, 0", "clone3": "435, 0, 0",
               "pidfd_open": "434, os.getppid(), 0", "sendmsg": "46, 0, 0, 0", "prlimit64": "302, 0, 1, 0, 0"},
    "aarch64": {"ptrace": "117, 16, os.getppid(), 0, 0", "io_uring_setup": "425, 8, 0", "bpf": "280, 0, 0, 0",
                "unshare": "97, 0x10000000", "clone3": "435, 0, 0", "pidfd_open": "434, os.getppid(), 0"},
}  # fmt: skip

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have limits only")


class Broken:
    """A script process whose engine runs Python."""

    def __init__(self) -> None:
        self.process = ScriptProcess(Limits())
        self._thread = LoopThread()

    def __call__(self, source: str) -> list[Any]:
        asking = self.process.ask(worker.CALL, orjson.dumps({"source": source}), 5)
        answer = self._thread.ask(asking)
        assert isinstance(answer, list)
        return answer

    def end(self) -> None:
        self.process.kill()
        self._thread.close()


@pytest.fixture
def start_broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Broken]]:
    monkeypatch.setattr(process, "_PROGRAM", BROKEN_ENGINE)
    started: list[Broken] = []

    def start() -> Broken:
        started.append(Broken())
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def attempt(start_broken: Callable[[], Broken]) -> Attempt:
    """Runs Python in a script process whose walls are up."""
    return start_broken()


def test_every_wall_of_this_platform_is_up() -> None:
    started = ScriptProcess(Limits())
    started.kill()
    expected = {walls.LIMITS, walls.DUMPS, walls.PRIVILEGES, walls.CAPABILITIES}
    if platform.machine() in NUMBERED:
        expected.add(walls.CALLS)
    if os.geteuid() == 0:
        expected.add(walls.USER)
    assert expected <= set(started.walls)


@pytest.mark.parametrize("what", ESCAPES)
def test_a_broken_engine_cannot(attempt: Attempt, what: str) -> None:
    assert attempt("answer = 1 + 1") == ["done", 2]
    ended, number = attempt(ESCAPES[what])
    assert ended == "refused", number
    assert number in REFUSED
    assert attempt("answer = [os.getpid() > 0, len(bytes(50_000_000))]") == ["done", [True, 50_000_000]]


@pytest.mark.parametrize("name", NUMBERED.get(platform.machine(), {}))
def test_a_broken_engine_cannot_call(attempt: Attempt, name: str) -> None:
    ended, number = attempt(SYSCALL + f"call({NUMBERED[platform.machine()][name]})")
    assert (ended, number) == ("refused", errno.EPERM)


def test_a_script_process_has_nothing_of_the_server_in_its_memory(
    monkeypatch: pytest.MonkeyPatch, start_broken: Callable[[], Broken]
) -> None:
    secret = base64.b64encode(os.urandom(48)).decode()
    monkeypatch.setenv("PLEIAD_KEY", secret)
    broken = start_broken()
    answer = broken("answer = [list(os.environ), sys.argv[1:]]")
    assert answer in (["done", [[], []]], ["done", [["LC_CTYPE"], []]])
    if os.geteuid() == 0:
        regions = memory_of(broken.process.id)
        assert any(b"broken_engine.py" in region for region in regions), "this is its memory"
        assert not any(secret.encode() in region for region in regions)


def memory_of(pid: int) -> list[bytes]:
    """Everything writable that a process has."""
    regions: list[bytes] = []
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, mode = line.split()[:2]
            start, end = (int(part, 16) for part in place.split("-"))
            if "w" in mode:
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(start)
                    regions.append(memory.read(end - start))
    return regions


def test_each_wall_stops_something_by_itself(
    monkeypatch: pytest.MonkeyPatch, start_broken: Callable[[], Broken]
) -> None:
    """So none of them hides that another one does not stand."""

    def behind(*names: str) -> Broken:
        monkeypatch.setattr(walls, "ALL", frozenset(names))
        return start_broken()

    read = "answer = open('/etc/passwd').read(4)"
    assert behind()(read)[0] == "done"
    assert behind(walls.LIMITS)(read) == ["refused", errno.EMFILE]
    by_files, by_calls = behind(walls.FILES), behind(walls.CALLS)
    if walls.FILES in by_files.process.walls:
        assert by_files(read) == ["refused", errno.EACCES]
    if walls.CALLS in by_calls.process.walls:
        assert by_calls(read) == ["refused", errno.EPERM]
    if os.geteuid() == 0:
        assert behind(walls.USER)("answer = os.geteuid()") == ["done", 65_534]
    alone = behind(walls.NAMESPACES)
    if walls.NAMESPACES in alone.process.walls:
        assert alone("answer = [name for _, name in socket.if_nameindex()]") in (
            ["done", ["lo"]],
            ["done", []],
        )


def test_where_scripts_do_not_run_behind_all_walls_they_run_behind_the_fewest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "tests" / "picky.py"
    program.parent.mkdir()
    worker_at = Path(str(worker.__file__))
    program.write_text(
        "import importlib.util, sys\n"
        f"place = importlib.util.spec_from_file_location('worker', {str(worker_at)!r})\n"
        "worker = importlib.util.module_from_spec(place)\n"
        "place.loader.exec_module(worker)\n"
        "confine = worker._confine\n"
        "def picky(settings):\n"
        "    if len(settings['walls']) > 1: sys.exit(3)\n"
        "    return confine(settings)\n"
        "worker._confine = picky\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(process, "_PROGRAM", str(program))
    with caplog.at_level(logging.WARNING):
        started = ScriptProcess(Limits())
    assert started.walls == (walls.LIMITS,)
    assert "did not start behind the walls" in caplog.text
    started.kill()


async def test_the_pool_tells_which_walls_hold(caplog: pytest.LogCaptureFixture) -> None:
    pool = ScriptPool(Limits())
    with caplog.at_level(logging.INFO):
        async with pool.lease():
            pass
    pool.close()
    assert walls.LIMITS in pool.walls
    assert f"behind these walls: {', '.join(pool.walls)}" in caplog.text
