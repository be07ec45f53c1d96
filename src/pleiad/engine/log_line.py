"""Log lines of names and values, for who reads logs with programs."""

from __future__ import annotations

import json
from typing import Any

import orjson


def log_line(**pairs: Any) -> str:
    """Each value is JSON, so that texts have quotes, and nothing that a reader takes for a line break or a command."""
    return " ".join(f"{name}={_json(value)}" for name, value in pairs.items())


def _json(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # halves of pairs, which only escapes can tell
        return json.dumps(value)
    return text if text.isprintable() else json.dumps(value)
