"""The change feed over REST: `GET …/docs` with `A-IM`.

The place in the feed travels as the etag of the answer, which a client sends back as If-None-Match.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from pleiad import errors
from pleiad.engine import changes, session
from pleiad.engine.changes import Origin
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of, scope
from pleiad.heads.nosql.render import feed_body, item_headers
from pleiad.item.body import splice
from pleiad.server.message import Response

_LATEST = ("incremental feed", "incremental-feed", "incremental")
_ALL_VERSIONS = "full-fidelity feed"


async def page(call: Call) -> Response:
    """The next changes of a container, of one of its ranges or of one partition key; 304 when there are none."""
    container = await container_of(call)
    level = call.consistency()
    mode = call.text(b"a-im").lower()
    if mode == _ALL_VERSIONS:
        raise errors.UNSUPPORTED(what="The change feed of all versions and deletes")
    if mode not in _LATEST:
        raise errors.BAD_HEADER(name="A-IM", value=call.text(b"a-im"), hint="")
    place = call.text(b"if-none-match").strip('"')
    origin = Origin.NOW if place == "*" else Origin.BEGINNING
    since = _since(call)
    span = scope(call, container)
    session.check_span(call.session_token(level), container, span)
    found = await changes.page(
        container,
        span,
        "" if place == "*" else place,
        origin,
        since,
        call.page_items(),
        level.read_multiplier,
    )
    block = item_headers(call, container, found.partition, found.charge.ru)
    block += f'etag: "{found.place}"\r\nx-ms-item-count: {len(found.rows)}\r\n'
    if not found.rows:
        return Response(304, block.encode("latin-1"))
    texts = container.render_all(found.rows)
    members = [splice(text, b',"_lsn":%d}' % row.lsn) for text, row in zip(texts, found.rows, strict=True)]
    body = feed_body(container.resource.rid, "Documents", members, len(members))
    return Response(200, block.encode("latin-1"), body)


def _since(call: Call) -> float:
    """The moment a client wants to start from, in seconds since the epoch."""
    given = call.text(b"if-modified-since")
    if not given:
        return 0.0
    try:
        return parsedate_to_datetime(given).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        raise errors.BAD_HEADER(name="If-Modified-Since", value=given[:100], hint="") from None
