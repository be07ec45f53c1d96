"""Session tokens: which LSN of which physical partition a client has seen.

A token is a comma list of `range:version#lsn`. A read must not be older than its token; a token from the future,
such as one of another server, is refused instead of ignored.
"""

from __future__ import annotations

from pleiad import errors
from pleiad.partition.partition import Partition


def check(token: str, partition: Partition) -> None:
    """Raises when the partition has not reached the LSN the token names for it."""
    for part in token.split(","):
        range_id, colon, vector = part.strip().partition(":")
        if not colon:
            raise errors.BAD_HEADER(name="x-ms-session-token", value=token, hint="")
        if range_id != partition.range_id:
            continue
        wanted = _lsn(vector, token)
        if wanted > partition.lsn:
            error = errors.SESSION_NOT_AVAILABLE(given=wanted, range=range_id, found=partition.lsn)
            error.range_id = range_id
            raise error


def _lsn(vector: str, token: str) -> int:
    fields = vector.split("#")
    try:
        return int(fields[1] if len(fields) > 1 else fields[0])
    except ValueError:
        raise errors.BAD_HEADER(name="x-ms-session-token", value=token, hint="") from None
