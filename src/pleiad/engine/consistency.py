"""The five consistency levels, from the cheapest to the dearest, and which of them a read has.

====================  ==========  ================================================================
level                 read costs  what a read may show
====================  ==========  ================================================================
eventual              1x          any version that was ever current
consistent prefix     1x          the same, but never a transaction in part
session               1x          nothing older than the session token of the request
bounded staleness     2x          nothing older than a few versions or seconds
strong                2x          the last acknowledged write
====================  ==========  ================================================================

On one machine every read shows the last acknowledged write, which every level allows. What differs is the charge, and
that a session token is looked at only where it means something: at session level. A request may weaken the level
of its account and never strengthen it; a read strategy, such as the last committed version, is had on every account.
"""

from __future__ import annotations

from enum import Enum

from pleiad import errors


class Consistency(Enum):
    """A consistency level: its name, its place from weak to strong, and what a read of it costs."""

    EVENTUAL = ("Eventual", 1)
    CONSISTENT_PREFIX = ("ConsistentPrefix", 1)
    SESSION = ("Session", 1)
    BOUNDED_STALENESS = ("BoundedStaleness", 2)
    STRONG = ("Strong", 2)

    def __init__(self, word: str, read_multiplier: int) -> None:
        self.word = word
        self.read_multiplier = read_multiplier
        """Strong and bounded staleness read two replicas."""

    @property
    def option(self) -> str:
        """The level as an operator writes it, such as ``bounded-staleness``."""
        return self.name.lower().replace("_", "-")


BY_OPTION = {level.option: level for level in Consistency}
_WEAK_TO_STRONG = list(Consistency)


def weakened(account: Consistency, asked: Consistency) -> Consistency:
    """The level of a read that asks for one: the account's or a weaker one, and never a stronger one."""
    if _WEAK_TO_STRONG.index(asked) > _WEAK_TO_STRONG.index(account):
        raise errors.WEAKER_CONSISTENCY_ONLY(given=asked.word, account=account.word)
    return asked
