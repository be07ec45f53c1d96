"""What all servers on one database have to agree on: the table `server` holds it as the first of them said it."""

from __future__ import annotations

from collections.abc import Mapping

from pleiad.store.postgres.connections import Connection

SECRET = "key"
"""What is kept of a setting whose name ends so is a digest, which is not shown."""


async def compare(
    connection: Connection, settings: Mapping[str, str], is_alone: bool
) -> dict[str, str | None]:
    """The settings that differ, as the others have them; who is alone, or the first, puts its own down."""
    async with connection.transaction():
        await connection.execute("LOCK TABLE pleiad.server IN EXCLUSIVE MODE")
        rows = await (await connection.execute("SELECT setting, value FROM pleiad.server")).fetchall()
        known: dict[str, str] = dict(rows)
        if is_alone or not known:
            await connection.execute("DELETE FROM pleiad.server")
            for name, value in settings.items():
                await connection.execute("INSERT INTO pleiad.server VALUES (%s, %s)", (name, value))
            return {}
    return {
        name: known.get(name)
        for name in sorted(known.keys() | settings.keys())
        if known.get(name) != settings.get(name)
    }


def sentence(differing: Mapping[str, str | None], settings: Mapping[str, str]) -> str:
    """What differs, for the operator."""
    parts = [
        name
        if name.endswith(SECRET)
        else f"{name} ({there or 'none'} there, {settings.get(name, 'none')} here)"
        for name, there in differing.items()
    ]
    return (
        f"another server on this database has other settings: {', '.join(parts)}; start this one with the same, or "
        "insist with --allow-different-settings while you change them one server after the other"
    )
