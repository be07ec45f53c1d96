"""Authentication: the three kinds of authorization header, and the tokens of permissions.

Signatures are compared in constant time. A refused master-key signature tells the text the server signed, which
holds no secret and is what a caller needs to find its mistake.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from binascii import b2a_base64
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from pleiad import errors
from pleiad.catalog.resource import Resource
from pleiad.engine import access
from pleiad.engine.access import Caller
from pleiad.heads.nosql.failures import CLOCK_SKEW
from pleiad.limits import Limits

EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
"""The key every Cosmos DB emulator shares. It is public, so it protects nothing beyond the loopback address."""

_MASTER = "type=master&ver=1.0&sig="
_MASTER_ENCODED = b"type%3Dmaster%26ver%3D1.0%26sig%3D"
"""The start of a master-key token as the clients send it, percent-encoded."""
_PROVEN_MAX = 1_000
_EMULATOR_KEY_ID = "CosmosEmulatorPrimaryMaster"


class SignedParts(NamedTuple):
    """What a master-key signature covers, apart from the date."""

    verb: str
    resource_type: str
    link: str
    link_by_rid: str


class ResourceToken(NamedTuple):
    """A resource token that this server signed and that has not expired."""

    permission_rid: str
    binding: Any
    """What it opens, as `issue` was told."""


class Authenticator:
    """Checks authorization headers against the keys of the account."""

    def __init__(self, key: str, read_only_key: str | None, limits: Limits) -> None:
        self._key_text = key
        self._keys: list[tuple[bytes, Caller]] = [(decode_key(key), access.MASTER)]
        if read_only_key:
            self._keys.append((decode_key(read_only_key), access.READ_ONLY))
        # A key of its own, so that no signature of a request is ever one of a token.
        self._token_key = hmac.digest(self._keys[0][0], b"resource tokens", "sha256")
        self._limits = limits
        self._proven: set[tuple[str, bytes, bytes, bytes]] = set()
        """Signed feeds: the queries and creates that a client sends to a container in one second are all alike."""

    def proves_master_key(self, method: str, raw_path: bytes, headers: dict[bytes, bytes]) -> bool:
        """Whether a request is what nearly all are: a path by plain names, signed with the master key.

        The short way of every request, on bytes as they came. False proves nothing: `authenticate` then decides,
        and says what is wrong.
        """
        token, date = headers.get(b"authorization", b""), headers.get(b"x-ms-date")
        if not token.startswith(_MASTER_ENCODED) or date is None or b"date" in headers or b"%" in raw_path:
            return False
        link = raw_path.strip(b"/")
        names = link.split(b"/")
        is_feed = len(names) % 2 == 1
        if is_feed:
            if (method, raw_path, token, date) in self._proven:
                self._check_clock(date.decode("latin-1"))
                return True
            kind = names[-1]
            link = link[: -len(kind) - 1]
        else:
            kind = names[-2]
        text = b"%b\n%b\n%b\n%b\n\n" % (method.lower().encode(), kind, link, date.lower())
        given = (
            token[len(_MASTER_ENCODED) :].replace(b"%3D", b"=").replace(b"%2F", b"/").replace(b"%2B", b"+")
        )
        proof = b2a_base64(hmac.digest(self._keys[0][0], text, "sha256"), newline=False)
        if not hmac.compare_digest(proof, given):
            return False
        self._check_clock(date.decode("latin-1"))
        if is_feed:
            if len(self._proven) >= _PROVEN_MAX:
                self._proven.clear()
            self._proven.add((method, raw_path, token, date))
        return True

    def is_key(self, text: str) -> bool:
        """Whether a text is one of the account's keys, for the few who cannot sign."""
        given = text.encode("utf-8", "replace")
        return any(hmac.compare_digest(given, b64encode(key)) for key, _ in self._keys)

    def authenticate(
        self, header: str, date: str, plain_date: str, signed: SignedParts
    ) -> Caller | ResourceToken:
        """The caller a request comes from; 401 or 403 from the table when it proves nothing."""
        if not header:
            raise errors.UNAUTHORIZED(
                reason="Required Header authorization is missing. Ensure a valid Authorization token is passed."
            )
        token = _unquoted(header)
        if token.startswith(_MASTER):
            return self._master(token[len(_MASTER) :], date, plain_date, signed)
        if token.startswith("type=resource&"):
            return self._resource(token)
        if token.startswith("type=aad&"):
            return self._identity(token)
        raise errors.UNAUTHORIZED(
            reason="The input authorization token can't serve the request: its form is not one of type=master, "
            "type=resource or type=aad."
        )

    def _master(self, signature: str, date: str, plain_date: str, signed: SignedParts) -> Caller:
        given = signature.encode("latin-1", "replace")
        verb, resource_type, link, link_by_rid = signed
        head = f"{verb}\n{resource_type}\n"
        tail = f"\n{date.lower()}\n{plain_date.lower()}\n"
        for key, caller in self._keys:
            for signed_link in (link,) if link == link_by_rid else (link, link_by_rid):
                text = f"{head}{signed_link}{tail}".encode("utf-8", "surrogatepass")
                proof = b2a_base64(hmac.digest(key, text, "sha256"), newline=False)
                if hmac.compare_digest(proof, given):
                    self._check_clock(date or plain_date)
                    return caller
        payload = f"{head}{link}{tail}".replace("\n", "\\n")
        raise errors.UNAUTHORIZED(
            reason="The input authorization token can't serve the request. Please check that the expected payload is "
            f"built as per the protocol, and check the key being used. Server used the following payload to sign: "
            f"'{payload}'"
        )

    def _check_clock(self, date: str) -> None:
        moment = _moment(date)
        if moment is None:
            raise errors.UNAUTHORIZED(
                reason="The date of the request is missing or not in the RFC 1123 form; send x-ms-date."
            )
        if abs(time.time() - moment) > self._limits.clock_skew_minutes * 60:
            raise CLOCK_SKEW(given=date, now=formatdate(usegmt=True), minutes=self._limits.clock_skew_minutes)

    # -- identity tokens -------------------------------------------------------------------------

    def _identity(self, header: str) -> Caller:
        """The emulator's identity token: a JWT whose last part is the master key itself."""
        try:
            _, _, jwt = header.partition("sig=")
            first, claims, signature = jwt.split(".")
            key_id = orjson.loads(_from_base64url(first))["kid"]
            expires = orjson.loads(_from_base64url(claims))["exp"]
            proof = _from_base64url(signature)
        except (ValueError, KeyError, TypeError, Base64Error):
            raise errors.UNAUTHORIZED(reason="The AAD token is not a JWT this server can read.") from None
        genuine = key_id == _EMULATOR_KEY_ID and hmac.compare_digest(proof, self._key_text.encode())
        if not genuine or not isinstance(expires, int | float):
            raise errors.UNAUTHORIZED(reason="The AAD token is not signed by a key of this account.")
        if expires < time.time() - self._limits.clock_skew_minutes * 60:
            raise errors.UNAUTHORIZED(reason="The AAD token has expired.")
        return access.IDENTITY

    # -- resource tokens -------------------------------------------------------------------------

    def issue(self, permission: Resource, binding: Any, seconds: int) -> str:
        """A token that carries the right of a permission for so many seconds, for what its link means now."""
        claims = {"p": permission.rid, "b": binding, "e": int(time.time()) + seconds}
        payload = b64encode(orjson.dumps(claims))
        proof = b64encode(hmac.digest(self._token_key, payload, "sha256"))
        return f"type=resource&ver=1&sig={proof.decode()};{payload.decode()};"

    def _resource(self, token: str) -> ResourceToken:
        try:
            proof, payload, _ = token.partition("sig=")[2].split(";")
            wanted = b64encode(hmac.digest(self._token_key, payload.encode("ascii"), "sha256"))
            genuine = hmac.compare_digest(wanted, proof.encode("ascii"))
            claims = orjson.loads(b64decode(payload, validate=True)) if genuine else {}
        except (ValueError, Base64Error):
            genuine = False
        if not genuine:
            raise errors.UNAUTHORIZED(reason="The resource token was not issued by this account.")
        if claims["e"] < time.time():
            raise errors.FORBIDDEN(
                reason="The resource token has expired; read its permission again for a new one."
            )
        return ResourceToken(claims["p"], claims["b"])


def decode_key(key: str) -> bytes:
    """The bytes of an account key; ValueError when it is not base64."""
    try:
        decoded = b64decode(key, validate=True)
    except Base64Error:
        raise ValueError("an account key is base64 text, such as `openssl rand -base64 64` prints") from None
    if len(decoded) < 16:
        raise ValueError(
            "an account key needs at least 16 bytes; `openssl rand -base64 64` prints a good one"
        )
    return decoded


def _unquoted(header: str) -> str:
    """The token without its percent-encoding; the escapes of base64 first, since unquote is slow."""
    if "%" not in header:
        return header
    token = header.replace("%3D", "=").replace("%2F", "/").replace("%2B", "+")
    return unquote(token) if "%" in token else token


@lru_cache(maxsize=256)
def _moment(date: str) -> float | None:
    """The time a date header means; cached, since clients send the same date for a whole second."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _from_base64url(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
