"""The change feed over REST: `GET …/docs` with `A-IM`, or `POST …/docs` with a query that filters the changes.

The place in the feed travels as the etag of the answer, which a client sends back as If-None-Match. An answer of
latest versions holds items, or, for a client that names the wire format, objects with `current` and `metadata`; one of
all versions and deletes holds objects with `current`, `previous` and `metadata`.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from pleiad.engine import session
from pleiad.engine.container import Container
from pleiad.engine.feed import changes, versions
from pleiad.engine.feed.changes import ChangePage, Origin
from pleiad.engine.feed.filter import ChangeFilter
from pleiad.engine.feed.image import current_image, previous_image
from pleiad.engine.feed.versions import VersionPage
from pleiad.heads.http.query_body import query_of
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.failures import VERSIONS_START
from pleiad.heads.nosql.items import container_of, scope
from pleiad.heads.nosql.render import feed_body, items_answer
from pleiad.item.body import load, splice
from pleiad.keys.range import EpkRange
from pleiad.query import compile_turn
from pleiad.query.pace import Pace
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response
from pleiad.store.rows import Row, Verb, Version
from pleiad.values.undefined import UNDEFINED

_LATEST = ("incremental feed", "incremental-feed", "incremental")
_ALL_VERSIONS = ("full-fidelity feed", "full fidelity feed")
_WIRE_FORMAT = b"x-ms-cosmos-changefeed-wire-format-version"
_WIRE_FORMAT_KNOWN = "2021-09-15"
_NOW = "*"


async def page(call: Call) -> Response:
    """The next changes of a container, of one of its ranges or of one partition key; 304 when there are none."""
    container = await container_of(call)
    level = call.consistency()
    span = scope(call, container)
    session.check_span(call.session(level), container, span)
    mode = call.text(b"a-im").strip().lower()
    with Pace.of_request(call.limits) as pace:
        wanted = await _filter(call, container, pace)
        if mode in _LATEST:
            return await _latest_page(call, container, span, level.read_multiplier, wanted)
        if mode in _ALL_VERSIONS:
            return await _versions_page(call, container, span, level.read_multiplier, wanted)
    raise BAD_HEADER(
        name="A-IM",
        value=call.text(b"a-im")[:100],
        hint=" It must be 'Incremental Feed' or 'Full-Fidelity Feed'.",
    )


async def _filter(call: Call, container: Container, pace: Pace) -> ChangeFilter | None:
    """The filter in the body of a request, if it has one."""
    if call.method != "POST":
        return None
    text, parameters, body = await query_of(call)
    on_previous = body.get("enableQueryOnPreviousImage") is True
    async with compile_turn(pace, text):
        return await pace.run(ChangeFilter, container, text, parameters, on_previous, pace)


def _place(call: Call) -> str:
    """The place a client goes on from, `*` for now, or nothing."""
    return call.text(b"if-none-match").strip().strip('"')


def _names_wire_format(call: Call) -> bool:
    """Whether a client asks for items apart from their metadata, in the one form there is."""
    wire_format = call.text(_WIRE_FORMAT)
    if wire_format not in ("", _WIRE_FORMAT_KNOWN):
        raise BAD_HEADER(
            name=_WIRE_FORMAT.decode(), value=wire_format[:100], hint=f" It must be {_WIRE_FORMAT_KNOWN}."
        )
    return bool(wire_format)


async def _latest_page(
    call: Call, container: Container, span: EpkRange, multiplier: int, wanted: ChangeFilter | None
) -> Response:
    is_enveloped = _names_wire_format(call)
    place = _place(call)
    origin = Origin.NOW if place == _NOW else Origin.BEGINNING
    found = await changes.page(
        container,
        span,
        "" if place == _NOW else place,
        origin,
        _since(call),
        call.page_items(),
        multiplier,
        call.lane,
        wanted,
    )
    show = _enveloped if is_enveloped else _with_lsn
    texts = container.render_all(found.rows)
    members = [show(text, row) for text, row in zip(texts, found.rows, strict=True)]
    return _answer(call, container, found, members)


def _with_lsn(text: bytes, row: Row) -> bytes:
    return splice(text, b',"_lsn":%d}' % row.lsn)


def _enveloped(text: bytes, row: Row) -> bytes:
    """A latest version apart from what is told about it: not what kind of change it was, since several may be one."""
    return b'{"current":%b,"metadata":{"lsn":%d,"crts":%d}}' % (text, row.lsn, row.ts)


async def _versions_page(
    call: Call, container: Container, span: EpkRange, multiplier: int, wanted: ChangeFilter | None
) -> Response:
    _names_wire_format(call)
    place = _place(call)
    if call.text(b"if-modified-since"):
        raise VERSIONS_START(origin="a time")
    if not place:
        raise VERSIONS_START(origin="the beginning")
    found = await versions.page(
        container,
        span,
        "" if place == _NOW else place,
        call.page_items(),
        multiplier,
        call.lane,
        wanted,
    )
    members = [_entry(container, version) for version in found.versions]
    return _answer(call, container, found, members)


def _answer(
    call: Call, container: Container, found: ChangePage | VersionPage, members: list[bytes]
) -> Response:
    more = (("etag", f'"{found.place}"'), ("x-ms-item-count", str(len(members))))
    status, body = 304, b""
    if members or found.has_more:
        status, body = 200, feed_body(container.resource.rid, "Documents", members, len(members))
    call.answer_bytes = len(body)
    return items_answer(status, call, container, found.partition, found.charge.ru, call.key, body, more=more)


def _entry(container: Container, version: Version) -> bytes:
    """One change: the item now, what happened, and where it was deleted the item before.

    Of a replacement the service tells by which LSN the version before it goes, and clients take no more than that.
    """
    metadata: dict[str, Any] = {
        "operationType": version.verb.value,
        "lsn": version.lsn,
        "crts": version.ts,
    }
    if version.previous_lsn:
        metadata["previousImageLSN"] = version.previous_lsn
    if version.verb is Verb.DELETE:
        metadata["timeToLiveExpired"] = version.is_expiry
        metadata["id"] = version.id
        metadata["partitionKey"] = _key_by_path(container, load(version.previous_body))
        current = b"{}"
    else:
        image = current_image(version)
        assert image is not None
        current = container.render(image)
    entry = b'{"current":' + current
    if version.verb is Verb.DELETE:
        before = previous_image(version)
        assert before is not None
        entry += b',"previous":' + container.render(before)
    return entry + b',"metadata":' + orjson.dumps(metadata) + b"}"


def _key_by_path(container: Container, item: dict[str, Any]) -> dict[str, Any]:
    """The partition key of an item, each value under its path; what the item does not have is left out."""
    values = zip(container.key.paths, container.key.extract(item), strict=True)
    return {path.removeprefix("/"): value for path, value in values if value is not UNDEFINED}


def _since(call: Call) -> float:
    """The moment a client wants to start from, in seconds since the epoch."""
    given = call.text(b"if-modified-since")
    if not given:
        return 0.0
    try:
        return parsedate_to_datetime(given).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        raise BAD_HEADER(name="If-Modified-Since", value=given[:100], hint="") from None
