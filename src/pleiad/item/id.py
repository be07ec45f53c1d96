"""The rules for ids: of items, and of the named resources around them (databases, containers, scripts).

As on the service, an item id may hold anything but a backslash, NUL and lone surrogates; one with a slash or a number
sign is found by queries and not by a path, as client libraries write these unescaped. A resource name may not hold a
slash, a backslash, a number sign, a question mark or a control character, nor end in a space.
"""

from __future__ import annotations

import re

from pleiad import errors
from pleiad.limits import Limits
from pleiad.values.undefined import UNDEFINED

_FORBIDDEN_IN_ITEM_ID = re.compile(r"[\\\x00\ud800-\udfff]")
is_plain_id = re.compile(r"[ -\[\]-~]+").fullmatch
"""Whether a text is of characters that every id may hold, as nearly all are: then only its length is to be checked."""
_FORBIDDEN_IN_NAME = re.compile(r"[/\\#?\x00-\x1f\x7f\ud800-\udfff]")


def _shown(value: str) -> str:
    """A value short enough, and printable enough, to stand in a message."""
    text = value if value.isprintable() else repr(value)[1:-1]
    return text if len(text) <= 100 else text[:100] + "..."


def _rule(length: int) -> str:
    return f"Ensure to provide a unique non-empty string less than '{length}' characters."


def check_item_id(value: object, limits: Limits) -> str:
    """The id of an item when it is a good one; MISSING_ID for None and UNDEFINED, BAD_ID for all else."""
    if value is None or value is UNDEFINED:
        raise errors.MISSING_ID()
    if not isinstance(value, str):
        raise errors.BAD_ID(id=_shown(str(value)), reason="An id must be a string.")
    if not value:
        raise errors.BAD_ID(id="", reason=_rule(limits.item_id_bytes + 1))
    if _FORBIDDEN_IN_ITEM_ID.search(value) is not None:
        reason = "An id must not contain a backslash."
        raise errors.BAD_ID(id=_shown(value), reason=reason)
    if len(value if value.isascii() else value.encode()) > limits.item_id_bytes:
        reason = _rule(limits.item_id_bytes + 1)
        raise errors.BAD_ID(id=_shown(value), reason=reason)
    return value


def check_resource_name(value: object, limits: Limits) -> str:
    """The id of a database, container or other named resource when it is a good one."""
    if value is None or value is UNDEFINED:
        raise errors.MISSING_ID()
    if not isinstance(value, str):
        raise errors.BAD_ID(id=_shown(str(value)), reason="An id must be a string.")
    if not 1 <= len(value) <= limits.name_length:
        reason = _rule(limits.name_length)
        raise errors.BAD_ID(id=_shown(value), reason=reason)
    if _FORBIDDEN_IN_NAME.search(value) is not None:
        reason = "An id must not contain '/', '\\', '#', '?' or control characters."
        raise errors.BAD_ID(id=_shown(value), reason=reason)
    if value.endswith(" "):
        raise errors.BAD_ID(id=_shown(value), reason="An id must not end in a space.")
    return value
