"""The item before and after a change, as the rows they were."""

from __future__ import annotations

from pleiad.store.rows import Row, Verb, Version


def current_image(version: Version) -> Row | None:
    """The item after a change as the row it was; None for a delete."""
    if version.verb is Verb.DELETE:
        return None
    return _image(version, version.lsn, version.ts, version.body)


def previous_image(version: Version) -> Row | None:
    """The item before a change as the row it was; None where there was none."""
    if not version.previous_lsn:
        return None
    return _image(version, version.previous_lsn, version.previous_ts, version.previous_body)


def _image(version: Version, lsn: int, ts: int, body: bytes) -> Row:
    return Row(version.number, version.epk, version.id, lsn, ts, None, 0, 0, body)
