"""Who asks, and what a request touches: found out from its authorization header when the desk wants to know."""

from __future__ import annotations

from collections.abc import Sequence

from pleiad.engine.access import Caller, Grant, Target
from pleiad.engine.engine import Engine
from pleiad.heads.nosql import grants
from pleiad.heads.nosql.auth import Authenticator, ResourceToken, SignedParts
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.direct import addresses
from pleiad.item import rid as rids

_VERBS = {method: method.lower() for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")}


class HeaderCallers:
    """Callers known by the authorization header of their requests."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def proof(self, call: Call) -> Caller | ResourceToken:
        """What the header proves, made once; 401 or 403 from the table when it proves nothing."""
        request = call.request
        known = self._authenticator.known(request.proof)
        if known is not None:
            return known
        plain_date = request.header(b"date") if b"date" in request.headers else ""
        return self._authenticator.authenticate(
            request.header(b"authorization"), request.header(b"x-ms-date"), plain_date, _signed_parts(call)
        )

    async def identify(self, call: Call, engine: Engine) -> Caller:
        proof = self.proof(call)
        if isinstance(proof, Caller):
            return proof
        binding = grants.Binding.from_json(proof.binding)
        return await grants.holder(engine, proof.permission_rid, binding, proof.ends_at)

    async def target(self, call: Call, engine: Engine, grant: Grant) -> Target:
        if call.segments == addresses.PATH:
            return addresses.target(call, engine)
        return await grants.target_of(call, engine, grant)


def _signed_parts(call: Call) -> SignedParts:
    """What the client signed for this path: the type and link of the resource, or of the parent of a feed."""
    segments = call.segments
    if segments == addresses.PATH:
        segments = addresses.resolved(call) or segments
    if len(segments) == 6 and segments[4] == "operations":
        segments = segments[:4]
    if len(segments) % 2:
        kind, link = segments[-1], "/".join(segments[:-1])
    else:
        kind, link = (segments[-2] if segments else ""), "/".join(segments)
    if kind == "offers":
        link = by_rid = segments[1].lower() if len(segments) > 1 else ""
    else:
        by_rid = _last_rid(segments) or link
    return SignedParts(_VERBS.get(call.method, ""), kind.lower(), link, by_rid)


def _last_rid(segments: Sequence[str]) -> str | None:
    """What a client signs of a path that is rids throughout: the last one, which is found in its own place only.

    None for any other path, whose last name alone would say nothing of its place.
    """
    names = segments[1::2]
    if not names or not rids.looks_like_database_rid(names[0]):
        return None
    for name, size_bytes in zip(names, rids.PATH_SIZES_BYTES, strict=False):
        if not rids.is_rid(name, size_bytes):
            return None
    return names[-1].lower() if len(names) <= len(rids.PATH_SIZES_BYTES) else None
