"""The error table: every failure that somebody who asks can see is one row.

A row is a reason and a text with named places. Calling a row fills the places and gives the exception to raise:

    raise errors.ITEM_NOT_FOUND(id="42")

The exception keeps what filled the places as facts. No protocol's codes stand here: each head has a table of its own
from reasons and rows to what its clients know, and may say the same facts in other words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Why a request fails, as far as everybody has to know it: what to do about it depends on this alone."""

    INVALID = "invalid"
    """The request is wrong as it stands."""
    UNSUPPORTED = "unsupported"
    """The request is well formed, and this is not done here."""
    SCRIPT = "script"
    """A script of the client's failed."""
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    FULL = "full"
    """A limit is reached that only fewer or smaller things help against."""
    MISSING = "missing"
    BEHIND = "behind"
    """A read asks for a moment that is not known here yet."""
    TIMED_OUT = "timed out"
    """It took too long; of a write nobody knows whether it was done."""
    EXISTS = "exists"
    GONE = "gone"
    """The physical partition that was asked is no more: look at the partition map again."""
    PRECONDITION = "precondition"
    TOO_LARGE = "too large"
    BUDGET = "budget"
    """It would take more than one request may have."""
    LOCKED = "locked"
    """Something else is being done to it that has to end first."""
    ABANDONED = "abandoned"
    """Not done because something failed that belonged to it."""
    THROTTLED = "throttled"
    CONTENDED = "contended"
    """Others changed the same thing at the same moment: try again."""
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"


class PleiadError(Exception):
    """A failure from the table, with its facts and the text that they make."""

    def __init__(
        self,
        row: ErrorRow,
        message: str,
        retry_after_ms: int | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.row = row
        self.message = message
        self.retry_after_ms = retry_after_ms
        self.facts: Mapping[str, object] = facts or {}
        """What filled the places of the text, for who says it in other words."""
        self.charge_ru: float | None = None
        self.range_id: str | None = None
        """The physical partition that failed."""
        self.lsn: int | None = None
        """Where that partition stands."""
        self.container_number: int | None = None
        self.query_plan: object = None
        """How a client that merges partitions itself would run the query that was refused."""
        self.number: int | None = None
        """The number that a script gave its error."""

    @property
    def reason(self) -> Reason:
        return self.row.reason


@dataclass(frozen=True, slots=True, eq=False)
class ErrorRow:
    """One row of the table; call it with the places of its text to make the exception."""

    reason: Reason
    text: str

    def __call__(self, *, retry_after_ms: int | None = None, **places: object) -> PleiadError:
        return PleiadError(self, self.text.format(**places), retry_after_ms, places)


# -- the request is wrong ----------------------------------------------------------------------
BAD_REQUEST = ErrorRow(Reason.INVALID, "{reason}")
BAD_JSON = ErrorRow(Reason.INVALID, "The request body is not valid JSON: {reason}")
BAD_ID = ErrorRow(Reason.INVALID, "The input name '{id}' is invalid. {reason}")
MISSING_ID = ErrorRow(
    Reason.INVALID, "The input content is invalid because the required properties - 'id; ' - are missing"
)
BAD_CONTINUATION = ErrorRow(
    Reason.INVALID, "The continuation '{token}' was not issued for this request by this server."
)
BAD_PLACE = ErrorRow(Reason.INVALID, "'{token}' is no place in this change feed.{hint}")
BAD_PARTITION_KEY = ErrorRow(Reason.INVALID, "The partition key supplied is invalid: {reason}")
MISSING_PARTITION_KEY = ErrorRow(Reason.INVALID, "PartitionKey value must be supplied for this operation.")
PARTITION_KEY_MISMATCH = ErrorRow(
    Reason.INVALID,
    "PartitionKey extracted from document doesn't match the one specified in the header. "
    "The item says {found}, the header says {given}.",
)
PARTITION_KEY_INCOMPLETE = ErrorRow(
    Reason.INVALID,
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key "
    "field values specified in the document. The key {given} does not have the {levels} levels of the container's "
    "partition key.",
)
CROSS_PARTITION_DISABLED = ErrorRow(
    Reason.INVALID, "The query goes to several logical partitions, which the request does not allow."
)
CROSS_PARTITION_NOT_SERVABLE = ErrorRow(
    Reason.UNSUPPORTED,
    "The provided cross partition query can not be directly served by the gateway. {reason}",
)
PARTITION_KEY_DEFINITION_MISSING = ErrorRow(
    Reason.INVALID, "The container needs a partition key: 'partitionKey' with 'paths' and 'kind' is missing."
)
VERSIONS_NOT_KEPT = ErrorRow(
    Reason.INVALID,
    "The change feed mode 'All Versions and Deletes' must be enabled for the container '{id}' before it can be read: "
    "give it a 'changeFeedPolicy' with a 'retentionDuration'.",
)
VERSIONS_FORGOTTEN = ErrorRow(
    Reason.INVALID,
    "You must read the change feed from within the retention period. This place is older than the {minutes} minutes "
    "for which the container keeps all versions and deletes; start again from now.",
)
QUERY_ERROR = ErrorRow(Reason.INVALID, "{reason}")
QUERY_TOO_DEEP = ErrorRow(Reason.INVALID, "The query works on values that are nested too deeply.")
QUERY_OUT_OF_MEMORY = ErrorRow(
    Reason.BUDGET,
    "The query was stopped: what it sorts, groups, lists or builds takes more than {limit} of memory. Let it read or "
    "return less.",
)
SCRIPT_NOT_COMPILED = ErrorRow(
    Reason.SCRIPT, "Encountered exception while compiling Javascript. Exception = {reason}"
)
SCRIPT_FAILED = ErrorRow(
    Reason.SCRIPT, "Encountered exception while executing Javascript. Exception = {reason}"
)
SCRIPT_LIMIT = ErrorRow(Reason.SCRIPT, "The script was stopped: {reason}")
TRIGGER_NOT_FOUND = ErrorRow(Reason.INVALID, "There is no trigger '{id}' in the container.")
TRIGGER_MISMATCH = ErrorRow(
    Reason.INVALID,
    "The trigger '{id}' cannot be used here: it is a {type}-trigger for the operation {operation}.",
)
NO_MIGRATION_TO_AUTOSCALE = ErrorRow(
    Reason.INVALID, "Manual throughput becomes autoscale by a migration, which works out the figure itself."
)
NO_MIGRATION_TO_MANUAL = ErrorRow(Reason.INVALID, "Autoscale becomes manual throughput by a migration.")
WEAKER_CONSISTENCY_ONLY = ErrorRow(
    Reason.INVALID, "The consistency level {given} is stronger than the account's level {account}."
)

# -- who asks, and what there is no room for ------------------------------------------------------
UNAUTHORIZED = ErrorRow(Reason.UNAUTHENTICATED, "{reason}")
FORBIDDEN = ErrorRow(Reason.FORBIDDEN, "{reason}")
IDENTITY_FORBIDDEN = ErrorRow(
    Reason.FORBIDDEN, "The operation '{operation}' cannot be authorized by an AAD token in the data plane."
)
CONTAINER_BEING_FILLED = ErrorRow(
    Reason.FORBIDDEN,
    "The container '{id}' is being filled by the copy {copy}, and takes writes when that is done or cancelled.",
)
CONTAINER_REPLACED = ErrorRow(
    Reason.FORBIDDEN,
    "The container '{id}' was replaced by its copy {copy} and is kept to be read: copy it to write to it again.",
)
PARTITION_KEY_FULL = ErrorRow(Reason.FULL, "Partition key reached maximum size of {limit}.")
FIXED_CONTAINER_FULL = ErrorRow(
    Reason.FULL,
    "The fixed container reached its maximum size of {limit}. For more, copy its items into a container with a "
    "partition key and enough throughput.",
)
TOO_MANY_RESOURCES = ErrorRow(Reason.FULL, "The limit of {limit} {what} is reached.")
NO_OFFERS = ErrorRow(Reason.UNSUPPORTED, "{operation} is not supported for serverless accounts.")
SHARED_DATABASE_FULL = ErrorRow(
    Reason.FULL,
    "The shared-throughput database holds its limit of {limit} containers; give this one its own throughput.",
)

ACCOUNT_THROUGHPUT_LIMIT = ErrorRow(
    Reason.FULL,
    "The account may have {limit} RU/s in all: it has {current} RU/s, and this request would make it {wanted} RU/s. "
    "Lower the throughput of another database or container, or raise the account's total throughput limit.",
)

# -- nothing there -----------------------------------------------------------------------------
_NOT_FOUND = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
"""The service's words, which clients look for."""
ITEM_NOT_FOUND = ErrorRow(
    Reason.MISSING, f"{_NOT_FOUND} The item '{{id}}' does not exist in this logical partition."
)
RESOURCE_NOT_FOUND = ErrorRow(Reason.MISSING, f"{_NOT_FOUND} There is no {{kind}} '{{id}}'.")
OWNER_NOT_FOUND = ErrorRow(Reason.MISSING, "Owner resource does not exist: there is no {kind} '{id}'.")
SESSION_NOT_AVAILABLE = ErrorRow(
    Reason.BEHIND,
    "The read session is not available for the input session token. The read/write session is not available: the token "
    "asks for LSN {given} of range {range}, which stands at {found}.",
)

# -- the state of things says no ----------------------------------------------------------------
REQUEST_TIMEOUT = ErrorRow(Reason.TIMED_OUT, "{reason}")
ITEM_EXISTS = ErrorRow(
    Reason.EXISTS, "Entity with the specified id already exists in the system. The id is '{id}'."
)
RESOURCE_EXISTS = ErrorRow(
    Reason.EXISTS, "Resource with specified id, name, or unique index already exists: {kind} '{id}'."
)
UNIQUE_KEY_CONFLICT = ErrorRow(Reason.EXISTS, "Unique index constraint violation on {paths}.")
CANNOT_SPLIT = ErrorRow(Reason.INVALID, "The partition key range {range} cannot be split: {reason}.")
CANNOT_MERGE = ErrorRow(Reason.INVALID, "These partition key ranges cannot be merged: {reason}")
COMPLETING_SPLIT = ErrorRow(
    Reason.GONE, "The partition key range {range} is being split or merged. Try again in a moment."
)
RANGE_GONE = ErrorRow(Reason.GONE, "The partition key range '{range}' is gone; refresh the ranges and retry.")
PRECONDITION_FAILED = ErrorRow(
    Reason.PRECONDITION,
    "One of the specified pre-condition is not met. Learn more: "
    "https://aka.ms/CosmosDB/sql/errors/precondition-failed",
)
PATCH_CONDITION_FAILED = ErrorRow(
    Reason.PRECONDITION,
    "One of the specified pre-condition is not met. The patch condition does not hold for this item.",
)
ITEM_TOO_LARGE = ErrorRow(
    Reason.TOO_LARGE,
    'Message: {{"Errors":["Request size is too large"]}}\r\nThe request has {size} bytes, the limit is {limit} bytes.',
)
BATCH_RESPONSE_TOO_LARGE = ErrorRow(
    Reason.TOO_LARGE,
    "The items of the batch's answer are larger than {limit} bytes; read them in smaller batches.",
)
SCRIPT_RESPONSE_TOO_LARGE = ErrorRow(
    Reason.TOO_LARGE, "The response body that the script set is larger than {limit} bytes."
)

# -- not now -----------------------------------------------------------------------------------
OFFER_PENDING = ErrorRow(
    Reason.LOCKED, "The throughput of this resource is being changed already; wait until that has ended."
)
BACKUP_UNDER_WAY = ErrorRow(Reason.LOCKED, "The backup '{name}' is being taken; wait until that has ended.")
COPY_UNDER_WAY = ErrorRow(Reason.LOCKED, "{reason}")
ADVICE_UNDER_WAY = ErrorRow(
    Reason.LOCKED,
    "An advice on '{container}' is being made, and there is one at a time: wait for it, or cancel it.",
)
FAILED_DEPENDENCY = ErrorRow(
    Reason.ABANDONED, "Not applied, because another operation of the same batch failed."
)
TOO_MANY_REQUESTS = ErrorRow(
    Reason.THROTTLED,
    "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request "
    "later.",
)
THROUGHPUT_BUCKET_EMPTY = ErrorRow(
    Reason.THROTTLED,
    "Request rate is large. The throughput bucket of this request has used its part of the throughput, so no changes "
    "were made. Please retry this request later.",
)
CONTAINER_EXCHANGED = ErrorRow(
    Reason.THROTTLED,
    "The container '{id}' has just been exchanged for its copy, so no changes were made. Please retry this request.",
)
TOO_MANY_BUCKET_CHANGES = ErrorRow(
    Reason.THROTTLED, "The throughput buckets of a container can be changed once in {seconds} seconds."
)
TOO_MANY_REDISTRIBUTIONS = ErrorRow(
    Reason.THROTTLED, "The throughput of a container can be redistributed {most} times in a minute."
)
TOO_MANY_METADATA_REQUESTS = ErrorRow(
    Reason.THROTTLED,
    "The request did not complete due to a high rate of metadata requests: databases, containers, offers and other "
    "metadata of the account have {limit} RU/s. Please retry this request later.",
)
TOO_MANY_HANDOVERS = ErrorRow(
    Reason.THROTTLED, "Links were tried too often with a wrong token. Please retry this request later."
)
QUERIES_OUT_OF_MEMORY = ErrorRow(
    Reason.THROTTLED,
    "The queries that run now take the {limit} of memory that queries have together. Please retry this request later.",
)
RETRY_WITH = ErrorRow(Reason.CONTENDED, "The item is being changed by concurrent requests; retry.")
INTERNAL = ErrorRow(
    Reason.INTERNAL, "An unexpected failure happened; the server's log tells more under this activity id."
)
UNAVAILABLE = ErrorRow(Reason.UNAVAILABLE, "{reason}")
OUT_OF_SERVICE = ErrorRow(
    Reason.UNAVAILABLE,
    "The data of this physical partition is damaged or missing and was taken out of service; nothing was changed, and "
    "retrying does not help. The operator finds the reason in the warnings of the server.",
)
STORE_FULL = ErrorRow(
    Reason.UNAVAILABLE,
    "The disk of the store is full or takes no writes; nothing was changed. Reads are served.",
)

# -- faults on demand: answers that somebody asked the admin API for ---------------------------------
FAULT_TOO_MANY_REQUESTS = ErrorRow(
    Reason.THROTTLED, "Request rate is large. The fault {id} asked for this answer."
)
FAULT_RETRY_WITH = ErrorRow(Reason.CONTENDED, "Retry the request. The fault {id} asked for this answer.")
FAULT_TIMEOUT = ErrorRow(Reason.TIMED_OUT, "The request timed out. The fault {id} asked for this answer.")
FAULT_RANGE_GONE = ErrorRow(
    Reason.GONE, "The partition key range is gone. The fault {id} asked for this answer."
)
FAULT_SPLITTING = ErrorRow(
    Reason.GONE, "The partition is completing a split. The fault {id} asked for this answer."
)
FAULT_INTERNAL = ErrorRow(Reason.INTERNAL, "An internal failure. The fault {id} asked for this answer.")
FAULT_UNAVAILABLE = ErrorRow(
    Reason.UNAVAILABLE, "The service is unavailable. The fault {id} asked for this answer."
)
