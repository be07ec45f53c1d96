"""Words that go with numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pleiad.client.account import Throughput


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, in the plural where there is not exactly one: `1 item`, `2,000 items`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def throughput_text(own: Throughput | None, shared: Throughput | None = None) -> str:
    """The RU/s that a database or container has: its own, or those of its database."""
    if own is not None:
        return f"up to {own.ru:,}" if own.autoscale else f"{own.ru:,}"
    return f"shares {throughput_text(shared)}" if shared is not None else ""
