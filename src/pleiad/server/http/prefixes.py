"""Several sites on one HTTP listener, told apart by the beginning of the path.

A prefix stands for itself and for what is below it: `/_page` takes `/_page`, `/_page/` and `/_page/x`, not `/_pages`.
It is compared with the path as it was sent: one that is written otherwise, with percent signs or double slashes, is the
root's to answer, so no site is ever reached by a path its own rules do not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pleiad.server.http.message import Answer, Gate, Handler, Request, Response


@dataclass(frozen=True, slots=True)
class Place:
    """What answers at a prefix, and its gate."""

    handler: Handler
    gate: Gate | None = None


class Prefixes:
    """The root of a listener, and the places beneath prefixes; `handle` and `admit` are a site's handler and gate."""

    def __init__(self, root: Place, places: Mapping[bytes, Place]) -> None:
        for prefix in places:
            if prefix[:1] != b"/" or len(prefix) < 2 or prefix[-1:] in b"/?":
                raise ValueError(f"{prefix!r} is no prefix: one looks like b'/_page'")
        self._root = root
        # The longest first: it is the one that says more.
        self._places = sorted(places.items(), key=lambda each: -len(each[0]))
        self._prefixes = tuple(places)

    def handle(self, request: Request) -> Answer:
        return self._place_of(request).handler(request)

    def admit(self, request: Request) -> Response | None:
        gate = self._place_of(request).gate
        return None if gate is None else gate(request)

    def _place_of(self, request: Request) -> Place:
        target = request.target
        if target[:1] == b"/" and not target.startswith(self._prefixes):
            return self._root
        path = request.raw_path
        for prefix, place in self._places:
            if path == prefix or path.startswith(prefix + b"/"):
                return place
        return self._root
