"""One request over HTTP as operations see it: the path in segments, headers as flags and texts, and the body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pleiad import errors
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.engine.visit import Visit
from pleiad.item.body import check_names_unique, count_members, load
from pleiad.limits import Limits
from pleiad.server.http.message import Request


@dataclass(slots=True, eq=False)
class HttpCall(Visit):
    """A routed request."""

    request: Request
    method: str
    raw_path: bytes
    """The path, still percent-encoded."""
    segments: list[str]
    """The names in the path."""
    limits: Limits
    _object: dict[str, Any] | None = field(default=None, init=False)
    """The body, once it has been read."""

    def flag(self, name: bytes) -> bool:
        """A boolean header: clients write True and true."""
        value = self.request.headers.get(name)
        return value is not None and value.strip().lower() == b"true"

    def text(self, name: bytes) -> str:
        return self.request.header(name)

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object, for metadata resources and queries."""
        if self._object is None:
            self._object = json_object_of(self.request.body, self.limits.item_depth)
        return self._object

    async def read_large_object(self) -> None:
        """Reads a large body beside the loop, so that `json_object` has it at hand."""
        if len(self.request.body) > LARGE_BYTES:
            body = self.request.body
            self._object = await beside(len(body), json_object_of, body, self.limits.item_depth)


def json_object_of(raw: bytes, depth_max: int) -> dict[str, Any]:
    """The JSON object that a body is; BAD_JSON for any other."""
    value = load(raw)
    if not isinstance(value, dict):
        raise errors.BAD_JSON(reason="the body must be a JSON object.")
    check_names_unique(raw, count_members(value, depth_max))
    return value
