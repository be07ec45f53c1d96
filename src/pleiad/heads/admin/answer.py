"""Answers of the admin API, and the reading of what its requests ask for."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import orjson

from pleiad import errors
from pleiad.heads.http.call import HttpCall
from pleiad.heads.http.key_text import component
from pleiad.keys.value import KeyValue
from pleiad.server.http.message import Response, render_headers
from pleiad.values.undefined import UNDEFINED

_DIGITS_MAX = 16


def json_answer(call: HttpCall, value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    body = b"" if status == 204 else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    return made_answer(call, body, status)


def made_answer(call: HttpCall, body: bytes, status: int = 200, charge_ru: float | None = None) -> Response:
    """An answer whose JSON is made already; with a charge, what it cost."""
    pairs = [("Content-Type", "application/json"), ("x-ms-activity-id", call.activity_id)]
    if charge_ru is not None:
        pairs.append(("x-ms-request-charge", f"{charge_ru:.2f}"))
    return Response(status, render_headers(pairs), body)


def made_json_answer(call: HttpCall, value: Any, charge_ru: float) -> Response:
    """A JSON answer to what was charged."""
    return made_answer(call, orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS), charge_ru=charge_ru)


def text_parameter(call: HttpCall, name: str, characters_max: int) -> str:
    """A text in the query of the address; empty when it is not given."""
    text = _given(call, name) or ""
    if len(text) > characters_max:
        raise errors.BAD_REQUEST(reason=f"'{name}' has more than {characters_max} characters.")
    return text


def _given(call: HttpCall, name: str) -> str | None:
    """The last value of a parameter in the query of the address."""
    try:
        given = parse_qs(call.request.query.decode(), keep_blank_values=True, errors="strict").get(name)
    except (UnicodeDecodeError, ValueError):
        raise errors.BAD_REQUEST(reason="The query of the address cannot be read.") from None
    return None if given is None else given[-1]


def whole_parameter(call: HttpCall, name: str, default: int, most: int, least: int = 0) -> int:
    """A whole number in the query of the address, such as ``?largest=5``."""
    text = _given(call, name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX and least <= int(text) <= most):
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a whole number from {least} to {most}.")
    return int(text)


def check_names(body: dict[str, Any], known: frozenset[str]) -> None:
    """Refuses members that mean nothing, so that no typing mistake goes unnoticed."""
    unknown = sorted(body.keys() - known)
    if unknown:
        raise errors.BAD_REQUEST(
            reason=f"Unknown in the body: {', '.join(unknown)[:200]}. Known are {', '.join(sorted(known))}."
        )


def key_to_json(key: tuple[KeyValue, ...]) -> list[Any]:
    """A key as JSON; what is missing is an empty object, as in the header of a partition key."""
    return [{} if value is UNDEFINED else value for value in key]


def key_from_json(value: Any, name: str) -> tuple[KeyValue, ...] | None:
    """The key that a body gives as a list, all levels or the first ones; None when it gives none."""
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a list with the values of the partition key.")
    return tuple([component(each) for each in value])
