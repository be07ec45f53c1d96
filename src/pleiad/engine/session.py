"""Sessions: what a reader has seen of which physical partition, and that it is never shown less.

LSNs go on over splits and merges, so what was seen of a partition holds for its children. A read must not be older than
what its reader has seen; a moment from the future, such as one of another server, is refused instead of ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.keys.range import EpkRange
from pleiad.partition.partition import Partition


class Seen(NamedTuple):
    """The last change of one physical partition that a reader knows of."""

    range_id: str
    container_number: int
    """A deleted container says nothing about its successor of the same name; below 1 for whichever it is."""
    lsn: int


Session = Sequence[Seen]
"""All that a reader has seen; an empty one demands nothing."""


def check(session: Session, partition: Partition, container_number: int) -> None:
    """Raises when the partition has not reached what was seen of it."""
    for range_id, given, wanted in session:
        if range_id not in partition.lineage:
            continue
        number = given if given > 0 else container_number
        if number > container_number or (number == container_number and wanted > partition.lsn):
            error = errors.SESSION_NOT_AVAILABLE(given=wanted, range=range_id, found=partition.lsn)
            error.range_id = range_id
            raise error


def check_span(session: Session, container: Container, span: EpkRange) -> None:
    """The check of a read that goes to every physical partition of a range."""
    if session:
        for partition in container.map.overlapping(span):
            check(session, partition, container.resource.number)
