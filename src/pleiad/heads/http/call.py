"""One request over HTTP as operations see it: the path in segments, headers as flags and texts, and the body."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from pleiad import errors
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.engine.desk import Visit
from pleiad.item.body import check_names_unique, count_members, load
from pleiad.limits import Limits
from pleiad.server.http.message import Request


class HttpCall(Visit):
    """A routed request."""

    __slots__ = ("_object", "limits", "method", "raw_path", "request", "segments")

    def __init__(
        self,
        request: Request,
        raw_path: bytes,
        segments: list[str],
        activity_id: str,
        began_at: float,
        limits: Limits,
    ) -> None:
        super().__init__(activity_id, began_at)
        self.request = request
        self.raw_path = raw_path
        self.segments = segments
        self.method = request.method
        self.limits = limits
        self._object: dict[str, Any] | None = None

    def flag(self, name: bytes) -> bool:
        """A boolean header: clients write True and true."""
        value = self.request.headers.get(name)
        return value is not None and value.strip().lower() == b"true"

    def text(self, name: bytes) -> str:
        return self.request.header(name)

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object, for metadata resources and queries."""
        if self._object is None:
            self._object = _json_object(self.request.body, self.limits)
        return self._object

    async def read_large_object(self) -> None:
        """Reads a large body beside the loop, so that `json_object` has it at hand."""
        if len(self.request.body) > LARGE_BYTES:
            body = self.request.body
            self._object = await beside(len(body), _json_object, body, self.limits)


def _json_object(raw: bytes, limits: Limits) -> dict[str, Any]:
    value = load(raw)
    if not isinstance(value, dict):
        raise errors.BAD_JSON(reason="the body must be a JSON object.")
    check_names_unique(raw, count_members(value, limits.item_depth))
    return value


def path_segments(raw_path: bytes) -> list[str]:
    """The decoded segments of a path; slashes before it and at its end mean nothing."""
    segments = raw_path.strip(b"/")
    if not segments:
        return []
    try:
        if b"%" not in segments:
            return segments.decode().split("/")
        return [unquote_to_bytes(segment).decode() for segment in segments.split(b"/")]
    except UnicodeDecodeError:
        raise errors.BAD_REQUEST(reason="The path is not UTF-8.") from None
