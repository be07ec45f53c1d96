"""The files of the explorer, and to whom the account's own address answers with them.

The page is a client like any other: its files need no key and hold no secret, and what it shows it asks for with the
key that its user enters, signed in the browser. Files are read once, when a server starts; a browser keeps them and
asks by their ETag whether they are still the same. The policy in every answer allows nothing but these files and this
server, no script or style within the markup, and no page of anybody else around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

from pleiad.engine.operation import Operation
from pleiad.heads.http.call import HttpCall
from pleiad.heads.http.route import Choice, Methods, Route
from pleiad.server.http.failures import ROUTE_NOT_FOUND
from pleiad.server.http.message import Response, render_headers

Call = TypeVar("Call", bound=HttpCall)
"""What the head that serves the page knows of a request."""

_FOLDERS = ("css", "js", "screens")
_INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_GUARDS = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
    ("Vary", "Accept, Authorization"),
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, with its headers as they are sent."""

    etag: str
    headers: bytes
    body: bytes


class ExplorerPage:
    """Answers with the files of the page."""

    def __init__(self) -> None:
        self._files = _files()

    def routes(self) -> dict[str, Methods[HttpCall]]:
        """Every path of the page but the first, with a star where a name stands."""
        served = Route(Operation.READ_PAGE, self.file)
        return {f"_pleiad/*/{folder}/*": {"GET": served} for folder in _FOLDERS}

    def beside(self, account: Route[Call]) -> Choice[Call]:
        """What the account's address is: the page for a browser, and the account for everybody else.

        A browser asks for HTML and proves nothing; a client of the account proves who it is, and never asks for HTML.
        """
        page: Route[Call] = Route(Operation.READ_PAGE, self.index)

        def choose(call: Call) -> Route[Call]:
            return page if _asks_for_html(call) else account

        return Choice(choose, page, account)

    def index(self, call: HttpCall) -> Response:
        return _answer(call, self._files[_INDEX])

    def file(self, call: HttpCall) -> Response:
        found = self._files.get("/".join(call.segments[2:])) if call.segments[1] == "page" else None
        if found is None:
            raise ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])
        return _answer(call, found)


def _asks_for_html(call: HttpCall) -> bool:
    headers = call.request.headers
    if b"authorization" in headers:
        return False
    kinds = headers.get(b"accept", b"").split(b",")
    return any(kind.partition(b";")[0].strip().lower() == b"text/html" for kind in kinds)


def _answer(call: HttpCall, file: PageFile) -> Response:
    known = call.text(b"if-none-match")
    if known == "*" or file.etag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(304, file.headers)
    return Response(200, file.headers, file.body)


@cache
def _files() -> dict[str, PageFile]:
    """Every file by its path in the page; read once, however many servers a process starts."""
    folder = files("pleiad.heads.explorer") / "static"
    found = {f"{name}/{each.name}": _file(each) for name in _FOLDERS for each in (folder / name).iterdir()}
    return {_INDEX: _file(folder / _INDEX), **found}


def _file(path: Traversable) -> PageFile:
    body = path.read_bytes()
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    kind = _TYPES[path.name.rpartition(".")[2]]
    return PageFile(etag, render_headers([("Content-Type", kind), ("ETag", etag), *_GUARDS]), body)
