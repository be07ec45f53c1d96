"""Items by the number in their rid, for clients that address them by self links."""

from __future__ import annotations

from pleiad import charge, errors
from pleiad.engine import session
from pleiad.engine.container import Container
from pleiad.engine.items import Key, failed
from pleiad.engine.session import Session
from pleiad.engine.steady import over_moves
from pleiad.errors import PleiadError
from pleiad.store.rows import Row


@over_moves
async def row_of_number(container: Container, number: int) -> Row | None:
    """The row with a document number, for clients that address items by rid."""
    for partition in container.map.partitions:
        row = await partition.find(number)
        if row is not None:
            return row
    return None


def missing(container: Container, id: str, key: Key | None, seen: Session = ()) -> PleiadError:
    """What is told of an item that was looked for by its number and is not in the logical partition of the key."""
    _, partition = container.place_of(key)
    session.check(seen, partition, container.resource.number)
    return failed(container, partition, errors.ITEM_NOT_FOUND(id=id), charge.failed())
