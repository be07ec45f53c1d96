"""Pleiad: a partitioned database that Cosmos DB clients work against, run by its users themselves.

`pleiad.start()` gives a test a running database; the command `pleiad` serves one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pleiad.testing.start import start

__all__ = ["start"]


def __getattr__(name: str) -> Any:
    # Lazily, so that importing one room of the house does not load the whole of it.
    if name == "start":
        from pleiad.testing.start import start

        return start
    raise AttributeError(f"module 'pleiad' has no attribute '{name}'")
