"""Answers as clients read them: what is told of items, of metadata and of failures, and how HTTP has it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from time import perf_counter
from typing import Any

import orjson

from pleiad.catalog.resource import Resource
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.items import Key
from pleiad.errors import PleiadError
from pleiad.heads.nosql import session_token
from pleiad.heads.nosql.call import Call, Pairs
from pleiad.heads.nosql.failures import code_of, message_of, substatus_of
from pleiad.heads.nosql.resource_json import ascii_path, path_of, to_json
from pleiad.partition.partition import Partition
from pleiad.server.http.failures import status_of
from pleiad.server.http.message import Request, Response, render_headers


def items_answer(
    status: int,
    call: Call,
    container: Container,
    partition: Partition,
    charge_ru: float,
    key: Key | None,
    body: bytes = b"",
    *,
    etag: str = "",
    item_lsn: int = 0,
    more: Pairs = (),
) -> Response:
    """The answer of an operation on items; the desk counts the charge in it, for the key it was spent on."""
    call.charge_ru, call.container, call.key_spent, call.partition = charge_ru, container, key, partition
    told = call.form.of_items(call, container, partition, charge_ru, etag, item_lsn, more)
    return Response(status, told, body)


def undone_answer(
    status: int,
    call: Call,
    container: Container,
    partition: Partition,
    charge_ru: float,
    key: Key | None,
    body: bytes,
) -> Response:
    """The answer of a batch of which nothing was done: where it would have been, and like any failure no owner."""
    call.charge_ru, call.container, call.key_spent, call.partition = charge_ru, container, key, partition
    lsn, number = partition.lsn, container.resource.number
    pairs = [
        ("Content-Type", "application/json"),
        ("x-ms-request-charge", f"{charge_ru:.2f}"),
        ("x-ms-activity-id", call.activity_id),
        ("x-ms-session-token", session_token.written(partition.range_id, number, lsn)),
        ("lsn", str(lsn)),
        ("x-ms-documentdb-partitionkeyrangeid", partition.range_id),
        ("x-ms-request-duration-ms", _milliseconds_since(call.began_at)),
    ]
    return Response(status, call.form.of_pairs(pairs), body)


class HttpLines:
    """The form of HTTP: header lines, from one template."""

    def of_items(
        self,
        call: Call,
        container: Container,
        partition: Partition,
        charge_ru: float,
        etag: str,
        item_lsn: int,
        more: Pairs,
    ) -> bytes:
        block = _items_lines(container, partition, charge_ru, call.activity_id, call.began_at)
        if etag:
            block += _item_lines(call.request, call.raw_path, etag, item_lsn)
        if more:
            block += _lines(more)
        return block.encode("latin-1")

    def of_page(
        self,
        activity_id: str,
        began_at: float,
        container: Container,
        partition: Partition,
        charge_ru: float,
        more: Pairs,
    ) -> bytes:
        """What the answer to a query tells of its page."""
        block = _items_lines(container, partition, charge_ru, activity_id, began_at)
        return (block + _lines(more)).encode("latin-1")

    def of_item(
        self,
        request: Request,
        activity_id: str,
        began_at: float,
        container: Container,
        partition: Partition,
        charge_ru: float,
        etag: str,
        item_lsn: int,
    ) -> bytes:
        """What the answer to a point read or a create tells of its item; `_items_lines` and `_item_lines` in one."""
        range_id, lsn = partition.range_id, partition.lsn
        origin = _origin(request.secure, request.headers.get(b"host", b""))
        return (
            f"Content-Type: application/json\r\n"
            f"x-ms-request-charge: {charge_ru:.2f}\r\n"
            f"x-ms-activity-id: {activity_id}\r\n"
            f"x-ms-session-token: {range_id}:{container.resource.number}#{lsn}\r\n"
            f"lsn: {lsn}\r\n"
            f"{_partition_lines(container, partition)}"
            f"etag: {etag}\r\nx-ms-item-lsn: {item_lsn}\r\n"
            f"Content-Location: {origin}{request.target.decode('latin-1')}\r\n"
            f"x-ms-request-duration-ms: {(perf_counter() - began_at) * 1000:.3f}\r\n"
        ).encode("latin-1")

    def of_pairs(self, pairs: Pairs) -> bytes:
        return render_headers(pairs)

    def failure(self, error: PleiadError, activity_id: str, began_at: float) -> Response:
        pairs = [("Content-Type", "application/json"), *failure_pairs(error, activity_id, began_at)]
        return Response(status_of(error), self.of_pairs(pairs), failure_body(error, activity_id))


class SimpleTokenLines(HttpLines):
    """The same for a client that knows session tokens in their old form only."""

    def of_items(
        self,
        call: Call,
        container: Container,
        partition: Partition,
        charge_ru: float,
        etag: str,
        item_lsn: int,
        more: Pairs,
    ) -> bytes:
        told = super().of_items(call, container, partition, charge_ru, etag, item_lsn, more)
        return _TOKEN_LINE.sub(
            lambda line: session_token.simple(line[0].decode("latin-1")).encode("latin-1"), told
        )

    def of_pairs(self, pairs: Pairs) -> bytes:
        return super().of_pairs([(name, _simple(name, text)) for name, text in pairs])


_TOKEN_NAME = "x-ms-session-token"
_TOKEN_LINE = re.compile(rb"(?m)^x-ms-session-token: .*")


def _simple(name: str, text: str) -> str:
    return session_token.simple(text) if name == _TOKEN_NAME else text


HTTP_LINES = HttpLines()
SIMPLE_TOKEN_LINES = SimpleTokenLines()


def _items_lines(
    container: Container, partition: Partition, charge_ru: float, activity_id: str, began_at: float
) -> str:
    """What every answer about items tells."""
    range_id, lsn = partition.range_id, partition.lsn
    return (
        f"Content-Type: application/json\r\n"
        f"x-ms-request-charge: {charge_ru:.2f}\r\n"
        f"x-ms-activity-id: {activity_id}\r\n"
        f"x-ms-session-token: {range_id}:{container.resource.number}#{lsn}\r\n"
        f"lsn: {lsn}\r\n"
        f"{_partition_lines(container, partition)}"
        f"x-ms-request-duration-ms: {_milliseconds_since(began_at)}\r\n"
    )


def _milliseconds_since(began_at: float) -> str:
    return f"{(perf_counter() - began_at) * 1000:.3f}"


def _item_lines(request: Request, raw_path: bytes, etag: str, item_lsn: int) -> str:
    """What an answer tells of its one item."""
    origin = _origin(request.secure, request.headers.get(b"host", b""))
    return (
        f"etag: {etag}\r\nx-ms-item-lsn: {item_lsn}\r\n"
        f"Content-Location: {origin}{raw_path.decode('latin-1')}\r\n"
    )


def partition_pairs(
    range_id: str, size_bytes: int, items: int, path: str, rid: str, room_bytes: int
) -> list[tuple[str, str]]:
    """What is the same in all answers of a physical partition until somebody asks for its counters again.

    Sizes are in KB, and `documentSize` in MB, as the service says them.
    """
    size_kb, room_kb = size_bytes >> 10, room_bytes // 1024
    quota = (
        f"documentSize={room_kb // 1024};documentsSize={room_kb};documentsCount=-1;collectionSize={room_kb};"
    )
    usage = f"documentSize=0;documentsSize={size_kb};documentsCount={items};collectionSize={size_kb};"
    return [
        ("x-ms-documentdb-partitionkeyrangeid", range_id),
        ("x-ms-cosmos-physical-partition-id", range_id),
        ("x-ms-alt-content-path", ascii_path(path)),
        ("x-ms-content-path", rid),
        ("x-ms-resource-quota", quota),
        ("x-ms-resource-usage", usage),
    ]


def _partition_lines(container: Container, partition: Partition) -> str:
    """The same as lines. A store answers for itself, however many copies it keeps beneath."""
    size_bytes, items, kept = partition.size_bytes_seen, partition.items_seen, partition.kept_by_head
    if kept is not None and kept[0] == size_bytes and kept[1] == items:
        return kept[2]
    room_bytes = container.limits.physical_partition_bytes
    pairs = partition_pairs(
        partition.range_id, size_bytes, items, container.path, container.resource.rid, room_bytes
    )
    lines = f"{_lines(pairs)}x-ms-current-write-quorum: 1\r\nx-ms-current-replica-set-size: 1\r\n"
    partition.kept_by_head = size_bytes, items, lines
    return lines


def _lines(pairs: Pairs) -> str:
    """Header lines of what was written here, and so has nothing in it that could end a line."""
    return "".join([f"{name}: {value}\r\n" for name, value in pairs])


@lru_cache(maxsize=256)
def _origin(is_secure: bool, host: bytes) -> str:
    """Scheme and host of a request, as its client wrote them."""
    return f"{'https' if is_secure else 'http'}://{host.strip().decode('latin-1')}"


def feed_body(rid: str, name: str, members: Iterable[bytes], count: int) -> bytes:
    """The envelope of a feed around members that are JSON texts already."""
    return b'{"_rid":"%s","%s":[%s],"_count":%d}' % (rid.encode(), name.encode(), b",".join(members), count)


def described(
    status: int,
    call: Call,
    charge: Charge,
    resource: Resource,
    value: dict[str, Any] | None = None,
    **extra: str,
) -> Response:
    """The answer of an operation on one metadata resource: with the path of its owner, and 304 where it is known.

    `value` is the resource as it is shown, where that is more than usual.
    """
    if call.method == "GET" and call.text(b"if-none-match") in ("*", resource.etag):
        status, shown, extra = 304, None, {**extra, "etag": resource.etag}
    else:
        shown = value or to_json(call.engine.catalog, resource)
    return resource_answer(status, call, charge, shown, **owner_paths(call, resource), **extra)


def owner_paths(call: Call, resource: Resource) -> dict[str, str]:
    """The headers that name the owner of a resource, by names and by rid."""
    catalog = call.engine.catalog
    owner = catalog.parent_of(resource)
    if owner is None:
        return {}
    return {"x_ms_alt_content_path": path_of(catalog, owner), "x_ms_content_path": owner.rid}


def resource_answer(
    status: int, call: Call, charge: Charge, value: dict[str, Any] | None, **extra: str
) -> Response:
    """The answer of an operation on metadata; `extra` headers have underscores for dashes."""
    call.charge_ru = charge.ru
    pairs = [
        ("Content-Type", "application/json"),
        ("x-ms-request-charge", f"{charge.ru:.2f}"),
        ("x-ms-activity-id", call.activity_id),
        ("x-ms-schemaversion", "1.19"),
        ("x-ms-serviceversion", "version=2.14.0.0"),
        ("x-ms-gatewayversion", "version=2.14.0"),
        ("x-ms-request-duration-ms", _milliseconds_since(call.began_at)),
    ]
    if value is not None and "_etag" in value:
        pairs.append(("etag", value["_etag"]))
    pairs.extend((name.replace("_", "-"), text) for name, text in extra.items())
    return Response(status, call.form.of_pairs(pairs), b"" if value is None else orjson.dumps(value))


def failure_pairs(error: PleiadError, activity_id: str, began_at: float) -> list[tuple[str, str]]:
    """What the answer to a failure from the table tells beside its body."""
    pairs = [
        ("x-ms-request-charge", f"{error.charge_ru or 0:.2f}"),
        ("x-ms-activity-id", activity_id),
        ("x-ms-request-duration-ms", _milliseconds_since(began_at)),
    ]
    substatus = substatus_of(error)
    if substatus:
        pairs.append(("x-ms-substatus", str(substatus)))
    if error.retry_after_ms is not None:
        pairs.append(("x-ms-retry-after-ms", str(error.retry_after_ms)))
    if error.range_id is not None and error.container_number is not None and error.lsn is not None:
        token = session_token.written(error.range_id, error.container_number, error.lsn)
        pairs.append(("x-ms-session-token", token))
    if error.lsn is not None:
        pairs.append(("lsn", str(error.lsn)))
    if error.range_id is not None:
        pairs.append(("x-ms-documentdb-partitionkeyrangeid", error.range_id))
    return pairs


def failure_body(error: PleiadError, activity_id: str) -> bytes:
    """The words of a failure."""
    body = {"code": code_of(error), "message": f"{message_of(error)}\r\nActivityId: {activity_id}"}
    if error.query_plan is not None:
        body["additionalErrorInfo"] = orjson.dumps(error.query_plan).decode()
    return orjson.dumps(body)
