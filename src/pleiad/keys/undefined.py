"""UNDEFINED under the name by which keys and queries know it; it is a value like the others, see ``values``."""

from __future__ import annotations

from pleiad.values.undefined import UNDEFINED, Undefined

__all__ = ["UNDEFINED", "Undefined"]
