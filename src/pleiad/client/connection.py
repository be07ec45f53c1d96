"""A small signed client of the REST protocol.

One keep-alive connection with one request in flight. A request that is refused for its rate (429) waits as
long as the server says and is sent again, RETRIES_MAX times, unless that is longer than a person waits. A connection
that cannot be made or breaks is a ConnectionFailedError whose text is a sentence for the person at the terminal; other
answers are given back.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from pleiad.account.keys import decode_key
from pleiad.account.signature import authorization

VERSION = "2020-07-15"
RETRIES_MAX = 9
_RETRY_AFTER_MS_DEFAULT = 1_000
_WAIT_SECONDS_MAX = 30
_TIMEOUT_SECONDS = 65.0


class ConnectionFailedError(Exception):
    """No answer: the endpoint or the key is unusable, or nothing answers there."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as a JSON value; ValueError when it is none."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the body is nested too deeply") from None


class Connection:
    """Signed requests to one account, for the time of a with-block."""

    def __init__(
        self,
        endpoint: str,
        key: str,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        retries_max: int = RETRIES_MAX,
    ) -> None:
        self._endpoint = endpoint
        self._retries_max = retries_max
        self._timeout_seconds = timeout_seconds
        try:
            self._key = decode_key(key)
        except ValueError as error:
            raise ConnectionFailedError(f"the key cannot be used: {error}") from None
        self._http = _http_connection(endpoint, timeout_seconds)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def query(
        self, container_link: Sequence[str], document: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Answer:
        """One page of an item query; `container_link` is dbs, a name, colls, a name."""
        fields = {
            "Content-Type": "application/query+json",
            "x-ms-documentdb-isquery": "True",
            "x-ms-documentdb-query-enablecrosspartition": "True",
            **headers,
        }
        path = [*container_link, "docs"]
        return self.request("POST", path, "docs", container_link, fields, json.dumps(document).encode())

    def request(
        self,
        method: str,
        path: Sequence[str],
        resource_type: str,
        link: Sequence[str],
        headers: Mapping[str, str],
        body: bytes | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Answer:
        """One request, signed for a resource type and link, sent again while the server asks for patience."""
        target = "/" + "/".join(quote(name, safe="") for name in path)
        if parameters:
            target += f"?{urlencode(parameters)}"
        for attempt in range(self._retries_max + 1):
            date = formatdate(usegmt=True)
            fields = {
                "Accept": "application/json",
                "User-Agent": "pleiad-cli",
                "x-ms-version": VERSION,
                "x-ms-date": date,
                "authorization": authorization(self._key, method, resource_type, "/".join(link), date),
                **headers,
            }
            answer = self._send(method, target, fields, body)
            if answer.status != 429 or attempt == self._retries_max:
                break
            wait_seconds = _retry_after_seconds(answer)
            if wait_seconds > _WAIT_SECONDS_MAX:
                break
            time.sleep(wait_seconds)
        return answer

    def _send(self, method: str, target: str, fields: Mapping[str, str], body: bytes | None) -> Answer:
        try:
            self._http.request(method, target, body, dict(fields))
            response = self._http.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        except ConnectionRefusedError:
            raise ConnectionFailedError(
                f"nothing listens at {self._endpoint}: start a server with `pleiad serve`, "
                "or name another with --endpoint or PLEIAD_ENDPOINT"
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise ConnectionFailedError(
                f"the certificate of {self._endpoint} is not trusted ({error.verify_message}): "
                "use http://, or name the certificate in the variable SSL_CERT_FILE"
            ) from None
        except TimeoutError:
            raise ConnectionFailedError(
                f"{self._endpoint} gave no answer within {self._timeout_seconds:g} s"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConnectionFailedError(f"no answer from {self._endpoint}: {reason}") from None


def _http_connection(endpoint: str, timeout_seconds: float) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise ConnectionFailedError(f"'{endpoint}' is no endpoint; one looks like http://localhost:8081")
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_seconds)
    return http.client.HTTPConnection(host, port, timeout=timeout_seconds)


def _retry_after_seconds(answer: Answer) -> float:
    text = answer.headers.get("x-ms-retry-after-ms", "")
    milliseconds = int(text) if text.isascii() and text.isdigit() else _RETRY_AFTER_MS_DEFAULT
    return milliseconds / 1000
