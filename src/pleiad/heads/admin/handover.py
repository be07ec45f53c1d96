"""The link that works once: how the key gets from the terminal of `pleiad serve` into the page in a browser.

Whoever started the server sees a link with a token in its fragment; the page sends the token back and gets the key.

Invariants
- a token opens the key once, within `handover_seconds`, and a new token takes the place of the one before;
- the server keeps a hash of the token and nothing else, and no log, answer or error has either;
- only a page of this very server gets an answer: the token comes in a header of its own, which a page of another origin
  may not send, `Origin` is the server's own, and `Host` was found to be one of its names before this runs;
- who guesses is refused after a few tries, before anything is compared.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import time
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import orjson

from pleiad import errors
from pleiad.account.keys import KeysInForce
from pleiad.heads.http.call import HttpCall
from pleiad.limits import Limits
from pleiad.server.http.message import Response

PATH = b"/_pleiad/handover"
TOKEN_HEADER = b"x-pleiad-handover"
FRAGMENT = "handover"
_TOKEN_BYTES = 32
_HASH_BYTES = 32
_TOKEN_CHARACTERS_MAX = 128
_MINUTE_SECONDS = 60.0
_HEADERS = (
    b"Content-Type: application/json\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
)


class Handover:
    """Hands the primary master key over to whoever brings the token, once."""

    def __init__(
        self,
        keys: KeysInForce,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        shared: Path | None = None,
    ) -> None:
        self._keys = keys
        self._limits = limits
        self._clock = clock
        self._hash: bytes | None = None
        self._ends_at = 0.0
        self._shared = shared
        """Where worker processes have the hash in common; the clock is that of the machine then."""
        self._wrong_at: deque[float] = deque(maxlen=limits.handover_tries_per_minute)

    def new_token(self) -> str:
        """A token for a link; the one before opens nothing any more."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._hash = sha256(token.encode()).digest()
        self._ends_at = self._clock() + self._limits.handover_seconds
        if self._shared is not None:
            self._shared.write_bytes(self._hash + str(self._ends_at).encode())
        return token

    def _look(self) -> None:
        """Takes what worker processes have in common."""
        if self._shared is None:
            return
        try:
            kept = self._shared.read_bytes()
        except FileNotFoundError:
            self._hash = None
            return
        self._hash, self._ends_at = kept[:_HASH_BYTES], float(kept[_HASH_BYTES:])

    def _use_up(self) -> bool:
        """Ends the token; False where another worker process has ended it in this moment."""
        self._hash = None
        if self._shared is None:
            return True
        try:
            self._shared.unlink()
        except FileNotFoundError:
            return False
        return True

    def exchange(self, token: str) -> str:
        """The key for the token; raises for a wrong, used or old one, and for everybody after many wrong tries."""
        now = self._clock()
        oldest = self._wrong_at[0] if len(self._wrong_at) == self._wrong_at.maxlen else None
        if oldest is not None and now - oldest < _MINUTE_SECONDS:
            wait_seconds = _MINUTE_SECONDS - (now - oldest)
            raise errors.TOO_MANY_HANDOVERS(retry_after_ms=int(wait_seconds * 1000) + 1)
        self._look()
        given = sha256(token[:_TOKEN_CHARACTERS_MAX].encode("latin-1", "replace")).digest()
        expected, is_old = self._hash or bytes(len(given)), now >= self._ends_at
        is_right = hmac.compare_digest(given, expected) and self._hash is not None and not is_old
        if not is_right or not self._use_up():
            self._wrong_at.append(now)
            raise errors.UNAUTHORIZED(
                reason="This link has been used, is too old, or is not the last one that was printed. Enter the key, "
                "or start the server again for a new link."
            )
        return self._keys.keys.primary.text


def answer(call: HttpCall, handover: Handover | None) -> Response:
    """The key, to the page of this server that brings the token."""
    if handover is None:
        raise errors.UNAUTHORIZED(
            reason="Links work only where the server listens on loopback; enter the key."
        )
    _check_same_origin(call)
    if call.request.body:
        raise errors.BAD_REQUEST(reason="The token comes in the header x-pleiad-handover; there is no body.")
    return Response(200, _HEADERS, orjson.dumps({"key": handover.exchange(call.text(TOKEN_HEADER))}))


def _check_same_origin(call: HttpCall) -> None:
    """Refuses what no page of this server sends: another origin, none, or another machine."""
    request = call.request
    scheme = "https" if request.secure else "http"
    own = f"{scheme}://{call.text(b'host')}".lower()
    site = call.text(b"sec-fetch-site")
    if not call.text(b"host") or call.text(b"origin").lower() != own or site not in ("", "same-origin"):
        raise errors.UNAUTHORIZED(reason="Only the page that this server sends may use a link.")
    if request.peer and not ipaddress.ip_address(request.peer.partition("%")[0]).is_loopback:
        raise errors.UNAUTHORIZED(reason="A link works on the machine of the server only; enter the key.")
