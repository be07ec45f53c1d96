"""Functions about an item or a value as a whole, and the one whose value only the service has.

GENERATEEMBEDDINGS is accepted in plans, with the service's rules for its argument. To run it needs a model: a query
that gets to it is refused with a text that says so.
"""

from __future__ import annotations

from typing import Any

from pleiad.errors import QUERY_ERROR, PleiadError
from pleiad.item.rid import document_parts
from pleiad.query.functions.registry import register
from pleiad.query.value_hash import value_hash
from pleiad.query.values import mod3
from pleiad.values.undefined import UNDEFINED


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


@register("items", "HASH", 1, 3)
def hash_of(value: Any, modulo: Any = UNDEFINED, seed: Any = 0) -> Any:
    """The hash of a value with a seed; with a modulo what is left of a division that cuts towards zero."""
    if type(seed) is not int or (modulo is not UNDEFINED and (type(modulo) is not int or not modulo)):
        return UNDEFINED
    found = value_hash(value, seed)
    return found if modulo is UNDEFINED else mod3(found, modulo)


@register("items", "GENERATEEMBEDDINGS", 1, 1, deterministic=False)
def generate_embeddings(_: Any) -> Any:
    """The vector that a model of the service gives a text."""
    raise QUERY_ERROR(reason="The GENERATEEMBEDDINGS function is not supported: there is no model here.")
