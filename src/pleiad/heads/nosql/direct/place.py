"""Where a frame was sent to: the range of its replica path, held against the partition map before it is served.

A client keeps the rid of a container, its ranges and their addresses until an answer tells it to look again, and the
sub-status says at what: 1000 at the container, 1002 at the ranges for a request by range, 1007 at the ranges for a
request by key. A request by key that was told 1002 would fail in the program.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.direct.replica_path import RangeAddress
from pleiad.heads.nosql.failures import CONTAINER_GONE
from pleiad.partition.partition import Partition

_CONTAINER_RID = b"x-ms-documentdb-collection-rid"
_RANGE_ID = b"x-ms-documentdb-partitionkeyrangeid"


class Place:
    """The place of one frame. `check` is asked when the caller is known to be allowed what it asks for."""

    __slots__ = ("_address", "container", "partition")

    def __init__(self, address: RangeAddress | None) -> None:
        self._address = address
        self.container: Container | None = None
        self.partition: Partition | None = None
        """The physical partition that was addressed, once it is found to be there."""

    @property
    def range_id(self) -> str:
        """The range that was addressed, whether it is there or not; empty for what is in no container."""
        return "" if self._address is None else self._address.range_id

    def check(self, call: Call) -> Awaitable[None] | None:
        """Raises when the client knows the container or its ranges as they are no more, at once or when awaited."""
        names = call.segments
        if len(names) < 4 or names[2] != "colls":
            return None
        container = call.engine.at_work.by_path.get((names[1], names[3]))
        if container is not None and self.is_in(container, call.request.headers):
            return None
        return self._look(call)

    def is_in(self, container: Container, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the client knows a container as it is now, with the range it addresses."""
        address, rid = self._address, container.rid_bytes
        if address is None or address.container_rid != container.resource.rid:
            return False
        partition = container.map.by_range_id(address.range_id)
        if partition is None or headers.get(_CONTAINER_RID, rid) != rid:
            return False
        self.container, self.partition = container, partition
        return True

    async def _look(self, call: Call) -> None:
        if await self._outdated(call) is None:
            return
        # Another server may have made what is missing here, and it may have been learned of this very moment.
        await call.engine.second_look(errors.RANGE_GONE(range=""))
        error = await self._outdated(call)
        if error is not None:
            raise error

    async def _outdated(self, call: Call) -> PleiadError | None:
        names, address = call.segments, self._address
        known = call.request.headers.get(_CONTAINER_RID, b"").decode("latin-1")
        try:
            container = call.engine.at_work.by_path.get((names[1], names[3])) or await call.engine.container(
                names[1], names[3]
            )
        except PleiadError as error:
            if error.row is not errors.OWNER_NOT_FOUND or not (known or address):
                raise
            return CONTAINER_GONE(id=names[3], given=known or (address.container_rid if address else ""))
        rid = container.resource.rid
        if known and known != rid:
            return CONTAINER_GONE(id=names[3], given=known)
        if address is None:
            return None
        if address.container_rid != rid:
            return CONTAINER_GONE(id=names[3], given=address.container_rid)
        partition = container.map.by_range_id(address.range_id)
        if partition is None:
            is_by_range = _RANGE_ID in call.request.headers
            row = errors.RANGE_GONE if is_by_range else errors.COMPLETING_SPLIT
            return row(range=address.range_id)
        self.container, self.partition = container, partition
        return None
