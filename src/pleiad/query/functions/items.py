"""Functions about an item as a whole."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pleiad.keys.undefined import UNDEFINED
from pleiad.query.functions.registry import register

_FAMILY = "items"

# Database and container take the first eight bytes of a _rid, the item's number the next eight.
_ITEM_NUMBER_START = 8
_ITEM_NUMBER_END = 16


@register(_FAMILY, "DOCUMENTID", 1, 1)
def document_id(item: Any) -> Any:
    """The item's number within its physical partition, read from its _rid."""
    rid = item.get("_rid") if type(item) is dict else None
    if type(rid) is not str:
        return UNDEFINED
    try:
        # A _rid writes '-' for '/', so that it can stand in a path.
        raw = base64.b64decode(rid.replace("-", "/"), validate=True)
    except (binascii.Error, ValueError):
        return UNDEFINED
    if len(raw) != _ITEM_NUMBER_END:
        return UNDEFINED
    return int.from_bytes(raw[_ITEM_NUMBER_START:_ITEM_NUMBER_END], "little")
