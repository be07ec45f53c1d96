"""Continuation tokens as a way around a scope: those of other callers, containers and queries, changed, forged.

Part of the class `rights`. A caller with a token for one partition key must not see or count anything beyond it.
"""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Iterable
from typing import Any

from attack.callers import Bearer, Caller
from attack.ground import CROSS, key_header, make_container, must, put
from attack.report import Outcome
from attack.target import MASTER
from attack.wire import Connection

QUERIES = (
    "SELECT * FROM c",
    "SELECT VALUE c.text FROM c",
    "SELECT VALUE c.text FROM c ORDER BY c.n",
    "SELECT VALUE c.text FROM c ORDER BY c.n DESC",
    "SELECT DISTINCT VALUE c.text FROM c",
    "SELECT DISTINCT VALUE c.text FROM c ORDER BY c.text",
    "SELECT c.text, COUNT(1) AS n FROM c GROUP BY c.text",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE c.text FROM c OFFSET 1 LIMIT 100",
    "SELECT VALUE t FROM c JOIN t IN c.tags",
    "SELECT TOP 50 VALUE c.text FROM c",
)
OWN_COUNT, OTHER_COUNT = 6, 14


def _ground(connection: Connection) -> tuple[list[str], list[str], Bearer]:
    """Two containers with items of two keys, and a caller who may read the key "a" of the first."""
    first, second = make_container(connection, "pages"), make_container(connection, "pages2")
    for container in (first, second):
        for number in range(OWN_COUNT + OTHER_COUNT):
            pk = "a" if number < OWN_COUNT else "b"
            mark = "own" if pk == "a" and container is first else "foreign"
            item = {"id": str(number), "pk": pk, "n": 1000 if pk == "b" else 1}
            put(
                connection,
                container,
                {**item, "text": f"MARK-{mark}-{number}", "tags": [f"MARK-{mark}", number]},
            )
    body = {
        "id": "pages",
        "permissionMode": "Read",
        "resource": "/".join(first),
        "resourcePartitionKey": ["a"],
    }
    made = must(connection, "POST", ["dbs", "ground", "users", "u", "permissions"], body)
    return first, second, Bearer("key token", made.json["_token"])


def _tokens(
    connection: Connection, caller: Caller, container: list[str], query: str, key: str | None
) -> list[str]:
    """The continuations of all pages of a query, one result at a time."""
    found: list[str] = []
    scope = key_header(key) if key else {}
    token = ""
    for _ in range(OWN_COUNT + OTHER_COUNT):
        headers = {**CROSS, **scope, "x-ms-max-item-count": "1"}
        if token:
            headers["x-ms-continuation"] = token
        answer = connection.send(caller, "POST", [*container, "docs"], {"query": query}, headers)
        token = answer.continuation if answer.status == 200 else ""
        if not token:
            break
        found.append(token)
    return found


def _flipped(token: str, dice: random.Random, count: int) -> Iterable[str]:
    """The token with one character or one bit changed, cut, doubled, or opened and put together again."""
    for _ in range(count):
        place = dice.randrange(len(token))
        other = dice.choice('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_={}[],:"')
        if other != token[place]:
            yield token[:place] + other + token[place + 1 :]
    yield token[: len(token) // 2]
    yield token + token
    for text in _opened(token):
        for old, new in (("true", "false"), ('"a"', '"b"'), ("0", "1"), ("1", "0"), ("FF", "00")):
            if old in text:
                changed = text.replace(old, new)
                yield base64.b64encode(changed.encode()).decode()
                yield base64.urlsafe_b64encode(changed.encode()).decode().rstrip("=")


def _resealed(token: str) -> Iterable[str]:
    """The token with another place in it and its checksum put right, where a checksum is all that guards it.

    A checksum is linear: of two states of one length the difference of their checksums is known without any secret.
    """
    for text in _opened(token):
        try:
            state = json.loads(text)
        except ValueError:
            continue
        if not isinstance(state, dict) or not isinstance(state.get("f"), int):
            continue
        seal = state.pop("f")
        old = _compact(state)
        for new in {_compact(changed) for changed in _moved(state)}:
            if len(new) == len(old) and new != old:
                right = seal ^ zlib.crc32(old) ^ zlib.crc32(new)
                whole = b'{"f":%d,' % right + new[1:]
                yield base64.urlsafe_b64encode(whole).decode()


def _moved(state: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The state with other ranges of hashes, places and sums, as long as before."""
    low, high = "0" * 32, "F" * 34
    if "p" in state:
        yield {**state, "p": [[low, high, piece[2]] for piece in state["p"]]}
        if "r" in state:
            yield {**state, "p": [[low, high, piece[2]] for piece in state["p"]], "r": [low]}
    for name in ("u", "t", "k"):
        if name in state:
            yield {**state, name: json.loads(json.dumps(state[name]).replace("1", "9"))}
    if "c" in state:
        yield {**state, "c": 9 - state["c"] % 9}


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _opened(token: str) -> Iterable[str]:
    for decode in (base64.b64decode, base64.urlsafe_b64decode):
        try:
            yield decode(token + "=" * (-len(token) % 4)).decode()
        except ValueError:
            continue


FORGED = (
    "W10=", "W1siIiwiRkYiLDBdXQ==", "W1siRkYiLCIiLDBdXQ==", "WzFd", "e30=", "bnVsbA==", "0", "AAAA", "-1",
    json.dumps({"token": None, "range": {"min": "", "max": "FF"}}), '[{"token":null,"range":{"min":"","max":"FF"}}]',
)  # fmt: skip


def attack(outcome: Outcome, connection: Connection, seed: int, brief: bool = False) -> None:
    """Every token against every query of the caller; then changed and forged ones."""
    first, second, caller = _ground(connection)
    dice = random.Random(seed)
    pages = 0
    for query in QUERIES[2:7:2] if brief else QUERIES:
        own = _tokens(connection, caller, first, query, "a")
        pages += len(own)
        foreign = _tokens(connection, MASTER, first, query, None)
        foreign += _tokens(connection, MASTER, first, query, "b")
        foreign += _tokens(connection, MASTER, second, query, "a")
        foreign += [
            token for other in QUERIES[:3] for token in _tokens(connection, MASTER, first, other, None)[:2]
        ]
        for token in [*foreign, *FORGED]:
            _replay(outcome, connection, caller, first, query, token, "of another caller or scope")
        for token in own[:2]:
            for changed in (*_flipped(token, dice, 12), *_resealed(token)):
                if changed != token:
                    taken = _replay(outcome, connection, caller, first, query, changed, "changed")
                    if taken and not _means_the_same(token, changed):
                        outcome.breaks(f"a changed continuation was taken: {query}: {token} as {changed}")

    if not pages:
        outcome.breaks("no query gave a continuation, so nothing was tried with one")


def _means_the_same(token: str, changed: str) -> bool:
    """Whether the change is one that base64 does not see, such as other spare bits at its end."""
    return any(one == other for one in _bytes(token) for other in _bytes(changed))


def _bytes(token: str) -> list[bytes]:
    found = []
    for decode in (base64.b64decode, base64.urlsafe_b64decode):
        try:
            found.append(decode(token + "=" * (-len(token) % 4)))
        except ValueError:
            continue
    return found


def _replay(
    outcome: Outcome,
    connection: Connection,
    caller: Caller,
    container: list[str],
    query: str,
    token: str,
    what: str,
) -> bool:
    """Whether the token was taken; nothing beyond the caller's key may be in the answer, and no number of it."""
    headers = {**CROSS, **key_header("a"), "x-ms-continuation": token}
    answer = connection.send(caller, "POST", [*container, "docs"], {"query": query}, headers)
    told = f"continuation {what}: {query}: {token[:300]} -> {answer.status}"
    outcome.answered(answer.status, told)
    if answer.status >= 300:
        return False
    if b"MARK-foreign" in answer.body:
        outcome.trespass(f"{told} shows an item of another scope")
    for value in answer.json["Documents"]:
        numbers = [value] if isinstance(value, int | float) else []
        if isinstance(value, dict) and "n" in value and "id" not in value:
            numbers.append(value["n"])
        if "JOIN" not in query and any(number > OWN_COUNT for number in numbers):
            outcome.trespass(f"{told} counts items of another scope: {value}")
    return True
