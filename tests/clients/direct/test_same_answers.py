"""The same operations over HTTPS and as frames: what a client is told does not depend on how it asks."""

from __future__ import annotations

import re

import orjson
import pytest

from pleiad.wire.binary_json import is_binary
from pleiad.wire.binary_json.read import to_text
from tests.clients.direct import operations
from tests.clients.direct.frames import RANGE, Answer, Direct, Https
from tests.stores import StartServer

COMPARED = (
    "x-ms-substatus",
    "x-ms-request-charge",
    "x-ms-session-token",
    "etag",
    "x-ms-item-count",
    "x-ms-item-lsn",
    "x-ms-retry-after-ms",
    "x-ms-alt-content-path",
    "x-ms-content-path",
    "x-ms-resource-quota",
    "x-ms-documentdb-script-log-results",
    "x-ms-cosmos-index-utilization",
    "x-ms-cosmos-query-execution-info",
    "x-ms-cosmos-physical-partition-id",
    "x-ms-share-throughput",
    "x-ms-schemaversion",
)
PRESENT = (
    "x-ms-continuation",
    "x-ms-documentdb-query-metrics",
    "x-ms-request-duration-ms",
    "x-ms-resource-usage",
)
"""Headers that say another thing each time, or count what is counted now and then."""
NOT_IN_FRAMES = {
    "content-type",
    "content-length",
    "content-location",
    "connection",
    "date",
    "server",
    "x-ms-activity-id",
    "x-ms-serviceversion",
    "x-ms-gatewayversion",
    "x-pleiad-partitions-visited",
    "x-pleiad-charge-parts",
}
"""Of these a frame says nothing, or says it in its head."""

_ETAG = re.compile(rb"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})[0-9a-f]{8}")
_RESOURCE_ETAG = re.compile(rb'"[0-9a-f]{8}-(?!0000-0000)[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"')
_SEALED = re.compile(rb'"[0-9A-Za-z_-]{40,}"')
_MOMENT = re.compile(rb'"(_ts|crts)":\d+')
_ACTIVITY = re.compile(rb"ActivityId: [0-9a-f-]+")


def same(text: bytes) -> bytes:
    """A text without what two servers cannot have alike: times, random etags, sealed places and activity ids."""
    if is_binary(text):
        text = to_text(text, 10_000_000)
    text = _RESOURCE_ETAG.sub(b'"etag"', text.replace(b'\\"', b'"'))
    text = _SEALED.sub(b'"place"', _ETAG.sub(rb"\1", text))
    return _ACTIVITY.sub(b"ActivityId", _MOMENT.sub(rb'"\1":0', text))


def as_a_replica(body: bytes) -> bytes:
    """The body of a failure over HTTP in the words of frames: without a code and an activity id."""
    words = orjson.loads(body)["message"].partition("\r\nActivityId: ")[0]
    words = words.removeprefix("Entity with the specified id does not exist in the system. ")
    words = words.removesuffix(" ResourceType: Document")
    if words.startswith("Entity with the specified id already exists in the system. "):
        words = "Resource with specified id or name already exists."
    return words.encode() if words.startswith('{"') else orjson.dumps({"Errors": [words]})


def compared(answer: Answer) -> dict[str, str | bytes | int]:
    headers = answer.headers
    told: dict[str, str | bytes | int] = {"status": answer.status, "body": same(answer.body)}
    for name in COMPARED:
        told[name] = same(headers.get(name, "").encode())
    told["x-ms-substatus"] = answer.substatus
    for name in PRESENT:
        told[name] = name in headers
    return told


@pytest.fixture(scope="module")
def answers(start_lasting_server: StartServer) -> tuple[list[tuple[str, Answer]], list[tuple[str, Answer]]]:
    """What was told over HTTPS, and in frames; each by a server of its own."""
    with start_lasting_server() as server:
        https = Https(server)
        operations.set_up(https)
        over_https = operations.run(https.send)
        https.close()
    with start_lasting_server() as server:
        direct = Direct(server)
        operations.set_up(direct.https)
        in_frames = operations.run(direct.send)
        direct.close()
    return over_https, in_frames


def test_every_operation_is_answered_alike(
    answers: tuple[list[tuple[str, Answer]], list[tuple[str, Answer]]],
) -> None:
    over_https, in_frames = answers
    assert len(over_https) >= 150
    assert [label for label, _ in over_https] == [label for label, _ in in_frames]
    different = {}
    for (label, rest), (_, frame) in zip(over_https, in_frames, strict=True):
        wanted, found = compared(rest), compared(frame)
        if "x-ms-session-token" not in rest.headers:
            # A frame says how far the partition is that was addressed, also where a REST answer does not.
            wanted["x-ms-session-token"] = found["x-ms-session-token"]
        if rest.status >= 400 and rest.body and b"additionalErrorInfo" not in rest.body:
            wanted["body"], found["body"] = same(as_a_replica(rest.body)), same(frame.body)
        if label.startswith("barrier"):
            wanted["body"] = found[
                "body"
            ]  # in HTTP the answer to a HEAD has none, even where it is a refusal
        names = [name for name in wanted if wanted[name] != found[name]]
        if names:
            different[label] = {name: (wanted[name], found[name]) for name in names}
    assert not different


def test_every_header_of_an_answer_has_a_token(
    answers: tuple[list[tuple[str, Answer]], list[tuple[str, Answer]]],
) -> None:
    over_https, in_frames = answers
    for (label, rest), (_, frame) in zip(over_https, in_frames, strict=True):
        missing = set(rest.headers) - set(frame.headers) - NOT_IN_FRAMES
        assert not missing, label


def test_answers_of_a_range_name_it_and_say_how_far_it_is(
    answers: tuple[list[tuple[str, Answer]], list[tuple[str, Answer]]],
) -> None:
    over_https, in_frames = answers
    for (label, rest), (_, frame) in zip(over_https, in_frames, strict=True):
        if RANGE in rest.headers:
            assert frame.headers[RANGE] == rest.headers[RANGE], label
        if int(rest.headers.get("lsn", "0")):
            assert frame.headers["lsn"] == rest.headers["lsn"], label


def test_failures_and_successes_are_both_in_the_list(
    answers: tuple[list[tuple[str, Answer]], list[tuple[str, Answer]]],
) -> None:
    found = {answer.status for _, answer in answers[1]}
    assert {200, 201, 204, 207, 304, 400, 404, 409, 410, 412, 413} <= found
