"""The names of both contracts in one place."""

from __future__ import annotations

from pleiad.store.catalog import Record as Record
from pleiad.store.rows import APPLIED as APPLIED
from pleiad.store.rows import NEVER as NEVER
from pleiad.store.rows import NO_PRECONDITION as NO_PRECONDITION
from pleiad.store.rows import ItemKey as ItemKey
from pleiad.store.rows import LogicalPartition as LogicalPartition
from pleiad.store.rows import Mutation as Mutation
from pleiad.store.rows import Outcome as Outcome
from pleiad.store.rows import PartitionState as PartitionState
from pleiad.store.rows import PartitionWrite as PartitionWrite
from pleiad.store.rows import Precondition as Precondition
from pleiad.store.rows import Result as Result
from pleiad.store.rows import Row as Row
from pleiad.store.rows import Verb as Verb
from pleiad.store.rows import Version as Version
from pleiad.store.rows import WholeRow as WholeRow
from pleiad.store.segments import Segment as Segment
from pleiad.store.segments import SegmentDroppedError as SegmentDroppedError
from pleiad.store.segments import SegmentOutOfServiceError as SegmentOutOfServiceError
from pleiad.store.segments import Snapshot as Snapshot
from pleiad.store.store import Store as Store
