"""Functions about an item as a whole, and the two whose values only the service has.

HASH and GENERATEEMBEDDINGS are accepted in plans, with the service's rules for their arguments. To run them needs the
service's own hash, which nothing publishes, or a model: a query that gets to one is refused with a text that says so.
"""

from __future__ import annotations

from typing import Any

from pleiad.errors import QUERY_ERROR, PleiadError
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


@register("items", "HASH", 1, 3, deterministic=False)
def hash_of(*_: Any) -> Any:
    """The service's hash of a value."""
    raise QUERY_ERROR(reason="The HASH function is not supported: the service's hash is not published.")


@register("items", "GENERATEEMBEDDINGS", 1, 1, deterministic=False)
def generate_embeddings(_: Any) -> Any:
    """The vector that a model of the service gives a text."""
    raise QUERY_ERROR(reason="The GENERATEEMBEDDINGS function is not supported: there is no model here.")
