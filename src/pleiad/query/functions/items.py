"""Functions about an item as a whole."""

from __future__ import annotations

from typing import Any

from pleiad.errors import PleiadError
from pleiad.item.rid import document_parts
from pleiad.keys.undefined import UNDEFINED
from pleiad.query.functions.registry import register


@register("items", "DOCUMENTID", 1, 1)
def document_id(item: Any) -> Any:
    """The item's number, read from its _rid."""
    rid = item.get("_rid") if type(item) is dict else None
    if type(rid) is not str:
        return UNDEFINED
    try:
        return document_parts(rid)[2]
    except PleiadError:
        return UNDEFINED
