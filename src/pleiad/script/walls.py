"""The walls around a script process: what is taken from it before the first script runs.

The engine gives scripts no way to the host. Should one break out of the engine all the same, it is in a process that
has one socket, and here the system is asked to let that process do nothing else. Each wall stands for itself: one that
the platform has not, or forbids, is left out and the others are put up; the names of those that hold are returned.

This module is loaded by the program of script processes, which has no package around it, so it imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

LIMITS, USER, NAMESPACES, CAPABILITIES, DUMPS, PRIVILEGES, FILES, CALLS = (
    "limits",
    "user",
    "namespaces",
    "capabilities",
    "dumps",
    "privileges",
    "files",
    "calls",
)
"""Limits of the process; the user nobody in the place of root; no network and no shared memory of others; no
capabilities; no look into its memory; no gain of rights; no files and no TCP by Landlock; a list of system calls."""

_NOBODY = 65_534
_COPIES_BYTES = 160 * 1024 * 1024
"""Address space beside the interpreter and the memory of the script: texts on their way, each in a few copies."""
_WITHOUT_PROC_BYTES = 512 * 1024 * 1024
_DESCRIPTORS = 3

_CLONE_NEWNET, _CLONE_NEWUSER, _CLONE_NEWIPC, _CLONE_NEWUTS = 0x40000000, 0x10000000, 0x08000000, 0x04000000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_CAPABILITIES_VERSION = 0x20080522


def put_up(memory_bytes: int, wanted: frozenset[str]) -> list[str]:
    """Puts up the wanted walls that this platform has; their names.

    The order matters: who is nobody, or has no descriptors left, can no longer put up the walls before it.
    """
    steps: list[tuple[str, Callable[[], None]]] = [
        (NAMESPACES, lambda: _leave_namespaces(0)),
        (USER, _become_nobody),
        (NAMESPACES, lambda: _leave_namespaces(_CLONE_NEWUSER)),
        (CAPABILITIES, _drop_capabilities),
        (DUMPS, lambda: _prctl(_PR_SET_DUMPABLE, 0)),
        (PRIVILEGES, lambda: _prctl(_PR_SET_NO_NEW_PRIVS, 1)),
        (FILES, _close_files),
        (LIMITS, lambda: _limit(memory_bytes)),
        (CALLS, _allow_few_calls),
    ]
    holding: list[str] = []
    for name, step in steps:
        if name in wanted and name not in holding:
            # AttributeError: a C library without the function.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                step()
                holding.append(name)
    return holding


# -- everywhere ------------------------------------------------------------------------------------


def _limit(memory_bytes: int) -> None:
    limits = {
        "RLIMIT_AS": memory_bytes + _process_bytes(),
        "RLIMIT_NOFILE": _DESCRIPTORS,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
    if resource is None:
        raise OSError(errno.ENOSYS, "this platform has no limits")
    for name, most in limits.items():
        which = getattr(resource, name, None)
        if which is not None:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(which, (most, most))


def _process_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") + _COPIES_BYTES
    except (OSError, ValueError):
        return _WITHOUT_PROC_BYTES


def _become_nobody() -> None:
    if os.geteuid() != 0:
        raise OSError(errno.EPERM, "this is not root")
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)


# -- Linux -----------------------------------------------------------------------------------------


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "this is not Linux")
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def _syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    libc = _libc()
    libc.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(libc.syscall(ctypes.c_long(number), *given))


def _prctl(option: int, value: int) -> None:
    zeros = (ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _checked(_libc().prctl(ctypes.c_int(option), ctypes.c_ulong(value), *zeros))


def _leave_namespaces(flags: int) -> None:
    """Into a network without interfaces; without rights that takes a user namespace of its own."""
    wanted = flags | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    _checked(_libc().unshare(ctypes.c_int(wanted)))


def _drop_capabilities() -> None:
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITIES_VERSION, 0))
    _syscall(_calls().capset, header, ctypes.create_string_buffer(24))


def _close_files() -> None:
    """No rule allows anything, so everything that Landlock of this kernel knows is forbidden."""
    os.closerange(_DESCRIPTORS, 1 << 20)
    version = _syscall(_LANDLOCK_CREATE, None, 0, 1)
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    fields = [rights] + ([3] if version >= 4 else []) + ([3] if version >= 6 else [])
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _syscall(
        _LANDLOCK_CREATE, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes), 0
    )
    try:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


# -- system calls ----------------------------------------------------------------------------------


class _Calls:
    """The numbers of one processor: its name for the filter, and the calls by their meaning."""

    def __init__(
        self,
        audit: int,
        seccomp: int,
        capset: int,
        mmap: int,
        mprotect: int,
        tgkill: int,
        plain: tuple[int, ...],
    ) -> None:
        self.audit = audit
        self.seccomp = seccomp
        self.capset = capset
        self.with_memory = (mmap, mprotect)
        self.tgkill = tgkill
        self.plain = plain


# Reading, writing and closing what is open; memory; signals of its own; time; randomness; the end.
_BY_MACHINE = {
    "x86_64": _Calls(
        audit=0xC000003E, seccomp=317, capset=126, mmap=9, mprotect=10, tgkill=234,
        plain=(
            0, 1, 3, 5, 7, 8, 11, 12, 13, 14, 15, 19, 20, 23, 24, 25, 28, 35, 36, 37, 38, 39, 44, 45, 60, 96,
            131, 186, 201, 202, 219, 228, 229, 230, 231, 270, 271, 273, 318, 334,
        ),
    ),
    "aarch64": _Calls(
        audit=0xC00000B7, seccomp=277, capset=91, mmap=222, mprotect=226, tgkill=131,
        plain=(
            57, 62, 63, 64, 65, 66, 72, 73, 80, 93, 94, 98, 99, 101, 102, 103, 113, 114, 115, 124, 128, 132,
            134, 135, 139, 169, 172, 178, 206, 207, 214, 215, 216, 233, 278, 293,
        ),
    ),
}  # fmt: skip

_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BEGIN = 0x40000000
_PROT_EXEC = 4
_SET_FILTER, _ALL_THREADS = 1, 1


def _calls() -> _Calls:
    calls = _BY_MACHINE.get(platform.machine())
    if calls is None or struct.calcsize("P") != 8 or sys.byteorder != "little":
        raise OSError(errno.ENOSYS, "the system calls of this processor are not known here")
    return calls


def _allow_few_calls() -> None:
    """A filter of system calls: those not on the list are refused, those of another kind of program end it."""
    calls = _calls()
    program = _filter(calls, os.getpid())
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _syscall(calls.seccomp, _SET_FILTER, _ALL_THREADS, ctypes.create_string_buffer(header, len(header)))


def _filter(calls: _Calls, process_id: int) -> bytes:
    """The program of the filter: code, how far to jump when true and when false, and a number, eight bytes each."""
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, calls.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32_BEGIN),
        (_RETURN, 0, 0, _KILL),
    ]
    for number in calls.plain:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for number in calls.with_memory:  # memory, but none that can be run
        steps += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 2 * 8),
            (_HAS_BITS, 1, 0, _PROT_EXEC),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE),
        ]
    steps += [  # a signal to itself, which is how a program aborts
        (_EQUAL, 0, 3, calls.tgkill),
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_EQUAL, 0, 1, process_id),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


ALL = frozenset({LIMITS, USER, NAMESPACES, CAPABILITIES, DUMPS, PRIVILEGES, FILES, CALLS})
FEWEST = frozenset({LIMITS})
"""What every platform has; for one where scripts do not run behind more."""
