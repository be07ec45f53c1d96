"""The names that a server answers to: what a request may have as its `Host`.

A page in a browser can make its own name resolve to this machine ("DNS rebinding") and would then be taken for a page
of this server. Its requests carry its name, so names that are not the server's own are refused: only loopback names
and addresses, the address that is listened on, the name of the machine, and the names the operator gives are taken. An
address cannot be made to mean another machine, so a server that listens on all addresses takes any of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from pleiad.errors import PleiadError
from pleiad.server.http.failures import UNKNOWN_HOST
from pleiad.server.http.message import Request
from pleiad.server.machine import machine_names

_HOST = re.compile(rb"(\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z._-]+)(?::([0-9]{0,5}))?")
_KNOWN_MAX = 1_000
_SHOWN_CHARACTERS = 100
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostNames:
    """Decides whether a request was sent to a name of this server."""

    def __init__(self, bound: str, given: Iterable[str] = (), region: str | None = None) -> None:
        self._takes_addresses = bound in _WILDCARDS
        self._region = region
        names = {_normal(name) for name in (bound, *given, region, *machine_names()) if name}
        self._names = {name for name in names if isinstance(name, str)}
        self._addresses = {name for name in names if not isinstance(name, str)}
        self.known: set[bytes | None] = {None}
        """Hosts that were found to be this server's, as clients wrote them: the short way of nearly every request.

        A request without one, which HTTP/1.0 allows and no browser sends, is taken.
        """

    def check(self, request: Request) -> None:
        """Raises when the host of a request is none of this server's."""
        host = request.headers.get(b"host")
        if host not in self.known:
            self._check(host or b"")
            if len(self.known) >= _KNOWN_MAX:
                self.known.clear()
                self.known.add(None)
            self.known.add(host)
        if request.target[:1] != b"/" and b"://" in request.target:
            # The absolute form names the host a second time, and this one counts.
            self._check(request.target.partition(b"://")[2].partition(b"/")[0])

    def region(self, host: str) -> str:
        """The host and port of the account's region for who asked by `host`: the same, unless another was given."""
        match = _HOST.fullmatch(host.strip().encode("ascii", "replace")) if self._region else None
        if not self._region or match is None:
            return host
        name = self._region.removeprefix("[").removesuffix("]")
        name = f"[{name}]" if ":" in name else name
        return name if match[2] is None else f"{name}:{match[2].decode()}"

    def _check(self, host: bytes) -> None:
        match = _HOST.fullmatch(host.strip())
        if match is None or (match[2] and int(match[2]) > 65_535):
            raise _refusal(host)
        name = _normal(match[1].decode("ascii"))
        if isinstance(name, str):
            is_own = name == "localhost" or name.endswith(".localhost") or name in self._names
        else:
            is_own = self._takes_addresses or name.is_loopback or name in self._addresses
        if not is_own:
            raise _refusal(host)


def is_host_name(text: str) -> bool:
    """Whether a text can be given as a name: a name or an address, without a port."""
    match = _HOST.fullmatch(text.encode("utf-8", "replace")) if text.isascii() else None
    return (match is not None and match[2] is None) or not isinstance(_normal(text), str)


def _normal(name: str) -> str | Address:
    """A name in small letters without the dot of its end, or the address it is; a zone says nothing here."""
    text = name.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return name.lower().removesuffix(".")
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def _refusal(host: bytes) -> PleiadError:
    shown = host.decode("ascii", "replace")[:_SHOWN_CHARACTERS]
    return UNKNOWN_HOST(host=shown)
