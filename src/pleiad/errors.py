"""The error table: every failure a client can see is one row.

A row is a status, a sub-status, a code and a text with named places. Calling a row fills the places and
gives the exception to raise:

    raise errors.ITEM_NOT_FOUND(id="42")

Nothing below a head knows HTTP, yet status and sub-status are the service's own vocabulary for failures, so
the table speaks it and every head translates from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_CODES = {
    304: "NotModified",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    423: "Locked",
    424: "FailedDependency",
    429: "TooManyRequests",
    431: "RequestHeaderFieldsTooLarge",
    449: "RetryWith",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}


class PleiadError(Exception):
    """A failure from the table, with the text that the client reads."""

    def __init__(self, row: ErrorRow, message: str, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.message = message
        self.retry_after_ms = retry_after_ms
        self.additional_info: str | None = None
        self.charge_ru: float | None = None
        self.range_id: str | None = None
        self.session_token: str | None = None
        self.lsn: int | None = None
        self.number: int | None = None
        """The number that a script gave its error, which is told in place of the row's own."""

    @property
    def status(self) -> int:
        return self.row.status

    @property
    def substatus(self) -> int:
        return self.row.substatus if self.number is None else self.number

    @property
    def code(self) -> str:
        return self.row.code


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One row of the table; call it with the places of its text to make the exception."""

    status: int
    substatus: int
    text: str
    code: str = field(default="")

    def __post_init__(self) -> None:
        if not self.code:
            object.__setattr__(self, "code", _CODES[self.status])

    def __call__(self, *, retry_after_ms: int | None = None, **places: object) -> PleiadError:
        return PleiadError(self, self.text.format(**places), retry_after_ms)


# -- 400: the request is wrong -------------------------------------------------------------------
BAD_REQUEST = ErrorRow(400, 0, "{reason}")
BAD_JSON = ErrorRow(400, 0, "The request body is not valid JSON: {reason}")
BAD_HEADER = ErrorRow(400, 0, "The value '{value}' specified for the header '{name}' is invalid.{hint}")
BAD_SESSION_TOKEN = ErrorRow(400, 0, "The session token provided '{token}' is invalid.")
UNKNOWN_HOST = ErrorRow(
    400,
    0,
    "The request was sent to '{host}', which is none of this server's names. If it shall be one, start the server with "
    "--host-name and that name, or with PLEIAD_HOST_NAME.",
)
BAD_ID = ErrorRow(400, 0, "The input name '{id}' is invalid. {reason}")
MISSING_ID = ErrorRow(
    400, 0, "The input content is invalid because the required properties - 'id; ' - are missing"
)
BAD_PARTITION_KEY = ErrorRow(400, 0, "The partition key supplied is invalid: {reason}")
MISSING_PARTITION_KEY = ErrorRow(400, 0, "PartitionKey value must be supplied for this operation.")
PARTITION_KEY_MISMATCH = ErrorRow(
    400,
    1001,
    "PartitionKey extracted from document doesn't match the one specified in the header: "
    "the item says {found}, the header says {given}.",
)
PARTITION_KEY_INCOMPLETE = ErrorRow(
    400,
    1001,
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key "
    "field values specified in the document. The key {given} does not have the {levels} levels of the container's "
    "partition key.",
)
DIRECT_MODE = ErrorRow(
    400,
    0,
    "Direct mode is not served here: use gateway mode. .NET: CosmosClientOptions.ConnectionMode = "
    "ConnectionMode.Gateway; Java: CosmosClientBuilder.gatewayMode().",
)
CROSS_PARTITION_DISABLED = ErrorRow(
    400,
    0,
    "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
    "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.",
)
CROSS_PARTITION_NOT_SERVABLE = ErrorRow(
    400,
    1004,
    "The provided cross partition query can not be directly served by the gateway. {reason}",
)
PARTITION_KEY_DEFINITION_MISSING = ErrorRow(
    400, 1013, "The container needs a partition key: 'partitionKey' with 'paths' and 'kind' is missing."
)
CONTAINER_RID_MISMATCH = ErrorRow(
    400,
    1024,
    "The container '{id}' has been recreated: its _rid is {found}, the request was meant for {given}.",
)
VERSIONS_NOT_KEPT = ErrorRow(
    400,
    0,
    "The change feed mode 'All Versions and Deletes' must be enabled for the container '{id}' before it can be read: "
    "give it a 'changeFeedPolicy' with a 'retentionDuration'.",
)
VERSIONS_START = ErrorRow(
    400,
    0,
    "The change feed mode 'All Versions and Deletes' starts from now (If-None-Match: *) or from a continuation, not "
    "from {origin}.",
)
VERSIONS_FORGOTTEN = ErrorRow(
    400,
    0,
    "You must read the change feed from within the retention period. This place is older than the {minutes} minutes "
    "for which the container keeps all versions and deletes; start again from now.",
)
QUERY_ERROR = ErrorRow(400, 0, "{reason}")
QUERY_TOO_DEEP = ErrorRow(400, 0, "The query works on values that are nested too deeply.")
QUERY_OUT_OF_MEMORY = ErrorRow(
    400,
    0,
    "The query was stopped: what it sorts, groups, lists or builds takes more than {limit} of memory. Let it read or "
    "return less.",
)
SCRIPT_NOT_COMPILED = ErrorRow(
    400, 65535, "Encountered exception while compiling Javascript. Exception = {reason}"
)
SCRIPT_FAILED = ErrorRow(400, 0, "Encountered exception while executing Javascript. Exception = {reason}")
SCRIPT_LIMIT = ErrorRow(400, 0, "The script was stopped: {reason}")
TRIGGER_NOT_FOUND = ErrorRow(400, 0, "There is no trigger '{id}' in the container.")
TRIGGER_MISMATCH = ErrorRow(
    400, 0, "The trigger '{id}' cannot be used here: it is a {type}-trigger for the operation {operation}."
)
WEAKER_CONSISTENCY_ONLY = ErrorRow(
    400, 0, "The consistency level {given} is stronger than the account's level {account}."
)

# -- 401 and 403: who asks ----------------------------------------------------------------------
UNAUTHORIZED = ErrorRow(401, 0, "{reason}")
FORBIDDEN = ErrorRow(403, 0, "{reason}")
CLOCK_SKEW = ErrorRow(
    403,
    0,
    "The authorization token is not valid at the current time. Token date: {given}; server time: {now}; "
    "the clocks may differ by {minutes} minutes.",
)
AAD_FORBIDDEN = ErrorRow(
    403, 5300, "The operation '{operation}' cannot be authorized by an AAD token in the data plane."
)
PARTITION_KEY_FULL = ErrorRow(403, 1014, "Partition key reached maximum size of {limit}.")
FIXED_CONTAINER_FULL = ErrorRow(
    403,
    0,
    "The fixed container reached its maximum size of {limit}. For more, copy its items into a container with a "
    "partition key and enough throughput.",
)
TOO_MANY_RESOURCES = ErrorRow(403, 1005, "The limit of {limit} {what} is reached.")
NO_OFFERS = ErrorRow(400, 0, "{operation} is not supported for serverless accounts.")
SHARED_DATABASE_FULL = ErrorRow(
    403,
    1019,
    "The shared-throughput database holds its limit of {limit} containers; give this one its own throughput.",
)

ACCOUNT_THROUGHPUT_LIMIT = ErrorRow(
    403,
    1028,
    "The account may have {limit} RU/s in all: it has {current} RU/s, and this request would make it {wanted} RU/s. "
    "Lower the throughput of another database or container, or raise the account's total throughput limit.",
)

# -- 404 and 405: nothing there ------------------------------------------------------------------
_NOT_FOUND = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
"""The service's words, which clients look for."""
ITEM_NOT_FOUND = ErrorRow(404, 0, f"{_NOT_FOUND} The item '{{id}}' does not exist in this logical partition.")
RESOURCE_NOT_FOUND = ErrorRow(404, 0, f"{_NOT_FOUND} There is no {{kind}} '{{id}}'.")
OWNER_NOT_FOUND = ErrorRow(404, 1003, "Owner resource does not exist: there is no {kind} '{id}'.")
SESSION_NOT_AVAILABLE = ErrorRow(
    404,
    1002,
    "The read session is not available for the input session token. The read/write session is not available: the token "
    "asks for LSN {given} of range {range}, which stands at {found}.",
)
ROUTE_NOT_FOUND = ErrorRow(404, 0, "There is nothing at this path: {path}")
METHOD_NOT_ALLOWED = ErrorRow(405, 0, "{method} is not allowed on this resource.")

# -- 408 to 413: state says no --------------------------------------------------------------------
REQUEST_TIMEOUT = ErrorRow(408, 0, "{reason}")
ITEM_EXISTS = ErrorRow(409, 0, "Entity with the specified id already exists in the system: '{id}'.")
RESOURCE_EXISTS = ErrorRow(
    409, 0, "Resource with specified id, name, or unique index already exists: {kind} '{id}'."
)
UNIQUE_KEY_CONFLICT = ErrorRow(409, 3301, "Unique index constraint violation on {paths}.")
CANNOT_SPLIT = ErrorRow(400, 0, "The partition key range {range} cannot be split: {reason}.")
CANNOT_MERGE = ErrorRow(400, 0, "These partition key ranges cannot be merged: {reason}")
COMPLETING_SPLIT = ErrorRow(
    410, 1007, "The partition key range {range} is being split or merged. Try again in a moment."
)
RANGE_GONE = ErrorRow(410, 1002, "The partition key range '{range}' is gone; refresh the ranges and retry.")
PRECONDITION_FAILED = ErrorRow(
    412, 0, "Operation cannot be performed: One of the specified pre-condition is not met."
)
PATCH_CONDITION_FAILED = ErrorRow(
    412,
    1110,
    "Operation cannot be performed: One of the specified pre-condition is not met. The patch condition does not hold "
    "for this item.",
)
ITEM_TOO_LARGE = ErrorRow(
    413,
    0,
    'Message: {{"Errors":["Request size is too large"]}} The request has {size} bytes, the limit is {limit} bytes.',
)
BATCH_RESPONSE_TOO_LARGE = ErrorRow(
    413, 3402, "The items of the batch's answer are larger than {limit} bytes; read them in smaller batches."
)
SCRIPT_RESPONSE_TOO_LARGE = ErrorRow(
    413, 0, "The response body that the script set is larger than {limit} bytes."
)
HEADERS_TOO_LARGE = ErrorRow(431, 0, "The request's headers are larger than {limit} bytes.")
HEADERS_TOO_MANY = ErrorRow(431, 0, "The request has more than {limit} headers.")

# -- 423 to 503: not now --------------------------------------------------------------------------
OFFER_PENDING = ErrorRow(
    423, 3205, "The throughput of this resource is being changed already; wait until that has ended."
)
FAILED_DEPENDENCY = ErrorRow(424, 0, "Not applied, because another operation of the same batch failed.")
TOO_MANY_REQUESTS = ErrorRow(
    429,
    3200,
    "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request "
    "later.",
)
THROUGHPUT_BUCKET_EMPTY = ErrorRow(
    429,
    3212,
    "Request rate is large. The throughput bucket of this request has used its part of the throughput, so no changes "
    "were made. Please retry this request later.",
)
TOO_MANY_BUCKET_CHANGES = ErrorRow(
    429, 3213, "The throughput buckets of a container can be changed once in {seconds} seconds."
)
TOO_MANY_REDISTRIBUTIONS = ErrorRow(
    429, 0, "The throughput of a container can be redistributed {most} times in a minute."
)
TOO_MANY_METADATA_REQUESTS = ErrorRow(
    429,
    3201,
    "The request did not complete due to a high rate of metadata requests: databases, containers, offers and other "
    "metadata of the account have {limit} RU/s. Please retry this request later.",
)
QUERIES_OUT_OF_MEMORY = ErrorRow(
    429,
    3200,
    "The queries that run now take the {limit} of memory that queries have together. Please retry this request later.",
)
RETRY_WITH = ErrorRow(449, 0, "The item is being changed by concurrent requests; retry.")
INTERNAL = ErrorRow(
    500, 0, "An unexpected failure happened; the server's log tells more under this activity id."
)
UNAVAILABLE = ErrorRow(503, 0, "{reason}")
OUT_OF_SERVICE = ErrorRow(
    503,
    0,
    "The data of this physical partition is damaged or missing and was taken out of service; nothing was changed, and "
    "retrying does not help. The operator finds the reason in the warnings of the server.",
)
STORE_FULL = ErrorRow(
    503, 0, "The disk of the store is full or takes no writes; nothing was changed. Reads are served."
)

# -- faults on demand: answers that somebody asked the admin API for ---------------------------------
FAULT_TOO_MANY_REQUESTS = ErrorRow(429, 3200, "Request rate is large. The fault {id} asked for this answer.")
FAULT_RETRY_WITH = ErrorRow(449, 0, "Retry the request. The fault {id} asked for this answer.")
FAULT_TIMEOUT = ErrorRow(408, 0, "The request timed out. The fault {id} asked for this answer.")
FAULT_RANGE_GONE = ErrorRow(
    410, 1002, "The partition key range is gone. The fault {id} asked for this answer."
)
FAULT_SPLITTING = ErrorRow(
    410, 1007, "The partition is completing a split. The fault {id} asked for this answer."
)
FAULT_INTERNAL = ErrorRow(500, 0, "An internal failure. The fault {id} asked for this answer.")
FAULT_UNAVAILABLE = ErrorRow(503, 0, "The service is unavailable. The fault {id} asked for this answer.")
