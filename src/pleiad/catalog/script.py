"""The definition of a script: a stored procedure, a trigger or a user-defined function, checked before it is kept."""

from __future__ import annotations

from typing import Any

from pleiad import errors
from pleiad.catalog.resource import Kind
from pleiad.limits import Limits

TRIGGER_TYPES = ("pre", "post")
TRIGGER_OPERATIONS = ("all", "create", "update", "delete", "replace", "upsert")


def script_properties(kind: Kind, body: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """What is kept of a script's JSON: its text and, of a trigger, when it runs. The text is compiled when it runs."""
    text = body.get("body")
    if not isinstance(text, str) or not text.strip():
        raise errors.BAD_REQUEST(
            reason="The input content is invalid because the required properties - 'body; ' - are missing: "
            f"a {kind.word} is the text of a JavaScript function."
        )
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    if size_bytes > limits.script_bytes:
        raise errors.ITEM_TOO_LARGE(size=size_bytes, limit=limits.script_bytes)
    properties: dict[str, Any] = {"body": text}
    if kind is Kind.TRIGGER:
        properties["triggerType"] = _one_of(body, "triggerType", TRIGGER_TYPES)
        properties["triggerOperation"] = _one_of(body, "triggerOperation", TRIGGER_OPERATIONS)
    return properties


def scripts_max(kind: Kind, limits: Limits) -> int:
    """How many scripts of a kind a container may have."""
    if kind is Kind.STORED_PROCEDURE:
        return limits.stored_procedures
    return limits.triggers if kind is Kind.TRIGGER else limits.user_defined_functions


def _one_of(body: dict[str, Any], name: str, words: tuple[str, ...]) -> str:
    value = body.get(name)
    if value is None:
        raise errors.BAD_REQUEST(
            reason=f"The input content is invalid because the required properties - '{name}; ' - are missing"
        )
    if not isinstance(value, str) or value.lower() not in words:
        shown = ", ".join(word.title() for word in words)
        raise errors.BAD_REQUEST(reason=f"A trigger needs a '{name}': one of {shown}.")
    return value
