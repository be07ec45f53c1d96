"""Numbers of clients as keys of sets and dicts.

The hash of a text is another one in each process. That of a number is the number, so a client could choose numbers that
all fall into one place of a table, where each look-up then steps over all the others: a body of 300 KB held the server
for a quarter of a minute. Whatever hashes numbers that clients choose hashes them behind a salt.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from typing import Final

SALT: Final = secrets.randbits(60)
"""Chosen by each process for itself, and told to nobody."""


def salted(*numbers: Hashable) -> tuple[Hashable, ...]:
    """A key that equals another one where the numbers do: 1 and 1.0 are one key."""
    return (SALT, *numbers)
