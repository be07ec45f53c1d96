"""What clients of this protocol learn of a failure: status, sub-status, and the service's own words where it has some.

The status is that of HTTP (`server.failures`). Rows that only this protocol has stand here too.
"""

from __future__ import annotations

from collections.abc import Mapping

from pleiad import errors
from pleiad.errors import ErrorRow, PleiadError, Reason
from pleiad.server.http.failures import NAMES, status_of

BAD_SESSION_TOKEN = ErrorRow(Reason.INVALID, "The session token provided '{token}' is invalid.")
CONTAINER_RID_MISMATCH = ErrorRow(
    Reason.INVALID,
    "The container '{id}' has been recreated: its _rid is {found}, the request was meant for {given}.",
)
CONTAINER_GONE = ErrorRow(
    Reason.GONE,
    "The container '{id}' is not the one the request was meant for, whose _rid is {given}: read the container again.",
)
VERSIONS_START = ErrorRow(
    Reason.INVALID,
    "FullFidelity Change Feed must have valid If-None-Match header. You must read the change feed from within the "
    "retention period. The change feed mode 'All Versions and Deletes' starts from now (If-None-Match: *) or from a "
    "continuation, not from {origin}.",
)
DIRECT_MODE = ErrorRow(
    Reason.INVALID,
    "Direct mode is not served here: use gateway mode. .NET: CosmosClientOptions.ConnectionMode = "
    "ConnectionMode.Gateway; Java: CosmosClientBuilder.gatewayMode().",
)
CLOCK_SKEW = ErrorRow(
    Reason.FORBIDDEN,
    "The authorization token is not valid at the current time. Token date: {given}; server time: {now}; "
    "the clocks may differ by {minutes} minutes.",
)

_SUBSTATUS: Mapping[ErrorRow, int] = {
    errors.PARTITION_KEY_MISMATCH: 1001,
    errors.PARTITION_KEY_INCOMPLETE: 1001,
    errors.CROSS_PARTITION_NOT_SERVABLE: 1004,
    errors.PARTITION_KEY_DEFINITION_MISSING: 1013,
    CONTAINER_RID_MISMATCH: 1024,
    CONTAINER_GONE: 1000,
    errors.SCRIPT_NOT_COMPILED: 65535,
    errors.IDENTITY_FORBIDDEN: 5300,
    errors.PARTITION_KEY_FULL: 1014,
    errors.TOO_MANY_RESOURCES: 1005,
    errors.SHARED_DATABASE_FULL: 1019,
    errors.ACCOUNT_THROUGHPUT_LIMIT: 1028,
    errors.OWNER_NOT_FOUND: 1003,
    errors.SESSION_NOT_AVAILABLE: 1002,
    errors.UNIQUE_KEY_CONFLICT: 3301,
    errors.COMPLETING_SPLIT: 1007,
    errors.RANGE_GONE: 1002,
    errors.PATCH_CONDITION_FAILED: 1110,
    errors.BATCH_RESPONSE_TOO_LARGE: 3402,
    errors.OFFER_PENDING: 3205,
    errors.TOO_MANY_REQUESTS: 3200,
    errors.THROUGHPUT_BUCKET_EMPTY: 3212,
    errors.CONTAINER_EXCHANGED: 3200,
    errors.TOO_MANY_BUCKET_CHANGES: 3213,
    errors.TOO_MANY_METADATA_REQUESTS: 3201,
    errors.QUERIES_OUT_OF_MEMORY: 3200,
    errors.FAULT_TOO_MANY_REQUESTS: 3200,
    errors.FAULT_RANGE_GONE: 1002,
    errors.FAULT_SPLITTING: 1007,
}
_WORDS: Mapping[ErrorRow, str] = {
    # The gateway names what it asked a replica for behind all it says; some clients tell a missing item by it from what
    # is missing above it.
    errors.ITEM_NOT_FOUND: "Entity with the specified id does not exist in the system. "
    f"{errors.ITEM_NOT_FOUND.text} ResourceType: Document",
    errors.CROSS_PARTITION_DISABLED: "Cross partition query is required but disabled. Please set "
    "x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to "
    "avoid this exception.",
    errors.BAD_CONTINUATION: "Value '{token}' specified for the header 'x-ms-continuation' is invalid. Invalid "
    "Continuation Token. It was not issued for this request by this server.",
    errors.NO_MIGRATION_TO_AUTOSCALE: "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and offercontent must "
    "not contain autopilotSettings for migration from manual throughput to autoscale.",
    errors.NO_MIGRATION_TO_MANUAL: "x-ms-cosmos-migrate-offer-to-manual-throughput must be supplied for migration from "
    "autoscale to manual throughput.",
    errors.BAD_PLACE: "Value '{token}' specified for the header 'If-None-Match' is invalid.{hint}",
}
"""The same facts in the words that clients of the service look for."""
_REPLICA_WORDS: Mapping[ErrorRow, str] = {
    errors.ITEM_NOT_FOUND: errors.ITEM_NOT_FOUND.text,
    errors.ITEM_EXISTS: "Resource with specified id or name already exists.",
}
"""Where a replica of the service, which direct mode talks to, has other words than its gateway."""


def substatus_of(error: PleiadError) -> int:
    """The sub-status, 0 for none; the number that a script gave its error comes first."""
    return _SUBSTATUS.get(error.row, 0) if error.number is None else error.number


def code_of(error: PleiadError) -> str:
    return NAMES[status_of(error)]


def message_of(error: PleiadError) -> str:
    words = _WORDS.get(error.row)
    return error.message if words is None else words.format(**error.facts)


def replica_message_of(error: PleiadError) -> str:
    words = _REPLICA_WORDS.get(error.row)
    return message_of(error) if words is None else words.format(**error.facts)
