"""Databases, containers and items of a running server, one method a request.

What the server refuses is a RequestRefusedError whose text is the server's own sentence. A partition key is the list
of its values, of which `{}` stands for one that an item does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pleiad.client.admin import RequestRefusedError, refusal
from pleiad.client.connection import Answer, Connection

KEY_HEADER = "x-ms-documentdb-partitionkey"
_PAGE_ITEMS_MAX = 1_000
_NO_OFFERS = 400


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned throughput; `autoscale` when the RU/s are the most it scales to."""

    ru: int
    autoscale: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """What asks for it when a database or container is created."""
        if self.autoscale:
            return {"x-ms-cosmos-offer-autopilot-settings": json.dumps({"maxThroughput": self.ru})}
        return {"x-ms-offer-throughput": str(self.ru)}


class Account:
    """Requests over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # -- databases and containers ------------------------------------------------------------------------

    def databases(self) -> list[dict[str, Any]]:
        """All of them, by name."""
        return sorted(self._all((), "dbs", "Databases"), key=_id)

    def containers(self, database: str) -> list[dict[str, Any]]:
        """Those of a database, by name."""
        return sorted(self._all(_link(database), "colls", "DocumentCollections"), key=_id)

    def throughputs(self) -> dict[str, Throughput]:
        """The throughput of each database and container that has some of its own, by rid."""
        try:
            offers = self._all((), "offers", "Offers")
        except RequestRefusedError as error:
            if error.status == _NO_OFFERS:
                return {}  # a serverless account
            raise
        return {offer["offerResourceId"]: _throughput(offer["content"]) for offer in offers}

    def read(self, database: str, container: str | None = None) -> dict[str, Any]:
        """The definition of a database or container."""
        return dict(self._ask("GET", _link(database, container)).json())

    def create_database(self, database: str, throughput: Throughput | None = None) -> dict[str, Any]:
        return self._create((), "dbs", {"id": database}, throughput)

    def create_container(
        self, database: str, definition: Mapping[str, Any], throughput: Throughput | None = None
    ) -> dict[str, Any]:
        return self._create(_link(database), "colls", definition, throughput)

    def delete(self, database: str, container: str | None = None) -> None:
        self._ask("DELETE", _link(database, container))

    # -- items -------------------------------------------------------------------------------------------

    def read_item(self, container: tuple[str, str], id: str, key: Sequence[Any]) -> Answer:
        return self._ask("GET", (*_link(*container), "docs", id), _key_headers(key))

    def create_item(self, container: tuple[str, str], item: Mapping[str, Any], key: Sequence[Any]) -> Answer:
        return self._add(container, item, _key_headers(key))

    def upsert_item(self, container: tuple[str, str], item: Mapping[str, Any], key: Sequence[Any]) -> Answer:
        return self._add(container, item, {**_key_headers(key), "x-ms-documentdb-is-upsert": "True"})

    def replace_item(
        self, container: tuple[str, str], item: Mapping[str, Any], key: Sequence[Any], if_match: str
    ) -> Answer:
        """Replaces an item that has this ETag; 412 when it has another."""
        headers = {**_key_headers(key), "If-Match": if_match}
        return self._ask("PUT", (*_link(*container), "docs", item["id"]), headers, item)

    def delete_item(
        self, container: tuple[str, str], id: str, key: Sequence[Any], if_match: str | None = None
    ) -> Answer:
        headers = _key_headers(key) | ({} if if_match is None else {"If-Match": if_match})
        return self._ask("DELETE", (*_link(*container), "docs", id), headers)

    def query(
        self,
        container: tuple[str, str],
        text: str,
        parameters: Mapping[str, Any] | None = None,
        key: Sequence[Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[Any]:
        """The results of a query, page by page, `limit` of them at most."""
        named = [{"name": f"@{name}", "value": value} for name, value in (parameters or {}).items()]
        headers = {} if key is None else _key_headers(key)
        left = limit
        while left is None or left > 0:
            headers["x-ms-max-item-count"] = str(min(left or _PAGE_ITEMS_MAX, _PAGE_ITEMS_MAX))
            answer = self._connection.query(_link(*container), {"query": text, "parameters": named}, headers)
            if not answer.is_success:
                raise refusal(answer)
            results = answer.json()["Documents"]
            yield from results[:left]
            headers["x-ms-continuation"] = answer.headers.get("x-ms-continuation", "")
            left = None if left is None else left - len(results)
            if not headers["x-ms-continuation"]:
                return

    # -- requests ----------------------------------------------------------------------------------------

    def _add(self, container: tuple[str, str], item: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        link = _link(*container)
        body = json.dumps(item).encode()
        return _checked(self._connection.request("POST", (*link, "docs"), "docs", link, headers, body))

    def _create(
        self,
        link: Sequence[str],
        kind: str,
        definition: Mapping[str, Any],
        throughput: Throughput | None,
    ) -> dict[str, Any]:
        headers = {} if throughput is None else throughput.headers
        body = json.dumps(definition).encode()
        return dict(
            _checked(self._connection.request("POST", (*link, kind), kind, link, headers, body)).json()
        )

    def _ask(
        self,
        method: str,
        path: Sequence[str],
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        """A request on one resource."""
        content = None if body is None else json.dumps(body).encode()
        return _checked(self._connection.request(method, path, path[-2], path, headers or {}, content))

    def _all(self, link: Sequence[str], kind: str, member: str) -> list[dict[str, Any]]:
        """Every resource of a list."""
        found: list[dict[str, Any]] = []
        headers: dict[str, str] = {}
        while True:
            answer = _checked(self._connection.request("GET", (*link, kind), kind, link, headers))
            found += answer.json()[member]
            continuation = answer.headers.get("x-ms-continuation", "")
            if not continuation:
                return found
            headers = {"x-ms-continuation": continuation}


def _id(resource: Mapping[str, Any]) -> str:
    return str(resource["id"])


def _checked(answer: Answer) -> Answer:
    if not answer.is_success:
        raise refusal(answer)
    return answer


def _link(database: str, container: str | None = None) -> tuple[str, ...]:
    return ("dbs", database) if container is None else ("dbs", database, "colls", container)


def _key_headers(key: Sequence[Any]) -> dict[str, str]:
    return {KEY_HEADER: json.dumps(list(key))}


def _throughput(content: Mapping[str, Any]) -> Throughput:
    autoscale = content.get("offerAutopilotSettings")
    if autoscale:
        return Throughput(int(autoscale["maxThroughput"]), autoscale=True)
    return Throughput(int(content["offerThroughput"]))
