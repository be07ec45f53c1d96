"""How far a copy is, as catalog records of its target: one for the copy, one for each partition it came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pleiad.catalog.catalog import UNFINISHED_COPY
from pleiad.catalog.placement import Placement
from pleiad.store.catalog import CatalogStore, Record
from pleiad.store.moves import ExportMark

_HEAD = "account"
_NOTHING_YET = ExportMark()


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far rows and versions were copied, and how many items that were."""

    mark: ExportMark = _NOTHING_YET
    items: int = 0


class CopyRecords:
    """The records of one copy, in memory as in the target."""

    def __init__(self, target: CatalogStore, records: Iterable[Record]) -> None:
        self._target = target
        self._records = {record.rid: record for record in records}

    @property
    def fingerprint(self) -> str:
        """Of the account that is copied; empty when there is no copy to go on with."""
        head = self._records.get(_HEAD)
        return "" if head is None else str(head.body["fingerprint"])

    def of(self, placement: Placement) -> PartitionProgress:
        """How far the copy of a partition is."""
        record = self._records.get(_rid(placement))
        if record is None or "lsn" not in record.body:
            # A copy that an older version began noted another kind of place; what it wrote is written again.
            return PartitionProgress()
        body = record.body
        return PartitionProgress(ExportMark(body["lsn"], body["version_lsn"]), body["items"])

    def all(self) -> list[Record]:
        return list(self._records.values())

    async def note(self, placement: Placement, progress: PartitionProgress) -> None:
        """Notes durably how far the copy of a partition is."""
        mark = progress.mark
        body = {"lsn": mark.lsn, "version_lsn": mark.version_lsn, "items": progress.items}
        await self._put(_record(_rid(placement), body))

    async def restart(self, fingerprint: str) -> None:
        """Forgets how far the copy came; an empty fingerprint makes the next run clear the target."""
        gone = [record for record in self.all() if record.rid != _HEAD]
        head = _record(_HEAD, {"fingerprint": fingerprint})
        await self._target.save_records([head], gone)
        self._records = {_HEAD: head}

    async def _put(self, record: Record) -> None:
        await self._target.save_records([record], ())
        self._records[record.rid] = record


def _rid(placement: Placement) -> str:
    return f"{placement.container_rid}/{placement.id}"


def _record(rid: str, body: Mapping[str, str | int]) -> Record:
    return Record(UNFINISHED_COPY, rid, "", rid, dict(body))
