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
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from hmac import compare_digest
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from pleiad import errors
from pleiad.account import signature
from pleiad.account.keys import AccountKeys, KeysInForce
from pleiad.account.signature import MASTER_TOKEN
from pleiad.catalog.resource import Resource
from pleiad.engine import access
from pleiad.engine.access import Caller, Role
from pleiad.heads.nosql.failures import CLOCK_SKEW
from pleiad.limits import Limits

_MASTER_ENCODED = b"type%3Dmaster%26ver%3D1.0%26sig%3D"
"""The start of a master-key token as the clients send it, percent-encoded."""
_MASTER_ENCODED_BYTES = len(_MASTER_ENCODED)
_VERBS = {name: name.lower().encode() for name in ("GET", "POST", "PUT", "PATCH", "DELETE")}
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
    ends_at: float


class Proof(NamedTuple):
    """An authentication, as long as the keys that proved it are in force."""

    keys: AccountKeys
    who: Caller | ResourceToken


class Authenticator:
    """Checks authorization headers against the keys of the account.

    Everything it remembers follows from the keys in force and goes with them: a key that is none any more proves
    nothing from that moment on, and neither do the resource tokens it signed.
    """

    def __init__(self, in_force: KeysInForce, limits: Limits) -> None:
        self._limits = limits
        self._skew_seconds = limits.clock_skew_minutes * 60
        self._renew(in_force.keys)
        in_force.watch(self._renew)

    def _renew(self, keys: AccountKeys) -> None:
        self._keys = keys
        self._secrets = [
            (key.secret, access.MASTER if key.name.is_master else access.READ_ONLY) for key in keys.all
        ]
        self._master_pads = [signature.pads(key.secret) for key in keys.masters]
        # Keys of their own, so that no signature of a request is ever one of a token. The primary's signs new ones.
        self._token_keys = [hmac.digest(key.secret, b"resource tokens", "sha256") for key in keys.masters]
        self.master_proof = Proof(keys, access.MASTER)
        """What the gate leaves in a request that the master key has signed."""
        self._proven: set[tuple[str, bytes, bytes, bytes]] = set()
        """Signed feeds: the queries and creates that a client sends to a container in one second are all alike."""

    def proves_master_key(self, method: str, raw_path: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request is what nearly all are: a path by plain names, signed with the master key.

        The short way of every request, on bytes as they came. False proves nothing: `authenticate` then decides,
        and says what is wrong.
        """
        token, date = headers.get(b"authorization"), headers.get(b"x-ms-date")
        if token is None or date is None or b"date" in headers or raw_path.find(b"%") >= 0:
            return False
        signed_date, moment = _dated(date)
        is_untimely = moment is None or abs(time.time() - moment) > self._skew_seconds
        link = raw_path.strip(b"/")
        parent, _, kind = link.rpartition(b"/")
        is_feed = link.count(b"/") % 2 == 0
        if is_feed:
            if not is_untimely and (method, raw_path, token, date) in self._proven:
                return True
            link = parent
        else:
            kind = parent.rpartition(b"/")[2]
        text = b"\n".join((_VERBS.get(method) or method.lower().encode(), kind, link, signed_date, b"", b""))
        if not self._is_signed(text, token):
            return False
        if is_untimely:
            self._check_clock(date.decode("latin-1"))
        if is_feed:
            if len(self._proven) >= _PROVEN_MAX:
                self._proven.clear()
            self._proven.add((method, raw_path, token, date))
        return True

    def proves_item(self, verb: bytes, path: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """The same of an operation on an item, whose path has one slash before each name and none at its end, by a
        request with no header `date`. The verb is in small letters."""
        token, date = headers.get(b"authorization"), headers.get(b"x-ms-date")
        if token is None or date is None or path.find(b"%") >= 0:
            return False
        signed_date, moment = _dated(date)
        if moment is None or abs(time.time() - moment) > self._skew_seconds:
            return False
        return self._is_signed(b"%b\ndocs\n%b\n%b\n\n" % (verb, path[1:], signed_date), token)

    def _is_signed(self, text: bytes, token: bytes) -> bool:
        """Whether a token, percent-encoded as clients send it, is that of a master key for a text."""
        if not token.startswith(_MASTER_ENCODED):
            return False
        given = (
            token[_MASTER_ENCODED_BYTES:].replace(b"%3D", b"=").replace(b"%2F", b"/").replace(b"%2B", b"+")
        )
        for inner, outer in self._master_pads:
            # `signature.proof`, without the call and with the key hashed in beforehand.
            first, second = inner.copy(), outer.copy()
            first.update(text)
            second.update(first.digest())
            if compare_digest(b2a_base64(second.digest(), newline=False), given):
                return True
        return False

    def known(self, proof: object) -> Caller | ResourceToken | None:
        """Who was proven before the body of a request was read, while the keys that proved it are in force."""
        return proof.who if isinstance(proof, Proof) and proof.keys is self._keys else None

    def proof_of(self, who: Caller | ResourceToken) -> Proof:
        """What is kept of an authentication with the keys of now."""
        return Proof(self._keys, who)

    def authenticate(
        self, header: str, date: str, plain_date: str, signed: SignedParts
    ) -> Caller | ResourceToken:
        """The caller a request comes from; 401 or 403 from the table when it proves nothing."""
        if not header:
            raise errors.UNAUTHORIZED(
                reason="Required Header authorization is missing. Ensure a valid Authorization token is passed."
            )
        token = _unquoted(header)
        if token.startswith(MASTER_TOKEN):
            return self._master(token[len(MASTER_TOKEN) :], date, plain_date, signed)
        if token.startswith("type=resource&"):
            return self._resource(token)
        if token.startswith("type=aad&"):
            return self._identity(token)
        raise errors.UNAUTHORIZED(
            reason="The input authorization token can't serve the request: its form is not one of type=master, "
            "type=resource or type=aad."
        )

    def _master(self, signed_with: str, date: str, plain_date: str, signed: SignedParts) -> Caller:
        given = signed_with.encode("latin-1", "replace")
        verb, resource_type, link, link_by_rid = signed
        texts = [
            signature.signed_text(verb, resource_type, signed_link, date, plain_date)
            for signed_link in ((link,) if link == link_by_rid else (link, link_by_rid))
        ]
        for secret, caller in self._secrets:
            for text in texts:
                if compare_digest(signature.proof(secret, text.encode("utf-8", "surrogatepass")), given):
                    self._check_clock(date or plain_date)
                    return caller
        payload = texts[0].replace("\n", "\\n")
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
        if abs(time.time() - moment) > self._skew_seconds:
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
        is_key = any(compare_digest(proof, key.text.encode()) for key in self._keys.masters)
        genuine = key_id == _EMULATOR_KEY_ID and is_key
        if not genuine or not isinstance(expires, int | float):
            raise errors.UNAUTHORIZED(reason="The AAD token is not signed by a key of this account.")
        if expires < time.time() - self._limits.clock_skew_minutes * 60:
            raise errors.UNAUTHORIZED(reason="The AAD token has expired.")
        return Caller(Role.IDENTITY, ends_at=float(expires))

    # -- resource tokens -------------------------------------------------------------------------

    def issue(self, permission: Resource, binding: Any, seconds: int) -> str:
        """A token that carries the right of a permission for so many seconds, for what its link means now."""
        claims = {"p": permission.rid, "b": binding, "e": int(time.time()) + seconds}
        payload = b64encode(orjson.dumps(claims))
        proof = signature.proof(self._token_keys[0], payload)
        return f"type=resource&ver=1&sig={proof.decode()};{payload.decode()};"

    def _resource(self, token: str) -> ResourceToken:
        try:
            proof, payload, _ = token.partition("sig=")[2].split(";")
            given, signed = proof.encode("ascii"), payload.encode("ascii")
            genuine = any(compare_digest(signature.proof(key, signed), given) for key in self._token_keys)
            claims = orjson.loads(b64decode(payload, validate=True)) if genuine else {}
        except (ValueError, Base64Error):
            genuine = False
        if not genuine:
            raise errors.UNAUTHORIZED(reason="The resource token was not issued by this account.")
        if claims["e"] < time.time():
            raise errors.FORBIDDEN(
                reason="The resource token has expired; read its permission again for a new one."
            )
        return ResourceToken(claims["p"], claims["b"], claims["e"])


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


@lru_cache(maxsize=256)
def _dated(date: bytes) -> tuple[bytes, float | None]:
    """A date header as it is signed, and the time that it means."""
    return date.lower(), _moment(date.decode("latin-1"))


def _from_base64url(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
