"""The definitions of scripts: stored procedures, triggers and user-defined functions, as a container keeps them."""

from __future__ import annotations

from typing import Any

from pleiad import errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.script import script_properties, scripts_max
from pleiad.engine.engine import Engine


async def create(
    engine: Engine, kind: Kind, container: Resource, body: dict[str, Any], upsert: bool = False
) -> tuple[Resource, bool]:
    """Creates a script in a container, or replaces it when asked to upsert; says whether it is new."""
    id = body.get("id")
    if not isinstance(id, str):
        raise errors.MISSING_ID()
    properties = script_properties(kind, body, engine.limits)
    most = scripts_max(kind, engine.limits)
    return await engine.create_child(kind, container, id, properties, upsert, most)


async def replace(engine: Engine, old: Resource, body: dict[str, Any], if_match: str | None) -> Resource:
    """Replaces the text of a script and, of a trigger, when it runs."""
    id = body.get("id", old.id)
    properties = script_properties(old.kind, body, engine.limits)
    return await engine.replace_child(old, id, properties, if_match)
