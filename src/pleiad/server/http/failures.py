"""What HTTP itself makes of failures: the rows that only HTTP has, and the status of every reason."""

from __future__ import annotations

from collections.abc import Mapping

from pleiad.errors import ErrorRow, PleiadError, Reason

BAD_HEADER = ErrorRow(Reason.INVALID, "Value '{value}' specified for the header '{name}' is invalid.{hint}")
UNKNOWN_HOST = ErrorRow(
    Reason.INVALID,
    "The request was sent to '{host}', which is none of this server's names. If it shall be one, start the server with "
    "--host-name and that name, or with PLEIAD_HOST_NAME.",
)
HTTPS_ONLY = ErrorRow(
    Reason.FORBIDDEN,
    "This server answers over HTTPS only: begin the address of the account with https://. What this request carried "
    "could be read on its way.",
)
ROUTE_NOT_FOUND = ErrorRow(Reason.MISSING, "There is nothing at this path: {path}")
METHOD_NOT_ALLOWED = ErrorRow(Reason.UNSUPPORTED, "{method} is not allowed on this resource.")
HEADERS_TOO_LARGE = ErrorRow(Reason.TOO_LARGE, "The request's headers are larger than {limit} bytes.")
HEADERS_TOO_MANY = ErrorRow(Reason.TOO_LARGE, "The request has more than {limit} headers.")

STATUS_OF_REASON: Mapping[Reason, int] = {
    Reason.INVALID: 400,
    Reason.UNSUPPORTED: 400,
    Reason.SCRIPT: 400,
    Reason.UNAUTHENTICATED: 401,
    Reason.FORBIDDEN: 403,
    Reason.FULL: 403,
    Reason.MISSING: 404,
    Reason.BEHIND: 404,
    Reason.TIMED_OUT: 408,
    Reason.EXISTS: 409,
    Reason.GONE: 410,
    Reason.PRECONDITION: 412,
    Reason.TOO_LARGE: 413,
    Reason.BUDGET: 400,
    Reason.LOCKED: 423,
    Reason.ABANDONED: 424,
    Reason.THROTTLED: 429,
    Reason.CONTENDED: 449,
    Reason.INTERNAL: 500,
    Reason.UNAVAILABLE: 503,
}
_STATUS_OF_ROW: Mapping[ErrorRow, int] = {
    METHOD_NOT_ALLOWED: 405,
    HEADERS_TOO_LARGE: 431,
    HEADERS_TOO_MANY: 431,
}
NAMES: Mapping[int, str] = {
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


def status_of(error: PleiadError) -> int:
    """The status of a failure: its row's own, or that of its reason."""
    return _STATUS_OF_ROW.get(error.row) or STATUS_OF_REASON[error.reason]
