"""The official client as far as plans use it: the methods of its containers, and what its answers and errors say.

Nothing of it is imported before a plan runs, so that this room can be had where the client is not installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from pleiad.strategy.plan import Call, Create, Delete, Outcome, Query, Read, Refusal, Replace

MISSING_CLIENT = (
    "plans run through the official client, which is not installed here: pip install 'azure-cosmos>=4.9' "
    "(and aiohttp for run_async)"
)
_REFUSALS = {404: Refusal.ABSENT, 409: Refusal.EXISTS, 412: Refusal.CHANGED}
_CHARGE = "x-ms-request-charge"
_SESSION_TOKEN = "x-ms-session-token"


class Container(Protocol):
    """What is used of `azure.cosmos.ContainerProxy`."""

    def read_item(self, *given: Any, **named: Any) -> Mapping[str, Any]: ...
    def create_item(self, *given: Any, **named: Any) -> Mapping[str, Any]: ...
    def replace_item(self, *given: Any, **named: Any) -> Mapping[str, Any]: ...
    def delete_item(self, *given: Any, **named: Any) -> None: ...
    def query_items(self, *given: Any, **named: Any) -> Any: ...


class AsyncContainer(Protocol):
    """What is used of `azure.cosmos.aio.ContainerProxy`."""

    def read_item(self, *given: Any, **named: Any) -> Awaitable[Mapping[str, Any]]: ...
    def create_item(self, *given: Any, **named: Any) -> Awaitable[Mapping[str, Any]]: ...
    def replace_item(self, *given: Any, **named: Any) -> Awaitable[Mapping[str, Any]]: ...
    def delete_item(self, *given: Any, **named: Any) -> Awaitable[None]: ...
    def query_items(self, *given: Any, **named: Any) -> Any: ...


def is_async(container: Any) -> bool:
    """Whether a container is one of the asynchronous client."""
    return inspect.iscoroutinefunction(container.read_item)


def client_error() -> type[Exception]:
    """The class of all answers of the client that are failures; ModuleNotFoundError where it is not installed."""
    try:
        found: type[Exception] = import_module("azure.cosmos.exceptions").CosmosHttpResponseError
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING_CLIENT) from error
    return found


@dataclass(slots=True)
class Receipt:
    """What the answers to one call said beside their bodies."""

    charge_ru: float = 0.0
    requests: int = 0
    session_token: str | None = None

    def note(self, headers: Mapping[str, Any], _body: Any = None) -> None:
        """Takes the headers of an answer."""
        self.requests += 1
        self.charge_ru += float(headers.get(_CHARGE) or 0)
        self.session_token = headers.get(_SESSION_TOKEN, self.session_token)

    def outcome(self, items: tuple[Any, ...] = (), refusal: Refusal | None = None) -> Outcome:
        """Puts what was noted to what was found."""
        return Outcome(
            refusal=refusal,
            items=items,
            charge_ru=self.charge_ru,
            requests=self.requests,
            session_token=self.session_token,
        )

    def refused(self, error: Any) -> Outcome:
        """The outcome of a call that was refused in a way that plans know; raises every other error again.

        A 404 with a sub-status is no absent item: it is an absent container, or a replica that lags behind.
        """
        refusal = _REFUSALS.get(error.status_code)
        if refusal is None or (refusal is Refusal.ABSENT and error.sub_status):
            raise error
        self.note(error.headers)
        return self.outcome(refusal=refusal)


@dataclass(frozen=True, slots=True)
class Request:
    """A method of a container, with its arguments."""

    method: str
    arguments: dict[str, Any] = field(repr=False)


def request_of(call: Call, receipt: Receipt) -> Request:
    """The request that a call stands for; for a query, one that both clients take when it has a key."""
    named: dict[str, Any] = {"response_hook": receipt.note}
    match call:
        case Read(id, key, session_token):
            if session_token is not None:
                named["session_token"] = session_token
            return Request("read_item", {"item": id, "partition_key": key, **named})
        case Create(item):
            return Request("create_item", {"body": dict(item), **named})
        case Replace(item, etag):
            return Request(
                "replace_item", {"item": item["id"], "body": dict(item), **_unchanged(etag), **named}
            )
        case Delete(id, key, etag):
            return Request("delete_item", {"item": id, "partition_key": key, **_unchanged(etag), **named})
        case Query(text, parameters, key):
            if key is not None:
                named["partition_key"] = key
            bound = [{"name": name, "value": value} for name, value in parameters.items()]
            return Request("query_items", {"query": text, "parameters": bound, **named})


def _unchanged(etag: str | None) -> dict[str, Any]:
    if etag is None:
        return {}
    condition = import_module("azure.core").MatchConditions.IfNotModified
    return {"etag": etag, "match_condition": condition}
