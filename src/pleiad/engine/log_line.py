"""Log lines of names and values, for who reads logs with programs."""

from __future__ import annotations

from typing import Any

import orjson


def log_line(**pairs: Any) -> str:
    """Each value is JSON, so that texts have quotes and no line breaks."""
    return " ".join(f"{name}={orjson.dumps(value).decode()}" for name, value in pairs.items())
