"""A request of this protocol at the desk: who it says it is from, what it touches, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence

from pleiad.engine.access import Caller, Grant, Target
from pleiad.engine.desk import Destination
from pleiad.engine.engine import Engine
from pleiad.heads.nosql import grants
from pleiad.heads.nosql.auth import Authenticator, ResourceToken, SignedParts
from pleiad.heads.nosql.call import Call
from pleiad.item import rid as rids
from pleiad.limits import Limits
from pleiad.server.http.message import Request

_VERBS = {method: method.lower() for method in ("GET", "POST", "PUT", "PATCH", "DELETE")}


class SignedCall(Call):
    """A call whose authorization header proves who asks."""

    __slots__ = ("_authenticator",)

    def __init__(
        self,
        request: Request,
        raw_path: bytes,
        segments: list[str],
        activity_id: str,
        began_at: float,
        limits: Limits,
        authenticator: Authenticator,
    ) -> None:
        super().__init__(request, raw_path, segments, activity_id, began_at, limits)
        self._authenticator = authenticator

    def proof(self) -> Caller | ResourceToken:
        """What the header proves, made once; 401 or 403 from the table when it proves nothing."""
        request = self.request
        known = self._authenticator.known(request.proof)
        if known is not None:
            return known
        plain_date = request.header(b"date") if b"date" in request.headers else ""
        return self._authenticator.authenticate(
            request.header(b"authorization"), request.header(b"x-ms-date"), plain_date, self._signed_parts()
        )

    async def identify(self, engine: Engine) -> Caller:
        proof = self.proof()
        if isinstance(proof, Caller):
            return proof
        return await grants.holder(engine, proof.permission_rid, grants.Binding.from_json(proof.binding))

    async def target(self, engine: Engine, grant: Grant) -> Target:
        return await grants.target_of(self, engine, grant)

    def destination(self) -> Destination:
        segments = self.segments
        if len(segments) < 2 or segments[0] != "dbs":
            return Destination()
        container = segments[3] if len(segments) > 3 and segments[2] == "colls" else ""
        range_id = self.text(b"x-ms-documentdb-partitionkeyrangeid").split(",")[-1]
        return Destination(segments[1], container, range_id)

    def _signed_parts(self) -> SignedParts:
        """What the client signed for this path: the type and link of the resource, or of the parent of a feed."""
        segments = self.segments
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
        return SignedParts(_VERBS.get(self.method, ""), kind.lower(), link, by_rid)


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
