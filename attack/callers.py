"""Who sends a request: the ways a caller proves who it is, from the master key down to nothing at all."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import quote

EMULATOR_KEY_ID = "CosmosEmulatorPrimaryMaster"


def signed_parts(segments: Sequence[str]) -> tuple[str, str]:
    """The resource type and link that a client signs for a path by names."""
    if not segments:
        return "", ""
    if segments[0] == "offers":
        return "offers", "".join(segments[1:]).lower()
    if len(segments) == 6 and segments[4] == "operations":
        segments = segments[:4]
    if len(segments) % 2:
        return segments[-1], "/".join(segments[:-1])
    return segments[-2], "/".join(segments)


def signature(key: str, method: str, kind: str, link: str, date: str) -> str:
    """The authorization header of a request signed with a key."""
    text = f"{method.lower()}\n{kind.lower()}\n{link}\n{date.lower()}\n\n"
    digest = hmac.digest(base64.b64decode(key), text.encode("utf-8", "surrogatepass"), "sha256")
    return quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="")


@dataclass(frozen=True, slots=True)
class Key:
    """A caller who signs every request: with the master key, the read-only one, or one the server never had."""

    name: str
    key: str

    def headers(self, method: str, segments: Sequence[str]) -> dict[str, str]:
        """The headers that prove who asks for a path by names."""
        return self.headers_for(method, *signed_parts(segments))

    def headers_for(self, method: str, kind: str, link: str) -> dict[str, str]:
        """The headers for any resource type and link, also such as no honest client signs."""
        date = formatdate(time.time(), usegmt=True)
        proof = signature(self.key, method, kind, link, date)
        return {"x-ms-date": date, "authorization": proof, "x-ms-version": "2020-07-15"}


@dataclass(frozen=True, slots=True)
class Bearer:
    """A caller who shows the same text each time: a resource token, an identity token, or no proof at all."""

    name: str
    authorization: str

    def headers(self, method: str, segments: Sequence[str]) -> dict[str, str]:
        """The headers of any request."""
        fields = {"x-ms-date": formatdate(time.time(), usegmt=True), "x-ms-version": "2020-07-15"}
        if self.authorization:
            fields["authorization"] = self.authorization
        return fields


Caller = Key | Bearer


def identity(master_key: str, lifetime_seconds: int = 3600, encoded: bool = True) -> Bearer:
    """The emulators' identity token, percent-encoded as .NET and Java send it, or plain as Python does."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    now = int(time.time())
    claims = {"aud": "https://localhost", "iat": now, "nbf": now, "exp": now + lifetime_seconds}
    proof = base64.urlsafe_b64encode(master_key.encode()).decode().rstrip("=")
    jwt = f"{part({'typ': 'JWT', 'alg': 'RS256', 'kid': EMULATOR_KEY_ID})}.{part(claims)}.{proof}"
    text = f"type=aad&ver=1.0&sig={jwt}"
    return Bearer("identity", quote(text, safe="") if encoded else text)
