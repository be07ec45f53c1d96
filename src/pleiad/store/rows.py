"""Rows and what is done to them: the values that pass between a segment and the rooms above it.

Bodies are opaque texts, partition keys are epk bytes, and an item's identity is (epk, id).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Row(NamedTuple):
    """One stored item. `body` is the client's JSON text without system properties."""

    number: int
    epk: bytes
    id: str
    lsn: int
    ts: int
    ttl: int | None
    size_bytes: int
    terms: int
    body: bytes


class WholeRow(NamedTuple):
    """A row with what the store keeps beside it: the value of each unique key, in their order."""

    row: Row
    unique_values: tuple[bytes, ...] = ()


class ItemKey(NamedTuple):
    """What names an item in its segment."""

    epk: bytes
    id: str


class Verb(Enum):
    """What a mutation does to the row at (epk, id)."""

    CREATE = "create"
    UPSERT = "upsert"
    REPLACE = "replace"
    DELETE = "delete"


class Precondition(NamedTuple):
    """What must hold of the row before a mutation; the empty precondition always holds."""

    lsn: int | None = None
    """The row's LSN must be this one; NEVER matches no row."""
    not_lsn: int | None = None
    must_exist: bool = False
    must_be_absent: bool = False


NO_PRECONDITION = Precondition()
NEVER = -1


class Mutation(NamedTuple):
    """One change of one item, decided by the store against the row as it is at that moment."""

    verb: Verb
    epk: bytes
    id: str
    body: bytes = b""
    size_bytes: int = 0
    terms: int = 0
    ttl: int | None = None
    unique_values: tuple[bytes, ...] = ()
    precondition: Precondition = NO_PRECONDITION
    new_id: str | None = None
    """REPLACE only: the id the item has afterwards."""

    @property
    def id_after(self) -> str:
        """The id of the item once the mutation is applied."""
        return self.id if self.new_id is None else self.new_id

    def row_after(self, number: int, lsn: int, now: int) -> Row:
        """The row that the mutation leaves: it has the number of the row it found, or a new one."""
        return Row(
            number,
            self.epk,
            self.id if self.new_id is None else self.new_id,
            lsn,
            now,
            self.ttl,
            self.size_bytes,
            self.terms,
            self.body,
        )


class Result(Enum):
    """How a mutation ended."""

    __hash__ = (
        object.__hash__
    )  # that of Enum is a call in Python, and every write looks for its result in a set

    CREATED = "created"
    REPLACED = "replaced"
    DELETED = "deleted"
    EXISTS = "exists"
    MISSING = "missing"
    PRECONDITION_FAILED = "precondition failed"
    UNIQUE_CONFLICT = "unique conflict"
    LOGICAL_PARTITION_FULL = "logical partition full"
    PARTITION_FULL = "partition full"
    GONE = "gone"
    ABANDONED = "abandoned"
    """Another mutation of the same atomic write failed."""

    __hash__ = object.__hash__  # that of an enum is Python, and every mutation asks for it


APPLIED = frozenset({Result.CREATED, Result.REPLACED, Result.DELETED})


class Outcome(NamedTuple):
    """The end of one mutation: its LSN, the row it left, the row it found, the unique key that stood in the way.

    The LSN of a mutation that was not applied is 0, or that of the last expired row it removed with a version.
    """

    result: Result
    lsn: int = 0
    row: Row | None = None
    old: Row | None = None
    unique_key: int = 0


class PartitionWrite(NamedTuple):
    """Mutations of one physical partition, fenced by the epoch its owner knows."""

    partition: int
    epoch: int
    now: int
    mutations: tuple[Mutation, ...]
    default_ttl: int | None = None
    logical_partition_bytes: int = 0
    atomic: bool = False
    keep_versions: bool = False
    """Whether each change is to be remembered as a `Version`."""
    partition_bytes: int = 0
    """What the physical partition may hold where it can never be split; 0 is no limit."""
    is_alone: bool = False
    """Whether nobody else asks for anything: then it holds up nobody to wait for the disk where it is."""


class Version(NamedTuple):
    """One change of one item, with the item before and after it.

    (lsn, epk, position) names a version in its segment, also when the versions of several partitions meet there; it
    is their order too. Everything about a change is in its version, so versions may be copied between segments as
    they are.
    """

    lsn: int
    epk: bytes
    position: int
    """The place among the changes of one write; those of an atomic write share an LSN."""
    verb: Verb
    """CREATE, REPLACE or DELETE: what happened, not what was asked for."""
    is_expiry: bool
    """A DELETE because the time to live was over."""
    ts: int
    """When it happened: `now` of the write."""
    number: int
    id: str
    """The id after the change; of a DELETE the id the item had."""
    size_bytes: int
    """Of both images together."""
    body: bytes
    """The item after the change; empty for DELETE."""
    previous_lsn: int
    """LSN and time of the version before, both 0 for CREATE."""
    previous_ts: int
    previous_body: bytes
    """The item before the change; empty for CREATE."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The durable counters of one physical partition."""

    partition: int
    epoch: int
    lsn: int
    next_sequence: int
    items: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogicalPartition:
    """Size of one logical partition, and one of its items to name its key by."""

    epk: bytes
    items: int
    size_bytes: int
    sample_body: bytes
