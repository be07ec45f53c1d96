"""Sites beneath prefixes of one listener."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pleiad.server.http.message import Handler, Request, Response
from pleiad.server.http.prefixes import Place, Prefixes
from pleiad.server.http.site import HttpSite

Serve = Callable[..., Any]


def named(name: bytes) -> Handler:
    async def handler(request: Request) -> Response:
        return Response(200, b"", name)

    return handler


def refuse(request: Request) -> Response | None:
    return Response(401)


PREFIXES = Prefixes(
    Place(named(b"root")),
    {b"/_page": Place(named(b"page")), b"/_page/api": Place(named(b"api"), refuse)},
)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (b"/", b"root"),
        (b"/dbs", b"root"),
        (b"/_page", b"page"),
        (b"/_page/", b"page"),
        (b"/_page?x=1", b"page"),
        (b"/_page/a/b", b"page"),
        (b"/_page/apis", b"page"),
        (b"/_page/api", b"api"),
        (b"/_page/api/x", b"api"),
        (b"/_pages", b"root"),
        (b"//_page", b"root"),
        (b"/%5Fpage", b"root"),
        (b"/x/../_page", b"root"),
        (b"/?/_page", b"root"),
        (b"http://localhost/_page/x", b"page"),
        (b"http://localhost/dbs", b"root"),
        (b"http://localhost/_pages", b"root"),
        (b"*", b"root"),
    ],
)
def test_a_prefix_takes_itself_and_what_is_below_it(
    serve_listeners: Serve, target: bytes, place: bytes
) -> None:
    client = serve_listeners([HttpSite(PREFIXES.handle, PREFIXES.admit)]).connect()
    method = b"OPTIONS" if target == b"*" else b"GET"
    assert client.send(b"%b %b HTTP/1.1\r\n\r\n" % (method, target)).read().body == place


def test_each_place_has_its_own_gate(serve_listeners: Serve) -> None:
    running = serve_listeners([HttpSite(PREFIXES.handle, PREFIXES.admit)])
    post = b"POST %b HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    assert running.connect().send(post % b"/_page/api").read().status == 401
    client = running.connect().send(post % b"/_page")
    assert client.read_head()[0] == 100
    assert client.send(b"hello").read().body == b"page"


@pytest.mark.parametrize("prefix", [b"", b"/", b"_page", b"/_page/", b"/_page?"])
def test_what_is_no_prefix_is_refused(prefix: bytes) -> None:
    with pytest.raises(ValueError, match="is no prefix"):
        Prefixes(Place(named(b"root")), {prefix: Place(named(b"page"))})
