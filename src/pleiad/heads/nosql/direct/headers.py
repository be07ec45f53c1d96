"""Request headers as tokens: which header each token of a request stands for, and how its value is written there.

Tokens that are not here name resources, belong to the transport, or are used inside the service only; the head knows
no header for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import cast

from pleiad.wire.rntbd.activity_id import activity_id_text
from pleiad.wire.rntbd.request_tokens import REQUEST_TOKENS
from pleiad.wire.rntbd.request_tokens import RequestToken as Token
from pleiad.wire.rntbd.token import TokenValue

RANGE_HEADER = b"x-ms-documentdb-partitionkeyrangeid"
_TEXTS: Mapping[int, bytes] = {
    Token.AUTHORIZATION_TOKEN: b"authorization",
    Token.DATE: b"x-ms-date",
    Token.SESSION_TOKEN: b"x-ms-session-token",
    Token.CONTINUATION_TOKEN: b"x-ms-continuation",
    Token.PRE_TRIGGER_INCLUDE: b"x-ms-documentdb-pre-trigger-include",
    Token.POST_TRIGGER_INCLUDE: b"x-ms-documentdb-post-trigger-include",
    Token.PRE_TRIGGER_EXCLUDE: b"x-ms-documentdb-pre-trigger-exclude",
    Token.POST_TRIGGER_EXCLUDE: b"x-ms-documentdb-post-trigger-exclude",
    Token.PARTITION_KEY: b"x-ms-documentdb-partitionkey",
    Token.PARTITION_KEY_RANGE_ID: RANGE_HEADER,
    Token.COLLECTION_RID: b"x-ms-documentdb-collection-rid",
    Token.A_IM: b"a-im",
    Token.IF_MODIFIED_SINCE: b"if-modified-since",
    Token.START_EPK: b"x-ms-start-epk",
    Token.END_EPK: b"x-ms-end-epk",
    Token.CHANGE_FEED_START_FULL_FIDELITY_IF_NONE_MATCH: b"x-ms-cosmos-start-full-fidelity-if-none-match",
    Token.INTENDED_COLLECTION_RID: b"x-ms-cosmos-intended-collection-rid",
    Token.CHANGE_FEED_WIRE_FORMAT_VERSION: b"x-ms-cosmos-changefeed-wire-format-version",
    Token.TRACE_PARENT: b"traceparent",
    Token.TRACE_STATE: b"tracestate",
    Token.SUPPORTED_QUERY_FEATURES: b"x-ms-cosmos-supported-query-features",
    Token.QUERY_VERSION: b"x-ms-cosmos-query-version",
}
"""Tokens whose bytes are the header's."""

_FLAGS: Mapping[int, bytes] = {
    Token.IS_FANOUT: b"x-ms-is-fanout-request",
    Token.ENABLE_SCAN_IN_QUERY: b"x-ms-documentdb-query-enable-scan",
    Token.EMIT_VERBOSE_TRACES_IN_QUERY: b"x-ms-documentdb-query-emit-traces",
    Token.ENABLE_LOW_PRECISION_ORDER_BY: b"x-ms-documentdb-query-enable-low-precision-order-by",
    Token.ENABLE_LOGGING: b"x-ms-documentdb-script-enable-logging",
    Token.POPULATE_QUOTA_INFO: b"x-ms-documentdb-populatequotainfo",
    Token.POPULATE_QUERY_METRICS: b"x-ms-documentdb-populatequerymetrics",
    Token.POPULATE_COLLECTION_THROUGHPUT_INFO: b"x-ms-documentdb-populatecollectionthroughputinfo",
    Token.IS_READ_ONLY_SCRIPT: b"x-ms-is-readonly-script",
    Token.FORCE_QUERY_SCAN: b"x-ms-documentdb-force-query-scan",
    Token.EXCLUDE_SYSTEM_PROPERTIES: b"x-ms-exclude-system-properties",
    Token.ALLOW_TENTATIVE_WRITES: b"x-ms-cosmos-allow-tentative-writes",
    Token.POPULATE_RESOURCE_COUNT: b"x-ms-documentdb-populateresourcecount",
    Token.IS_BATCH_ATOMIC: b"x-ms-cosmos-batch-atomic",
    Token.SHOULD_BATCH_CONTINUE_ON_ERROR: b"x-ms-cosmos-batch-continue-on-error",
    Token.IS_BATCH_ORDERED: b"x-ms-cosmos-batch-ordered",
    Token.IS_CLIENT_ENCRYPTED: b"x-ms-cosmos-is-client-encrypted",
    Token.POPULATE_INDEX_METRICS: b"x-ms-cosmos-populateindexmetrics",
    Token.POPULATE_INDEX_METRICS_V2: b"x-ms-cosmos-populateindexmetrics-v2",
    Token.SHOULD_RETURN_CURRENT_SERVER_DATE_TIME: b"x-ms-should-return-current-server-datetime",
    Token.OPTIMISTIC_DIRECT_EXECUTE: b"x-ms-cosmos-query-optimisticdirectexecute",
    Token.POPULATE_QUERY_ADVICE: b"x-ms-cosmos-populatequeryadvice",
}
_NUMBERS: Mapping[int, bytes] = {
    Token.RESOURCE_TOKEN_EXPIRY: b"x-ms-documentdb-expiry-seconds",
    Token.RESPONSE_CONTINUATION_TOKEN_LIMIT_IN_KB: b"x-ms-documentdb-responsecontinuationtokenlimitinkb",
    Token.TARGET_LSN: b"x-ms-target-lsn",
    Token.TARGET_GLOBAL_COMMITTED_LSN: b"x-ms-target-global-committed-lsn",
    Token.TIME_TO_LIVE_IN_SECONDS: b"x-ms-time-to-live-in-seconds",
    Token.MAX_POLLING_INTERVAL_MILLISECONDS: b"x-ms-cosmos-max-polling-interval",
    Token.SDK_SUPPORTED_CAPABILITIES: b"x-ms-cosmos-sdk-supportedcapabilities",
    Token.THROUGHPUT_BUCKET: b"x-ms-cosmos-throughput-bucket",
    Token.WORKLOAD_ID: b"x-ms-cosmos-workload-id",
}
_WORDS: Mapping[int, tuple[bytes, Mapping[int, bytes]]] = {
    Token.INDEXING_DIRECTIVE: (
        b"x-ms-indexing-directive",
        {0: b"Default", 1: b"Include", 2: b"Exclude"},
    ),
    Token.CONSISTENCY_LEVEL: (
        b"x-ms-consistency-level",
        {0: b"Strong", 1: b"BoundedStaleness", 2: b"Session", 3: b"Eventual", 4: b"ConsistentPrefix"},
    ),
    Token.ENUMERATION_DIRECTION: (b"x-ms-enumeration-direction", {1: b"Forward", 2: b"Reverse"}),
    Token.READ_FEED_KEY_TYPE: (
        b"x-ms-read-key-type",
        {1: b"ResourceId", 2: b"EffectivePartitionKey", 3: b"EffectivePartitionKeyRange"},
    ),
    Token.CONTENT_SERIALIZATION_FORMAT: (
        b"x-ms-documentdb-content-serialization-format",
        {0: b"JsonText", 1: b"CosmosBinary", 2: b"HybridRow"},
    ),
    Token.RETURN_PREFERENCE: (b"prefer", {0: b"return=representation", 1: b"return=minimal"}),
    Token.READ_CONSISTENCY_STRATEGY: (
        b"x-ms-cosmos-read-consistency-strategy",
        {1: b"Eventual", 2: b"Session", 3: b"LatestCommitted", 4: b"GlobalStrong"},
    ),
    Token.PRIORITY_LEVEL: (b"x-ms-cosmos-priority-level", {1: b"High", 2: b"Low"}),
}
"""Tokens that number words. A number without a word is told as it is, for the head to refuse."""

_PAGE_SIZE_OF_SERVER = 0xFFFFFFFF
_FORMATS_HEADER = b"x-ms-cosmos-supported-serialization-formats"
_FORMATS = {1: b"JsonText", 2: b"CosmosBinary", 4: b"HybridRow"}

Writer = Callable[[TokenValue], tuple[bytes, bytes]]
"""The header, and its value, of a token's value."""


def _text(name: bytes) -> Writer:
    return lambda value: (name, cast(bytes, value))


def _flag(name: bytes) -> Writer:
    yes, no = (name, b"True"), (name, b"False")
    return lambda value: yes if value else no


def _number(name: bytes) -> Writer:
    return lambda value: (name, str(value).encode())


def _word(name: bytes, words: Mapping[int, bytes]) -> Writer:
    pairs = {number: (name, word) for number, word in words.items()}
    return lambda value: pairs.get(cast(int, value)) or (name, str(value).encode())


def _page_size(value: TokenValue) -> tuple[bytes, bytes]:
    return b"x-ms-max-item-count", b"-1" if value == _PAGE_SIZE_OF_SERVER else str(value).encode()


def _formats(value: TokenValue) -> tuple[bytes, bytes]:
    names = [name for bit, name in _FORMATS.items() if cast(int, value) & bit]
    return _FORMATS_HEADER, b",".join(names)


def _correlated(value: TokenValue) -> tuple[bytes, bytes]:
    return b"x-ms-cosmos-correlated-activityid", activity_id_text(cast(bytes, value)).encode()


HEADERS: Mapping[int, Writer] = {
    **{token: _text(name) for token, name in _TEXTS.items()},
    **{token: _flag(name) for token, name in _FLAGS.items()},
    **{token: _number(name) for token, name in _NUMBERS.items()},
    **{token: _word(name, words) for token, (name, words) in _WORDS.items()},
    Token.PAGE_SIZE: _page_size,
    Token.SUPPORTED_SERIALIZATION_FORMATS: _formats,
    Token.CORRELATED_ACTIVITY_ID: _correlated,
}
"""What writes the header of each token that has one."""


def tokens_of(names: Set[bytes]) -> frozenset[int]:
    """The tokens of these headers that do not hold the bytes of the header."""
    named = {**_FLAGS, **_NUMBERS, **{token: name for token, (name, _) in _WORDS.items()}}
    named[Token.SUPPORTED_SERIALIZATION_FORMATS] = _FORMATS_HEADER
    return frozenset([token for token, name in named.items() if name in names])


REQUEST_TABLE = REQUEST_TOKENS.with_texts_apart(_TEXTS)
"""Reads frames of which most headers are there already, since their tokens hold the same bytes."""
