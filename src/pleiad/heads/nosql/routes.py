"""Every path of the protocol, with the operation behind each method."""

from __future__ import annotations

from collections.abc import Mapping

from pleiad.engine.operation import Operation
from pleiad.heads.http.route import Choice, Handler, Methods, Route
from pleiad.heads.nosql import (
    changes,
    conflicts,
    containers,
    databases,
    items,
    offers,
    pkranges,
    queries,
    scripts,
)
from pleiad.heads.nosql.account import AccountOperations
from pleiad.heads.nosql.batch import operation as batch
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.direct import addresses, barrier
from pleiad.heads.nosql.users import UserOperations

_PLAN = Route(Operation.PLAN_QUERY, queries.plan)
_QUERY = Route(Operation.QUERY_ITEMS, queries.query)
_BATCH = Route(Operation.RUN_BATCH, batch.execute)
_UPSERT = Route(Operation.UPSERT_ITEM, items.upsert)
_CREATE = Route(Operation.CREATE_ITEM, items.create)
_FEED = Route(Operation.LIST_ITEMS, items.feed_page)
_CHANGES = Route(Operation.READ_CHANGES, changes.page)


MARKS = frozenset(
    {
        b"x-ms-cosmos-is-query-plan-request",
        b"x-ms-documentdb-isquery",
        b"x-ms-cosmos-is-batch-request",
        b"x-ms-documentdb-is-upsert",
    }
)
"""The headers that make something else than a create of a POST, beside the type of a query."""


def _post_items(call: Call) -> Route[Call]:
    headers = call.request.headers
    if MARKS.isdisjoint(headers) and b"query" not in headers.get(b"content-type", b""):
        return _CREATE
    if call.flag(b"x-ms-cosmos-is-query-plan-request"):
        return _PLAN
    if call.is_query:
        return _CHANGES if b"a-im" in call.request.headers else _QUERY
    if call.flag(b"x-ms-cosmos-is-batch-request"):
        return _BATCH
    return _UPSERT if call.is_upsert else _CREATE


def _get_items(call: Call) -> Route[Call]:
    return _CHANGES if b"a-im" in call.request.headers else _FEED


def _feed(
    listed: Operation, queried: Operation, created: Operation, feed: Handler[Call], create: Handler[Call]
) -> Methods[Call]:
    """A feed's methods: POST creates unless it is marked as a query."""
    creation, query = Route(created, create), Route(queried, feed)

    def choose(call: Call) -> Route[Call]:
        return query if call.is_query else creation

    return {"POST": Choice(choose, creation, query), "GET": Route(listed, feed)}


def _child(users: UserOperations, read: Operation, replaced: Operation, deleted: Operation) -> Methods[Call]:
    return {
        "GET": Route(read, users.read),
        "PUT": Route(replaced, users.replace),
        "DELETE": Route(deleted, users.delete),
    }


def routes(
    users: UserOperations, account: AccountOperations, direct: bool = True
) -> dict[str, Methods[Call]]:
    """Every path of the protocol, with a star where a name or rid stands; `direct` says whether there are addresses."""
    return {
        "": {"GET": Route(Operation.READ_ACCOUNT, account.read)},
        "addresses": {"GET": Route(Operation.READ_ADDRESSES, addresses.read if direct else addresses.refuse)},
        **_database_routes(),
        **_item_routes(),
        **_script_routes(),
        **_user_routes(users),
        "offers": {
            "POST": Route(Operation.QUERY_OFFERS, offers.list_or_query),
            "GET": Route(Operation.LIST_OFFERS, offers.list_or_query),
        },
        "offers/*": {
            "GET": Route(Operation.READ_OFFER, offers.read),
            "PUT": Route(Operation.REPLACE_OFFER, offers.replace),
        },
    }


def _database_routes() -> Mapping[str, Methods[Call]]:
    return {
        "dbs": {
            **_feed(
                Operation.LIST_DATABASES,
                Operation.QUERY_DATABASES,
                Operation.CREATE_DATABASE,
                databases.list_or_query,
                databases.create,
            ),
            "HEAD": Route(Operation.LIST_DATABASES, barrier.of_master),
        },
        "dbs/*": {
            "GET": Route(Operation.READ_DATABASE, databases.read),
            "DELETE": Route(Operation.DELETE_DATABASE, databases.delete),
        },
        "dbs/*/colls": _feed(
            Operation.LIST_CONTAINERS,
            Operation.QUERY_CONTAINERS,
            Operation.CREATE_CONTAINER,
            containers.list_or_query,
            containers.create,
        ),
        "dbs/*/colls/*": {
            "GET": Route(Operation.READ_CONTAINER, containers.read),
            "PUT": Route(Operation.REPLACE_CONTAINER, containers.replace),
            "DELETE": Route(Operation.DELETE_CONTAINER, containers.delete),
            "HEAD": Route(Operation.READ_BARRIER, barrier.of_range),
        },
        "dbs/*/colls/*/pkranges": {"GET": Route(Operation.LIST_RANGES, pkranges.list_ranges)},
    }


def _item_routes() -> Mapping[str, Methods[Call]]:
    return {
        "dbs/*/colls/*/docs": {
            "POST": Choice(_post_items, _PLAN, _QUERY, _CHANGES, _BATCH, _UPSERT, _CREATE),
            "GET": Choice(_get_items, _CHANGES, _FEED),
        },
        "dbs/*/colls/*/docs/*": {
            "GET": Route(Operation.READ_ITEM, items.read),
            "PUT": Route(Operation.REPLACE_ITEM, items.replace),
            "PATCH": Route(Operation.PATCH_ITEM, items.patch),
            "DELETE": Route(Operation.DELETE_ITEM, items.delete),
        },
        "dbs/*/colls/*/operations/*": {
            "POST": Route(Operation.DELETE_PARTITION_KEY, items.delete_partition_key)
        },
        "dbs/*/colls/*/conflicts": {
            "GET": Route(Operation.LIST_CONFLICTS, conflicts.list_or_query),
            "POST": Route(Operation.QUERY_CONFLICTS, conflicts.list_or_query),
        },
        "dbs/*/colls/*/conflicts/*": {
            "GET": Route(Operation.READ_CONFLICT, conflicts.not_found),
            "DELETE": Route(Operation.DELETE_CONFLICT, conflicts.not_found),
        },
    }


def _script_routes() -> Mapping[str, Methods[Call]]:
    found: dict[str, Methods[Call]] = {}
    for segment in scripts.SEGMENTS:
        found[f"dbs/*/colls/*/{segment}"] = _feed(
            Operation.LIST_SCRIPTS,
            Operation.QUERY_SCRIPTS,
            Operation.CREATE_SCRIPT,
            scripts.list_or_query,
            scripts.create,
        )
        found[f"dbs/*/colls/*/{segment}/*"] = {
            "GET": Route(Operation.READ_SCRIPT, scripts.read),
            "PUT": Route(Operation.REPLACE_SCRIPT, scripts.replace),
            "DELETE": Route(Operation.DELETE_SCRIPT, scripts.delete),
        }
    procedure = "dbs/*/colls/*/sprocs/*"
    found[procedure] = {**found[procedure], "POST": Route(Operation.RUN_SCRIPT, scripts.execute)}
    return found


def _user_routes(users: UserOperations) -> Mapping[str, Methods[Call]]:
    feed, create = users.list_or_query, users.create
    return {
        "dbs/*/users": _feed(
            Operation.LIST_USERS, Operation.QUERY_USERS, Operation.CREATE_USER, feed, create
        ),
        "dbs/*/users/*": _child(users, Operation.READ_USER, Operation.REPLACE_USER, Operation.DELETE_USER),
        "dbs/*/users/*/permissions": _feed(
            Operation.LIST_PERMISSIONS,
            Operation.QUERY_PERMISSIONS,
            Operation.CREATE_PERMISSION,
            feed,
            create,
        ),
        "dbs/*/users/*/permissions/*": _child(
            users, Operation.READ_PERMISSION, Operation.REPLACE_PERMISSION, Operation.DELETE_PERMISSION
        ),
        "dbs/*/clientencryptionkeys": _feed(
            Operation.LIST_ENCRYPTION_KEYS,
            Operation.QUERY_ENCRYPTION_KEYS,
            Operation.CREATE_ENCRYPTION_KEY,
            feed,
            create,
        ),
        "dbs/*/clientencryptionkeys/*": _child(
            users,
            Operation.READ_ENCRYPTION_KEY,
            Operation.REPLACE_ENCRYPTION_KEY,
            Operation.DELETE_ENCRYPTION_KEY,
        ),
    }
