"""Who may do what: the rights of a caller, decided here for every head.

A caller holds the master key (everything), the read-only key (every read but of permissions, which carry tokens),
an identity token (data, but neither permissions nor the shape of databases and containers), or a resource token (one
container or item, read or all).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pleiad import errors
from pleiad.keys.value import KeyValue, same


class Role(Enum):
    """How a caller proved who it is."""

    MASTER = "master key"
    READ_ONLY = "read-only key"
    IDENTITY = "identity token"
    RESOURCE = "resource token"


@dataclass(frozen=True, slots=True)
class Grant:
    """What a resource token allows: the rids of a database and container, where it is narrower an item or a
    partition key, to read or to change."""

    container_path: tuple[str, ...]
    item_id: str | None
    key: tuple[KeyValue, ...] | None
    may_write: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller."""

    role: Role
    grant: Grant | None = None


MASTER = Caller(Role.MASTER)
READ_ONLY = Caller(Role.READ_ONLY)
IDENTITY = Caller(Role.IDENTITY)


@dataclass(frozen=True, slots=True)
class Access:
    """What a request wants to touch. `container_path` is the rids of its database and container, where it has any."""

    writes: bool
    is_data: bool
    container_path: tuple[str, ...] = ()
    item_id: str | None = None
    key: tuple[KeyValue, ...] | None = None
    is_account_read: bool = False
    is_permission: bool = False
    operation: str = ""
    is_admin: bool = False


def check(caller: Caller, access: Access) -> None:
    """Raises when the caller may not do what the request wants."""
    if caller.role is Role.MASTER:
        return
    if caller.role is Role.READ_ONLY:
        if access.writes:
            raise errors.FORBIDDEN(reason="The read-only key cannot authorize a write.")
        if access.is_permission:
            raise errors.FORBIDDEN(
                reason="The read-only key cannot read permissions: their tokens could authorize a write."
            )
        return
    if access.is_admin:
        raise errors.FORBIDDEN(reason="The admin API needs the master key, or the read-only key for reads.")
    if caller.role is Role.IDENTITY:
        if access.is_permission or (access.writes and not access.is_data):
            raise errors.AAD_FORBIDDEN(operation=access.operation)
        return
    assert caller.grant is not None
    if not access.is_account_read:
        _check_grant(caller.grant, access)


def _check_grant(grant: Grant, access: Access) -> None:
    if len(grant.container_path) != 2 or access.container_path != grant.container_path:
        raise errors.FORBIDDEN(reason="The resource token is for another resource.")
    if access.writes and (not grant.may_write or not access.is_data):
        raise errors.FORBIDDEN(reason="The resource token does not allow this change.")
    if not access.is_data:
        return
    if grant.item_id is not None and access.item_id != grant.item_id:
        raise errors.FORBIDDEN(reason="The resource token is for another item.")
    if grant.key is not None and (access.key is None or not same(grant.key, access.key)):
        raise errors.FORBIDDEN(reason="The resource token is for another partition key.")
