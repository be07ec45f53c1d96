"""Answers of the admin API, and the reading of what its requests ask for."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import orjson

from pleiad import errors
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response, render_headers

_DIGITS_MAX = 9


def json_answer(call: HttpCall, value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    pairs = [("Content-Type", "application/json"), ("x-ms-activity-id", call.activity_id)]
    body = b"" if status == 204 else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    return Response(status, render_headers(pairs), body)


def whole_parameter(call: HttpCall, name: str, default: int, most: int) -> int:
    """A whole number in the query of the address, such as ``?largest=5``."""
    try:
        given = parse_qs(call.request.query.decode(), keep_blank_values=True).get(name)
    except (UnicodeDecodeError, ValueError):
        raise errors.BAD_REQUEST(reason="The query of the address cannot be read.") from None
    if given is None:
        return default
    text = given[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX and int(text) <= most):
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a whole number from 0 to {most}.")
    return int(text)


def check_names(body: dict[str, Any], known: frozenset[str]) -> None:
    """Refuses members that mean nothing, so that no typing mistake goes unnoticed."""
    unknown = sorted(body.keys() - known)
    if unknown:
        raise errors.BAD_REQUEST(
            reason=f"Unknown in the body: {', '.join(unknown)[:200]}. Known are {', '.join(sorted(known))}."
        )
