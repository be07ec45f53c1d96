"""Memory goes back to the machine when it is free: how the allocator of the C library is told so.

By default glibc keeps up to eight heaps a core, one for each thread while there are few, and once a large block was
freed it cuts blocks of that size, of up to 32 MB, from these heaps. What a burst of large bodies took then stays, as
holes between small objects. With two heaps, and large blocks always mapped on their own, a server keeps a quarter less
after the whole list of attacks.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The numbers that `malloc.h` gives these parameters."""
HEAPS = 2
MAPPED_BYTES = 256 * 1024
"""A block of this size or larger is mapped on its own, and unmapped when it is freed."""
KEPT_BYTES = 1024 * 1024
"""What may stay free at the end of a heap."""


def give_back_free_memory() -> bool:
    """Tell the allocator of this process, before it has threads; False where it is another one than glibc's."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        wanted = ((_ARENA_MAX, HEAPS), (_MMAP_THRESHOLD, MAPPED_BYTES), (_TRIM_THRESHOLD, KEPT_BYTES))
        return all(mallopt(parameter, value) for parameter, value in wanted)
    return False
