"""What all synthetic keys share: a value computed from an item, and the property it is kept in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pleiad.strategy.item_path import with_value

KEY_PATH = "/partitionKey"
"""Where synthetic keys are kept unless told otherwise."""


class SyntheticKey(ABC):
    """A rule that makes the partition key value of an item from its properties."""

    @abstractmethod
    def value_of(self, item: Mapping[str, Any]) -> str:
        """The key value of an item; ValueError says what is missing or cannot be part of a key."""

    def applied_to(self, item: Mapping[str, Any], path: str = KEY_PATH) -> dict[str, Any]:
        """The item with its key value in it, ready to be written; the given one stays as it is."""
        return with_value(item, path, self.value_of(item))
