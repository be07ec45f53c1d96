"""Session tokens: which LSN of which physical partition a client has seen.

A token is a comma list of `range:version#lsn`. The version is the number of the container, so the token of a deleted
container says nothing about its successor of the same name. LSNs go on over splits and merges, so what a token says of
a partition holds for its children. A read must not be older than its token; a token from the future, such as one of
another server, is refused instead of ignored.
"""

from __future__ import annotations

from functools import lru_cache

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.keys.range import EpkRange
from pleiad.partition.partition import Partition

_SHOWN_CHARS_MAX = 200


@lru_cache(maxsize=1024)
def check_form(token: str) -> None:
    """Raises when a text is no session token, whether or not the operation needs one."""
    for part in token.split(","):
        range_id, colon, vector = part.strip().partition(":")
        if not colon or not range_id:
            raise errors.BAD_SESSION_TOKEN(token=token[:_SHOWN_CHARS_MAX])
        _vector(vector, 1, token)


def check(token: str, partition: Partition, version: int) -> None:
    """Raises when the partition has not reached the LSN the token names for it."""
    for part in token.split(","):
        range_id, colon, vector = part.strip().partition(":")
        if not colon:
            raise errors.BAD_SESSION_TOKEN(token=token[:_SHOWN_CHARS_MAX])
        if range_id not in partition.lineage:
            continue
        wanted_version, wanted = _vector(vector, version, token)
        if wanted_version > version or (wanted_version == version and wanted > partition.lsn):
            error = errors.SESSION_NOT_AVAILABLE(given=wanted, range=range_id, found=partition.lsn)
            error.range_id = range_id
            raise error


def check_span(token: str, container: Container, span: EpkRange) -> None:
    """The check of a read that goes to every physical partition of a range; an empty token demands nothing."""
    if token:
        for partition in container.map.overlapping(span):
            check(token, partition, container.resource.number)


def _vector(vector: str, version: int, token: str) -> tuple[int, int]:
    """Version and LSN of one range; the old simple form and versions below one name only an LSN."""
    fields = vector.split("#")
    try:
        wanted = int(fields[-1] if len(fields) < 2 else fields[1])
        given = int(fields[0]) if len(fields) > 1 else 0
    except ValueError:
        raise errors.BAD_SESSION_TOKEN(token=token[:_SHOWN_CHARS_MAX]) from None
    return (given if given > 0 else version), wanted
