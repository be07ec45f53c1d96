"""Who may do what: one decision for every head, from the caller and the operation that runs.

A caller holds the master key (everything), the read-only key (every read but of permissions, which carry tokens),
an identity token (data and reads of metadata, but neither permissions nor throughput nor the shape of databases and
containers), or a resource token (one container, or one partition key or item of it, to read or to change).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pleiad import errors
from pleiad.engine.operation import Area, Operation, Reach
from pleiad.keys.value import KeyValue, same


class Role(Enum):
    """How a caller proved who it is."""

    MASTER = "master key"
    READ_ONLY = "read-only key"
    IDENTITY = "identity token"
    RESOURCE = "resource token"
    NOBODY = "nothing"
    """Not at all, yet or ever."""


@dataclass(frozen=True, slots=True)
class GrantedItem:
    """The item a resource token is for. A link by name without a partition key says its id only."""

    id: str
    epk: bytes | None = None
    number: int | None = None
    """Its document number: an item created anew under the same name has another one."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a resource token allows: the rid of a container, where it is narrower an item or a partition key, to
    read or to change."""

    container_rid: str
    item: GrantedItem | None
    key: tuple[KeyValue, ...] | None
    may_write: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller."""

    role: Role
    grant: Grant | None = None
    ends_at: float | None = None
    """When its token ends, where it has one."""


MASTER = Caller(Role.MASTER)
READ_ONLY = Caller(Role.READ_ONLY)
IDENTITY = Caller(Role.IDENTITY)
NOBODY = Caller(Role.NOBODY)


@dataclass(frozen=True, slots=True)
class Target:
    """What a request wants to touch, as far as a resource token asks: container, partition key and item."""

    container_rid: str | None = None
    key: tuple[KeyValue, ...] | None = None
    key_is_full: bool = False
    """Whether the key has all levels of the container's: a prefix stands for many keys."""
    item: GrantedItem | None = None
    """The item in the path as it is now; its number is None while there is none."""
    runs_triggers: bool = False
    """Whether scripts run with the operation, which reach every item of the partition key."""


NOTHING = Target()

_IDENTITY_WRITES = frozenset({Area.ITEM, Area.CONFLICT})
_IDENTITY_NEVER = frozenset({Area.PERMISSION, Area.OFFER})


def check(caller: Caller, operation: Operation, target: Target = NOTHING) -> None:
    """Raises when the caller may not run the operation on the target."""
    if caller.role is Role.MASTER or operation.area is Area.OPEN:
        return
    if caller.role is Role.NOBODY:
        raise errors.UNAUTHORIZED(reason="The request does not prove who asks.")
    if caller.role is Role.READ_ONLY:
        if operation.writes:
            raise errors.FORBIDDEN(reason="The read-only key cannot authorize a write.")
        if operation.area is Area.PERMISSION:
            raise errors.FORBIDDEN(
                reason="The read-only key cannot read permissions: their tokens could authorize a write."
            )
        return
    if operation.area is Area.ADMIN:
        raise errors.FORBIDDEN(reason="The admin API needs the master key, or the read-only key for reads.")
    if caller.role is Role.IDENTITY:
        is_refused_write = operation.writes and operation.area not in _IDENTITY_WRITES
        if is_refused_write or operation.area in _IDENTITY_NEVER:
            raise errors.IDENTITY_FORBIDDEN(operation=operation.word)
        return
    assert caller.grant is not None
    _check_grant(caller.grant, operation, target)


def _check_grant(grant: Grant, operation: Operation, target: Target) -> None:
    reach = operation.reach
    if reach is Reach.ANY:
        return
    if target.container_rid != grant.container_rid:
        raise errors.FORBIDDEN(reason="The resource token is for another resource.")
    if operation.writes and (not grant.may_write or reach is Reach.OUTSIDE):
        raise errors.FORBIDDEN(reason="The resource token does not allow this change.")
    if reach is Reach.SHAPE:
        return
    if reach is Reach.OUTSIDE or (reach is Reach.WHOLE and not _is_for_all(grant)):
        raise errors.FORBIDDEN(reason="The resource token is for less than that.")
    if grant.item is not None:
        _check_item(grant.item, target.item)
        if target.runs_triggers:
            raise errors.FORBIDDEN(reason="The resource token is for one item, and triggers reach further.")
    if grant.key is not None and reach is not Reach.PLAN:
        _check_key(grant.key, target)


def _is_for_all(grant: Grant) -> bool:
    return grant.item is None and grant.key is None


def _check_item(granted: GrantedItem, wanted: GrantedItem | None) -> None:
    if wanted is not None and granted.number is not None and wanted.number == granted.number:
        return  # it may have been given another name
    if wanted is None or wanted.id != granted.id or granted.epk not in (None, wanted.epk):
        raise errors.FORBIDDEN(reason="The resource token is for another item.")
    if granted.number is not None and wanted.number is not None:
        raise errors.FORBIDDEN(
            reason="The resource token is for an item that was deleted; another has its name now."
        )


def _check_key(granted: tuple[KeyValue, ...], target: Target) -> None:
    if target.key is None or not target.key_is_full or not same(granted, target.key):
        raise errors.FORBIDDEN(reason="The resource token is for another partition key.")
