"""Frames and the REST requests they stand for, and answers that have to fit into frames."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.heads.nosql.direct import answers, replica_path
from pleiad.heads.nosql.direct.answers import FrameForm
from pleiad.heads.nosql.direct.replica_path import RangeAddress
from pleiad.heads.nosql.direct.requests import to_request
from pleiad.server.http.message import Request, Response
from pleiad.wire.rntbd.codes import OperationType, ResourceType
from pleiad.wire.rntbd.frame import Frame, ResponseFrame, read_request, read_response
from pleiad.wire.rntbd.request_tokens import RequestToken as Token
from pleiad.wire.rntbd.response_tokens import ResponseToken
from tests.project import REFERENCE

VECTORS = REFERENCE / "rntbd_vectors.json"
DATABASE, CONTAINER = {Token.DATABASE_NAME: b"d"}, {Token.DATABASE_NAME: b"d", Token.COLLECTION_NAME: b"c"}
RID = bytes.fromhex("0000001780000018")


def frame(resource: int, operation: int, **tokens: Any) -> Frame:
    numbered = {getattr(Token, name): value for name, value in tokens.items()}
    return Frame(resource, operation, bytes(16), {Token.PAYLOAD_PRESENT: 0, **numbered})


def item(operation: int, **tokens: Any) -> Request:
    names = {"DATABASE_NAME": b"d", "COLLECTION_NAME": b"c", **tokens}
    return to_request(frame(ResourceType.DOCUMENT, operation, **names), "")


@pytest.mark.skipif(not VECTORS.is_file(), reason="the reference data is not beside this checkout")
def test_the_frames_of_a_client_become_the_requests_they_stand_for() -> None:
    frames = [each for each in json.loads(VECTORS.read_text())["frames"] if each["rest"]]
    assert len(frames) > 20
    for each in frames:
        raw = bytes.fromhex(each["request_hex"])
        length = int.from_bytes(raw[:4], "little")
        request = to_request(read_request(raw[:length], raw[length + 4 :]), "")
        assert f"{request.method} {request.target.decode()}" == each["rest"], each["name"]


@pytest.mark.parametrize(
    ("operation", "method", "target"),
    [
        (OperationType.CREATE, "POST", b"/dbs/d/colls/c/docs"),
        (OperationType.UPSERT, "POST", b"/dbs/d/colls/c/docs"),
        (OperationType.QUERY, "POST", b"/dbs/d/colls/c/docs"),
        (OperationType.SQL_QUERY, "POST", b"/dbs/d/colls/c/docs"),
        (OperationType.BATCH, "POST", b"/dbs/d/colls/c/docs"),
        (OperationType.READ_FEED, "GET", b"/dbs/d/colls/c/docs"),
        (OperationType.READ, "GET", b"/dbs/d/colls/c/docs/i"),
        (OperationType.REPLACE, "PUT", b"/dbs/d/colls/c/docs/i"),
        (OperationType.PATCH, "PATCH", b"/dbs/d/colls/c/docs/i"),
        (OperationType.DELETE, "DELETE", b"/dbs/d/colls/c/docs/i"),
    ],
)
def test_each_operation_has_its_method_and_path(operation: int, method: str, target: bytes) -> None:
    request = item(operation, DOCUMENT_NAME=b"i")
    assert (request.method, request.target, request.secure) == (method, target, True)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (b"a b", b"a b"),
        ("ü€".encode(), "ü€".encode()),
        (b"per%20cent", b"per%2520cent"),
        (b"a/b", b"a%2Fb"),
        (b"a?b", b"a%3Fb"),
        (b"a\r\nb", b"a%0D%0Ab"),
    ],
)
def test_a_name_is_encoded_only_where_it_would_mean_something_in_a_path(name: bytes, written: bytes) -> None:
    assert item(OperationType.READ, DOCUMENT_NAME=name).target == b"/dbs/d/colls/c/docs/" + written


def test_what_is_addressed_by_rid_has_the_path_of_its_rids() -> None:
    read = to_request(
        frame(ResourceType.DOCUMENT, OperationType.READ, RESOURCE_ID=RID + bytes(7) + b"\x01"), ""
    )
    assert read.target == b"/dbs/AAAAFw==/colls/AAAAF4AAABg=/docs/AAAAF4AAABgAAAAAAAAAAQ=="
    feed = to_request(frame(ResourceType.DOCUMENT, OperationType.READ_FEED, RESOURCE_ID=RID), "")
    assert feed.target == b"/dbs/AAAAFw==/colls/AAAAF4AAABg=/docs"
    databases = to_request(frame(ResourceType.DATABASE, OperationType.READ_FEED), "")
    assert databases.target == b"/dbs"


@pytest.mark.parametrize(
    "bad",
    [
        frame(ResourceType.DOCUMENT, OperationType.READ),
        frame(ResourceType.DOCUMENT, OperationType.READ, DATABASE_NAME=b"d", COLLECTION_NAME=b"c"),
        frame(
            ResourceType.DOCUMENT,
            OperationType.READ,
            DATABASE_NAME=b"d",
            COLLECTION_NAME=b"c",
            DOCUMENT_NAME=b"",
        ),
        frame(ResourceType.DOCUMENT, OperationType.READ, DATABASE_NAME=b"d", RESOURCE_ID=RID),
        frame(ResourceType.DOCUMENT, OperationType.READ, RESOURCE_ID=RID),
        frame(ResourceType.DOCUMENT, OperationType.READ_FEED, RESOURCE_ID=RID[:5]),
        frame(ResourceType.DOCUMENT, OperationType.CRASH, DATABASE_NAME=b"d", COLLECTION_NAME=b"c"),
        frame(ResourceType.ATTACHMENT, OperationType.READ, DATABASE_NAME=b"d", COLLECTION_NAME=b"c"),
        frame(ResourceType.DATABASE_ACCOUNT, OperationType.READ),
        frame(65_535, 65_535),
    ],
)
def test_a_frame_that_stands_for_no_request_is_refused(bad: Frame) -> None:
    with pytest.raises(PleiadError):
        to_request(bad, "")


def test_tokens_are_the_headers_of_rest() -> None:
    headers = item(
        OperationType.QUERY,
        PAGE_SIZE=0xFFFFFFFF,
        CONSISTENCY_LEVEL=3,
        START_EPK=b"05C1",
        READ_FEED_KEY_TYPE=3,
        SUPPORTED_SERIALIZATION_FORMATS=3,
        POPULATE_QUERY_METRICS=1,
        SDK_SUPPORTED_CAPABILITIES=9,
    ).headers
    assert headers[b"x-ms-max-item-count"] == b"-1"
    assert headers[b"x-ms-consistency-level"] == b"Eventual"
    assert headers[b"x-ms-start-epk"] == b"05C1"
    assert headers[b"x-ms-read-key-type"] == b"EffectivePartitionKeyRange"
    assert headers[b"x-ms-cosmos-supported-serialization-formats"] == b"JsonText,CosmosBinary"
    assert headers[b"x-ms-documentdb-populatequerymetrics"] == b"True"
    assert headers[b"x-ms-cosmos-sdk-supportedcapabilities"] == b"9"
    assert headers[b"x-ms-documentdb-query-enablecrosspartition"] == b"True"


def test_a_number_that_stands_for_no_word_is_told_as_it_is_and_so_refused() -> None:
    headers = item(OperationType.READ, DOCUMENT_NAME=b"i", CONSISTENCY_LEVEL=77).headers
    assert headers[b"x-ms-consistency-level"] == b"77"


@pytest.mark.parametrize("operation", [OperationType.READ, OperationType.READ_FEED])
def test_match_is_what_a_read_does_not_want_and_a_write_does(operation: int) -> None:
    assert item(operation, DOCUMENT_NAME=b"i", MATCH=b"e").headers[b"if-none-match"] == b"e"
    assert item(OperationType.REPLACE, DOCUMENT_NAME=b"i", MATCH=b"e").headers[b"if-match"] == b"e"


def test_a_replica_path_says_its_range_with_and_without_its_last_slash() -> None:
    address = RangeAddress("AA+-F4AAABg=", "17")
    path = replica_path.written(address, "2s")
    for written in (path, path.rstrip("/")):
        assert replica_path.read(written.encode()) == address
    for other in (replica_path.written(None, "1p"), "/apps/a/services/b/partitions/c/replicas/d", "", "\xff"):
        assert replica_path.read(other.encode("latin-1")) is None


def answered(response: Response) -> ResponseFrame:
    asked = frame(ResourceType.DOCUMENT, OperationType.READ, TRANSPORT_REQUEST_ID=7)
    raw = answers.written(asked, response)
    length = int.from_bytes(raw[:4], "little")
    return read_response(raw[:length], raw[length + 4 :])


def test_an_answer_without_anything_still_has_what_clients_want() -> None:
    form = FrameForm(RangeAddress("AAAA", "3"))
    found = answered(form.failure(errors.ITEM_NOT_FOUND(id="i"), "activity", 0.0))
    tokens = found.tokens
    assert (found.status, tokens[ResponseToken.TRANSPORT_REQUEST_ID]) == (404, 7)
    assert (tokens[ResponseToken.LSN], tokens[ResponseToken.LOCAL_LSN]) == (1, 1)
    assert (tokens[ResponseToken.SUB_STATUS], tokens[ResponseToken.PARTITION_KEY_RANGE_ID]) == (0, b"3")
    assert ResponseToken.SESSION_TOKEN not in tokens


def test_a_session_token_is_told_without_its_range() -> None:
    told = FrameForm(None).of_pairs(
        [("x-ms-session-token", "0:2#16"), ("lsn", "16"), ("x-ms-documentdb-partitionkeyrangeid", "0")]
    )
    tokens = answered(Response(200, told, b"{}")).tokens
    assert tokens[ResponseToken.SESSION_TOKEN] == b"2#16"
    assert (tokens[ResponseToken.LSN], tokens[ResponseToken.PARTITION_KEY_RANGE_ID]) == (16, b"0")


@pytest.mark.parametrize("before", [[], [("x-ms-documentdb-partitionkeyrangeid", "0")]])
def test_a_value_that_no_token_holds_is_refused_and_said_so(before: list[tuple[str, str]]) -> None:
    form = FrameForm(None)
    fits = answered(Response(200, form.of_pairs([*before, ("x-ms-continuation", "x" * 65_535)])))
    assert fits.tokens[ResponseToken.CONTINUATION_TOKEN] == b"x" * 65_535
    with pytest.raises(PleiadError) as caught:
        form.of_pairs([*before, ("x-ms-continuation", "x" * 65_536)])
    found = answered(form.failure(caught.value, "activity", 0.0))
    assert found.status == 400
    assert b"no room in a frame of direct mode" in found.payload
    assert found.tokens[ResponseToken.TRANSPORT_REQUEST_ID] == 7
