"""RNTBD frames: the bytes of a client, round trips over whole tables, and input that means harm."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.wire.rntbd import BadFrame, UnwritableToken
from pleiad.wire.rntbd.activity_id import activity_id_bytes, activity_id_text
from pleiad.wire.rntbd.context import (
    ContextFrame,
    read_context_request,
    read_context_response,
    write_context_request,
    write_context_response,
)
from pleiad.wire.rntbd.context_tokens import CONTEXT_REQUEST_TOKENS, CONTEXT_RESPONSE_TOKENS
from pleiad.wire.rntbd.frame import HEAD_BYTES, read_request, read_response, write_request, write_response
from pleiad.wire.rntbd.request_tokens import REQUEST_TOKENS, RequestToken
from pleiad.wire.rntbd.response_tokens import RESPONSE_TOKENS, ResponseToken
from pleiad.wire.rntbd.token import STRING_BYTES_MAX, TOKENS_MAX, TokenTable, TokenType, TokenValue

if TYPE_CHECKING:
    from tests.rooms.wire.conftest import Vectors

TABLES = {
    "request": REQUEST_TOKENS,
    "response": RESPONSE_TOKENS,
    "context request": CONTEXT_REQUEST_TOKENS,
    "context response": CONTEXT_RESPONSE_TOKENS,
}
ID = bytes(range(16))

VALUES: dict[TokenType, st.SearchStrategy[Any]] = {
    TokenType.BYTE: st.integers(0, 2**8 - 1),
    TokenType.USHORT: st.integers(0, 2**16 - 1),
    TokenType.ULONG: st.integers(0, 2**32 - 1),
    TokenType.LONG: st.integers(-(2**31), 2**31 - 1),
    TokenType.ULONG_LONG: st.integers(0, 2**64 - 1),
    TokenType.LONG_LONG: st.integers(-(2**63), 2**63 - 1),
    TokenType.GUID: st.binary(min_size=16, max_size=16),
    TokenType.SMALL_STRING: st.binary(max_size=255),
    TokenType.STRING: st.binary(max_size=300),
    TokenType.SMALL_BYTES: st.binary(max_size=255),
    TokenType.BYTES: st.binary(max_size=300),
    TokenType.FLOAT: st.floats(allow_nan=False, width=32),
    TokenType.DOUBLE: st.floats(allow_nan=False),
}


def tokens_of(table: TokenTable, without: int | None = None) -> st.SearchStrategy[dict[int, TokenValue]]:
    """Any tokens of a table, in any order."""
    ids = st.lists(st.sampled_from([known for known in table.types if known != without]), unique=True)
    return ids.flatmap(
        lambda chosen: st.fixed_dictionaries({one: VALUES[table.types[one]] for one in chosen})
    )


def value_of(token: dict[str, Any]) -> TokenValue:
    """The value of a token as the vectors write it."""
    kind, value = token["type"], token["value"]
    if kind == "Guid":
        return activity_id_bytes(value)
    if "Bytes" in kind:
        return bytes.fromhex(value)
    return value.encode() if isinstance(value, str) else value


def described(table: TokenTable, vector: dict[str, Any]) -> dict[int, TokenValue]:
    """The tokens of a vector, after a look at whether the table gives them the same names and types."""
    for token in vector["tokens"]:
        token_id = int(token["id"], 16)
        assert table.names[token_id].replace("_", "") == token["name"].replace("_", "").upper()
        assert table.types[token_id].name.replace("_", "") == token["type"].upper()
    return {int(token["id"], 16): value_of(token) for token in vector["tokens"]}


def cut(hexadecimal: str) -> tuple[bytes, bytes]:
    """A whole frame as its head with tokens, and its payload."""
    data = bytes.fromhex(hexadecimal)
    length = int.from_bytes(data[:4], "little")
    payload = data[length + 4 :]
    assert data[length : length + 4] == (struct.pack("<I", len(payload)) if payload else b"")
    return data[:length], payload


# -- the vectors -----------------------------------------------------------------------------------


def test_every_request_of_the_client_is_read_and_written_again_byte_by_byte(rntbd_vectors: Vectors) -> None:
    for vector in rntbd_vectors["frames"][1:]:
        wanted = vector["request"]
        head, payload = cut(vector["request_hex"])
        frame = read_request(head, payload)
        assert frame.tokens == described(REQUEST_TOKENS, wanted), vector["name"]
        assert frame.resource_type == wanted["resource_type"]
        assert frame.operation_type == wanted["operation_type"]
        assert activity_id_text(frame.activity_id) == wanted["activity_id"]
        assert frame.has_payload == bool(payload)
        assert write_request(*frame[:5]).hex() == vector["request_hex"], vector["name"]


def test_every_answer_that_satisfied_the_client_is_written_byte_by_byte(rntbd_vectors: Vectors) -> None:
    for vector in rntbd_vectors["frames"][1:]:
        wanted = vector["response"]
        head, payload = cut(vector["response_hex"])
        frame = read_response(head, payload)
        assert frame.tokens == described(RESPONSE_TOKENS, wanted), vector["name"]
        assert frame.status == wanted["status"]
        assert frame.has_payload == bool(payload)
        del frame.tokens[ResponseToken.PAYLOAD_PRESENT]
        assert write_response(*frame).hex() == vector["response_hex"], vector["name"]


def test_the_first_frames_of_a_connection_are_those_of_the_client(rntbd_vectors: Vectors) -> None:
    vector = rntbd_vectors["frames"][0]
    request, response = bytes.fromhex(vector["request_hex"]), bytes.fromhex(vector["response_hex"])
    context = read_context_request(request)
    sent = described(CONTEXT_REQUEST_TOKENS, vector["request"])
    assert (context.client_version, context.user_agent) == (sent[1], sent[2])
    answer = read_context_response(response)
    assert answer.tokens == described(CONTEXT_RESPONSE_TOKENS, vector["response"])
    assert (
        write_context_response(200, context.activity_id, context.client_version, b"Pleiad", b"2.14.0.0")
        == response
    )


# -- round trips -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_tokens_of_a_whole_table_are_read_as_they_were_written(table: TokenTable) -> None:
    @given(st.fixed_dictionaries({one: VALUES[kind] for one, kind in table.types.items()}))
    def whole(tokens: dict[int, TokenValue]) -> None:
        assert table.read(table.write(tokens), 0) == tokens

    whole()


@given(
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**16 - 1),
    st.binary(min_size=16, max_size=16),
    tokens_of(REQUEST_TOKENS, RequestToken.PAYLOAD_PRESENT),
    st.binary(max_size=50),
)
def test_a_request_is_read_as_it_was_written(
    resource: int, operation: int, activity_id: bytes, tokens: dict[int, TokenValue], payload: bytes
) -> None:
    data = write_request(resource, operation, activity_id, tokens, payload)
    frame = read_request(*cut(data.hex()))
    assert frame[:3] == (resource, operation, activity_id)
    assert frame.tokens == {**tokens, RequestToken.PAYLOAD_PRESENT: int(bool(payload))}
    assert frame.payload == payload


@given(
    st.integers(0, 2**32 - 1),
    tokens_of(RESPONSE_TOKENS, ResponseToken.PAYLOAD_PRESENT),
    st.binary(max_size=50),
)
def test_an_answer_is_read_as_it_was_written(
    status: int, tokens: dict[int, TokenValue], payload: bytes
) -> None:
    frame = read_response(*cut(write_response(status, ID, tokens, payload).hex()))
    assert (frame.status, frame.activity_id, frame.payload) == (status, ID, payload)
    assert frame.tokens == {**tokens, ResponseToken.PAYLOAD_PRESENT: int(bool(payload))}


@given(st.uuids())
def test_an_activity_id_has_the_byte_order_of_a_guid(activity_id: uuid.UUID) -> None:
    assert activity_id_text(activity_id.bytes_le) == str(activity_id)
    assert activity_id_bytes(str(activity_id)) == activity_id.bytes_le


@pytest.mark.parametrize("text", ["", "not-an-id", "0" * 31, "0" * 33, "0" * 30 + " 0", "é" * 32])
def test_a_text_that_is_no_activity_id_is_refused(text: str) -> None:
    with pytest.raises(UnwritableToken):
        activity_id_bytes(text)


# -- harm ------------------------------------------------------------------------------------------


def framed(tokens: bytes) -> bytes:
    return struct.pack("<IHH16s", HEAD_BYTES + len(tokens), 3, 1, ID) + tokens


PRESENT = b"\x02\x00\x00\x00"


def test_a_frame_that_ends_anywhere_is_refused(rntbd_vectors: Vectors) -> None:
    readers: tuple[tuple[str, Callable[[bytes], object]], ...] = (
        ("request_hex", read_request),
        ("response_hex", read_response),
    )
    for vector in rntbd_vectors["frames"][1:]:
        for name, read in readers:
            head, _ = cut(vector[name])
            ends = set()
            for length in range(len(head)):
                with pytest.raises(BadFrame):
                    read(head[:length])
                if length < HEAD_BYTES:
                    continue
                # With a length that agrees it is a frame wherever a token ends, if it says enough.
                short = struct.pack("<I", length) + head[4:length]
                try:
                    read(short)
                except BadFrame:
                    continue
                ends.add(length)
            assert len(ends) < len(vector[name.removesuffix("_hex")]["tokens"])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_known_token_of_another_form_is_refused_and_never_misread(table: TokenTable) -> None:
    forms = {TokenType.LONG: TokenType.ULONG, TokenType.LONG_LONG: TokenType.ULONG_LONG}
    forms |= {
        TokenType.SMALL_BYTES: TokenType.SMALL_STRING,
        TokenType.BYTES: TokenType.STRING,
        TokenType.ULONG_BYTES: TokenType.ULONG_STRING,
    }
    for token_id, kind in table.types.items():
        for other in TokenType:
            data = struct.pack("<HB", token_id, other) + bytes(16)
            if forms.get(other, other) is forms.get(kind, kind):
                continue
            with pytest.raises(BadFrame, match="has the type"):
                table.read(data, 0)


def test_clients_that_differ_in_the_sign_of_a_number_say_the_same() -> None:
    for kind in (TokenType.ULONG, TokenType.LONG):
        sent = struct.pack("<HBI", RequestToken.TIME_TO_LIVE_IN_SECONDS, kind, 0xFFFFFFFF)
        assert REQUEST_TOKENS.read(sent, 0) == {RequestToken.TIME_TO_LIVE_IN_SECONDS: 0xFFFFFFFF}


@given(st.sampled_from(TokenType), st.binary(max_size=200))
def test_an_unknown_token_is_stepped_over_by_its_type(kind: TokenType, content: bytes) -> None:
    fixed = {
        TokenType.BYTE: 1, TokenType.USHORT: 2, TokenType.ULONG: 4, TokenType.LONG: 4, TokenType.ULONG_LONG: 8,
        TokenType.LONG_LONG: 8, TokenType.GUID: 16, TokenType.FLOAT: 4, TokenType.DOUBLE: 8, TokenType.INVALID: 0,
    }  # fmt: skip
    if kind in fixed:
        value = content.ljust(16)[: fixed[kind]]
    else:
        width = 1 if "SMALL" in kind.name else 4 if "ULONG" in kind.name else 2
        value = len(content).to_bytes(width, "little") + content
    frame = read_request(framed(struct.pack("<HB", 0xFFF0, kind) + value + PRESENT))
    assert frame.tokens == {RequestToken.PAYLOAD_PRESENT: 0}


@pytest.mark.parametrize("kind", [0x0F, 0x10, 0x7F, 0xFE])
@pytest.mark.parametrize("token_id", [RequestToken.DATE, 0xFFF0])
def test_an_unknown_type_is_refused(token_id: int, kind: int) -> None:
    with pytest.raises(BadFrame):
        read_request(framed(PRESENT + struct.pack("<HB", token_id, kind) + bytes(8)))


@pytest.mark.parametrize("token_id", [RequestToken.RESOURCE_ID, 0xFFF0])
@pytest.mark.parametrize(
    ("kind", "length"),
    [
        (TokenType.SMALL_STRING, b"\xff"),
        (TokenType.STRING, b"\xff\xff"),
        (TokenType.ULONG_BYTES, b"\xff" * 4),
    ],
)
def test_a_length_beyond_the_frame_is_refused(token_id: int, kind: TokenType, length: bytes) -> None:
    with pytest.raises(BadFrame):
        read_request(framed(PRESENT + struct.pack("<HB", token_id, kind) + length + b"short"))


def test_a_frame_of_very_many_tokens_is_refused() -> None:
    unknown = struct.pack("<HB", 0xFFF0, TokenType.INVALID)
    read_request(framed(PRESENT + unknown * (TOKENS_MAX - 1)))
    with pytest.raises(BadFrame, match="more than"):
        read_request(framed(PRESENT + unknown * TOKENS_MAX))


def test_a_token_that_comes_twice_is_refused() -> None:
    with pytest.raises(BadFrame, match="more than once"):
        read_request(framed(PRESENT + PRESENT))


@pytest.mark.parametrize("tokens", [b"", b"\x02\x00\x00\x02"])
def test_a_request_must_say_whether_a_payload_follows(tokens: bytes) -> None:
    with pytest.raises(BadFrame):
        read_request(framed(tokens))


def test_a_payload_that_was_not_announced_is_refused() -> None:
    with pytest.raises(BadFrame):
        read_request(framed(PRESENT), b"{}")


@given(st.binary(max_size=100))
def test_any_bytes_are_a_frame_or_are_refused(tokens: bytes) -> None:
    for read in (read_request, read_response, read_context_request, read_context_response):
        for data in (tokens, framed(tokens), struct.pack("<II16s", HEAD_BYTES + len(tokens), 0, ID) + tokens):
            try:
                read(data)
            except BadFrame:
                continue


@pytest.mark.parametrize(
    "without", [b"\x00\x00\x02", b"\x01\x00\x07", b"\x02\x00\x07"], ids=["version", "client", "agent"]
)
def test_a_context_request_without_a_required_token_is_refused(without: bytes) -> None:
    data = write_context_request(ContextFrame(ID, b"2020-07-15", b"agent"))
    read_context_request(data)
    # under a number that means nothing here it is no token of this frame
    unknown = data.replace(without, b"\xf0\xff" + without[2:], 1)
    assert unknown != data
    with pytest.raises(BadFrame):
        read_context_request(unknown)


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_a_context_request_of_another_protocol_version_is_refused(version: int) -> None:
    with pytest.raises(BadFrame, match="protocol version"):
        read_context_request(write_context_request(ContextFrame(ID, b"v", b"a"), version))


def test_a_request_is_no_context_request() -> None:
    with pytest.raises(BadFrame, match="begins with"):
        read_context_request(framed(PRESENT))


@pytest.mark.parametrize(
    ("token_id", "value"),
    [
        (ResponseToken.CONTINUATION_TOKEN, b"x" * (STRING_BYTES_MAX + 1)),
        (ResponseToken.SCHEMA_VERSION, b"x" * 256),
        (ResponseToken.SUB_STATUS, -1),
        (ResponseToken.SUB_STATUS, 2**32),
        (ResponseToken.LSN, 2**63),
        (ResponseToken.LSN, b"1"),
        (ResponseToken.ETAG, 5),
        (ResponseToken.CORRELATED_ACTIVITY_ID, b"short"),
        (ResponseToken.PAYLOAD_PRESENT, 1),
        (0xFFF0, 1),
    ],
)
def test_a_value_that_its_token_cannot_hold_is_refused_in_words(token_id: int, value: TokenValue) -> None:
    with pytest.raises(UnwritableToken) as refused:
        write_response(200, ID, {ResponseToken.ITEM_LSN: 1, token_id: value})
    assert "xxx" not in str(refused.value)


def test_the_longest_text_of_a_token_is_written_whole() -> None:
    text = b"x" * STRING_BYTES_MAX
    data = write_response(200, ID, {ResponseToken.CONTINUATION_TOKEN: text})
    assert read_response(data).tokens[ResponseToken.CONTINUATION_TOKEN] == text


@settings(max_examples=25)
@given(st.data())
def test_a_table_that_has_read_the_like_before_reads_the_same(data: st.DataObject) -> None:
    apart = {RequestToken.AUTHORIZATION_TOKEN: b"authorization", RequestToken.DATE: b"x-ms-date"}
    kinds = (
        RequestToken.AUTHORIZATION_TOKEN,
        RequestToken.DATE,
        RequestToken.DATABASE_NAME,
        RequestToken.REPLICA_PATH,
    )
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=len(kinds), max_size=len(kinds)))
    used, order = REQUEST_TOKENS.with_texts_apart(apart), data.draw(st.permutations([0, 1, 2, 3, 4]))
    made = data.draw(st.randoms(use_true_random=True))
    for number in range(40):
        texts = [made.randbytes(size) for size in sizes]
        tokens: list[tuple[int, TokenValue]] = [
            *zip(kinds, texts, strict=True),
            (RequestToken.TRANSPORT_REQUEST_ID, number),
        ]
        written = REQUEST_TOKENS.write(dict([tokens[place] for place in order]))
        if number % 5 == 4:
            sizes[number % len(sizes)] += 1
            sizes[(number + 1) % len(sizes)] = max(0, sizes[(number + 1) % len(sizes)] - 1)
        found: list[Any] = []
        for table in (used, REQUEST_TOKENS.with_texts_apart(apart)):
            apart_read: dict[bytes, bytes] = {}
            found.append((table.read(bytes(HEAD_BYTES) + written, HEAD_BYTES, apart_read), apart_read))
        assert found[0] == found[1]
        assert {**found[0][0], **{RequestToken.DATE: found[0][1][b"x-ms-date"]}}.items() <= dict(
            tokens
        ).items()
