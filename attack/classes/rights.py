"""Nobody does or sees what his right does not cover.

Every route is asked by every kind of caller with every flag that could change what the route does. After each round
the whole account is compared with what it was; every answer is searched for marks that this caller must not see. So
nothing depends on the status a refusal has. Then come the confusions: rids of other containers, containers made anew
under an old name, empty partition keys, continuation tokens of others, changed ones, and names of other hosts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attack import probes as routes
from attack.callers import Bearer, Caller, identity
from attack.classes import continuations, hosts
from attack.ground import changed, key_header, make_container, make_database, must, put, state_of
from attack.probes import AWAY, CLOSED, FLAGS, OWN, SCRIPT, TRIGGER, Probe
from attack.report import Outcome
from attack.settings import Settings
from attack.target import MASTER, NOBODY, READ_ONLY, STRANGER, Launch, Target, serving
from attack.wire import Answer, Connection, NoAnswerError

MARKS = ("own", "same-key", "same-id", "other-key", "container", "database", "script", "encryption")
ITEMS = (
    (OWN, "1", "a", "own"),
    (OWN, "2", "a", "same-key"),
    (OWN, "1", "b", "same-id"),
    (OWN, "3", "b", "other-key"),
    (CLOSED, "1", "a", "container"),
    (AWAY, "1", "a", "database"),
)
FEW_FLAGS = ("plain", "isquery", "plan", "bulk", "every flag")
"""What a short run asks with."""
BRIEF_FLAGS = ("isquery", "plan", "bulk")
BRIEF_NAMES = (
    READ_ONLY.name,
    "identity",
    "key token, read",
    "item token, read",
    "key-all token, all",
    NOBODY.name,
)
LIMITS = {"resource_token_seconds_min": 1}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A caller, the marks it may see, and the paths of the state it may change."""

    caller: Caller
    sees: frozenset[str]
    changes: tuple[str, ...] = ()
    sees_tokens: bool = False
    is_known: bool = True
    """False: the server must not serve it at all, beyond what is open to everybody."""

    @property
    def name(self) -> str:
        """How the report calls it."""
        return self.caller.name


def prepare(connection: Connection) -> str:
    """Makes the account; returns the id of an offer."""
    make_database(connection)
    for name in ("idle",):
        make_database(connection, name)
        make_container(connection, name)
    make_container(connection, "open")
    make_container(connection, "closed")
    make_container(connection, "open", "second")
    restore(connection)
    for container in (OWN, CLOSED, AWAY):
        must(connection, "POST", [*container, "sprocs"], {"id": "s", "body": SCRIPT})
        must(connection, "POST", [*container, "triggers"], TRIGGER)
        must(connection, "POST", [*container, "udfs"], {"id": "f", "body": SCRIPT})
    key = {"id": "cek", "wrapped": "MARK-encryption"}
    must(connection, "POST", ["dbs", "ground", "clientencryptionkeys"], key)
    must(connection, "POST", ["dbs", "ground", "clientencryptionkeys"], {"id": "idle", "wrapped": "x"})
    for user in ("u", "idle"):
        must(connection, "POST", ["dbs", "ground", "users"], {"id": user})
    token(connection, "p", "All", "/".join(OWN))
    token(connection, "idle", "All", "/".join(OWN))
    return str(connection.send(MASTER, "GET", ["offers"]).json["Offers"][0]["id"])


def restore(connection: Connection) -> None:
    """Puts every item back as it was."""
    for container, id, pk, mark in ITEMS:
        put(connection, container, {"id": id, "pk": pk, "text": f"MARK-{mark}"})


def token(
    connection: Connection,
    id: str,
    mode: str,
    resource: str,
    key: Any = None,
    seconds: int = 3600,
    user: str = "u",
) -> str:
    """A new permission's token."""
    body = {"id": id, "permissionMode": mode, "resource": resource}
    if key is not None:
        body["resourcePartitionKey"] = key
    answer = must(
        connection,
        "POST",
        ["dbs", "ground", "users", user, "permissions"],
        body,
        x_ms_documentdb_is_upsert="True",
        x_ms_documentdb_expiry_seconds=str(seconds),
    )
    return str(answer.json["_token"])


def suspects(connection: Connection) -> list[Suspect]:
    """Every kind of caller but the master key, with what each may see and change."""
    own, item = "/".join(OWN), "/".join([*OWN, "docs", "1"])
    items = frozenset(MARKS[:6])
    in_container, in_key = frozenset({*MARKS[:4], "script"}), frozenset(MARKS[:2])
    docs = f"{own}/docs"
    scripts = tuple(f"{own}/{kind}" for kind in ("sprocs", "triggers", "udfs"))

    def holder(name: str, mode: str, resource: str, key: Any = None) -> Bearer:
        return Bearer(f"{name} token, {mode.lower()}", token(connection, name, mode, resource, key))

    expired = Bearer("expired token", token(connection, "expired", "All", own, seconds=1))
    return [
        Suspect(READ_ONLY, frozenset(MARKS)),
        Suspect(identity(MASTER.key), items | {"script", "encryption"}, _data_paths()),
        Suspect(identity(MASTER.key, encoded=False), items | {"script", "encryption"}, _data_paths()),
        Suspect(holder("container", "Read", own), in_container),
        Suspect(holder("key", "Read", own, ["a"]), in_key),
        Suspect(holder("item", "Read", item, ["a"]), frozenset({"own"})),
        Suspect(holder("container-all", "All", own), in_container, (docs, *scripts)),
        Suspect(holder("key-all", "All", own, ["a"]), in_key, (docs,)),
        Suspect(holder("item-all", "All", item, ["a"]), frozenset({"own"}), (f"{docs}/1/a",)),
        Suspect(expired, frozenset(), is_known=False),
        Suspect(STRANGER, frozenset(), is_known=False),
        Suspect(NOBODY, frozenset(), is_known=False),
        Suspect(identity(STRANGER.key), frozenset(), is_known=False),
        Suspect(identity(MASTER.key, lifetime_seconds=-7200), frozenset(), is_known=False),
    ]


def _data_paths() -> tuple[str, ...]:
    return tuple(f"{'/'.join(path)}/docs" for path in (OWN, CLOSED, AWAY))


class _Round:
    """One run of all callers over all routes."""

    def __init__(self, outcome: Outcome, target: Target, offer: str, tls: bool, thorough: bool) -> None:
        self._outcome = outcome
        self._connection = target.connect(tls)
        self._probes = routes.probes(offer, thorough)
        self._reference = state_of(self._connection)

    def play(self, suspect: Suspect, flags: Sequence[str]) -> None:
        """Every route with these flags; afterwards nothing has changed that the caller may not change."""
        before = self._reference
        for flag in flags:
            for probe in self._probes:
                answer = self._ask(suspect, probe, FLAGS[flag])
                if answer is not None:
                    self._judge(suspect, probe, flag, answer)
        after = state_of(self._connection)
        touched = [path for path in changed(before, after) if not path.startswith(suspect.changes or ("\0",))]
        touched += self._foreign_items(suspect, after)
        for path in touched[:5]:
            self._outcome.trespass(f"{suspect.name} with '{', '.join(flags)}' changed {path}")
        if after != before:
            self._recover()

    def _ask(self, suspect: Suspect, probe: Probe, flags: dict[str, str]) -> Answer | None:
        headers = {**probe.headers, **flags}
        try:
            answer = self._connection.send(suspect.caller, probe.method, probe.segments, probe.body, headers)
        except NoAnswerError as error:
            self._outcome.breaks(f"no answer to {suspect.name}: {probe.name}: {error}")
            return None
        self._outcome.answered(answer.status, f"{suspect.name}: {probe.name}")
        return answer

    def _judge(self, suspect: Suspect, probe: Probe, flag: str, answer: Answer) -> None:
        told = f"{suspect.name} with '{flag}': {probe.name} -> {answer.status}"
        if not suspect.is_known and answer.status < 400:
            self._outcome.trespass(told)
        if answer.status >= 400:
            return
        for mark in MARKS:
            # What the caller sent itself comes back in some answers; only SCRIPT is both sent and secret.
            if f"MARK-{mark}".encode() in answer.body and mark not in suspect.sees:
                self._outcome.trespass(f"{told} shows '{mark}'")
        if b"type=resource&" in answer.body and not suspect.sees_tokens:
            self._outcome.trespass(f"{told} shows a resource token")

    def _foreign_items(self, suspect: Suspect, after: dict[str, str]) -> list[str]:
        """Items in a feed that a caller may change, but which are not its own."""
        if not suspect.changes or not isinstance(suspect.caller, Bearer) or "token" not in suspect.name:
            return []
        return [
            f"{'/'.join(container)}/docs/{id}/{pk}"
            for container, id, pk, mark in ITEMS
            if mark not in suspect.sees
            and f"MARK-{mark}" not in after.get(f"{'/'.join(container)}/docs/{id}/{pk}", "")
        ]

    def _recover(self) -> None:
        """Removes what a caller made and puts back what it took, so that the next one starts from the same."""
        for container in (OWN, CLOSED, AWAY):
            for pk in ("a", "b"):
                for id in ("made", "made2", "made3"):
                    segments = [*container, "docs", id]
                    self._connection.send(MASTER, "DELETE", segments, headers=key_header(pk))
        self._connection.send(MASTER, "DELETE", ["_pleiad", "v1", "faults"])
        restore(self._connection)
        self._reference = state_of(self._connection)

    def close(self) -> None:
        self._connection.close()


def _confusions(outcome: Outcome, connection: Connection) -> None:
    _empty_key(outcome, connection)
    _foreign_rids(outcome, connection)
    _made_anew(outcome, connection)
    _signature_of_another_rid(outcome, connection)


def _expect_refusal(outcome: Outcome, answer: Answer, mark: str, what: str) -> None:
    outcome.answered(answer.status, what)
    if answer.status < 300 and (not mark or f"MARK-{mark}".encode() in answer.body):
        outcome.trespass(f"{what} -> {answer.status}")


def _empty_key(outcome: Outcome, connection: Connection) -> None:
    """A permission for an empty or odd key value must not be one for the whole container."""
    permissions = ["dbs", "ground", "users", "u", "permissions"]
    for number, key in enumerate(([], [[]], [{}], [None], ["a", "b"], {}, "", "a", 0, False)):
        body = {"id": f"odd{number}", "permissionMode": "Read", "resource": "/".join(OWN)}
        answer = connection.send(MASTER, "POST", permissions, {**body, "resourcePartitionKey": key})
        outcome.answered(answer.status, f"a permission for the key {key!r}")
        if answer.status != 201:
            continue
        holder = Bearer("odd key", answer.json["_token"])
        for headers in ({}, key_header("b"), {"x-ms-documentdb-partitionkey": json.dumps(key)}):
            found = connection.send(holder, "GET", [*OWN, "docs", "3"], headers=headers)
            _expect_refusal(outcome, found, "other-key", f"a token for the key {key!r} reads another key")
            feed = connection.send(holder, "GET", [*OWN, "docs"], headers=headers)
            _expect_refusal(outcome, feed, "other-key", f"a token for the key {key!r} lists another key")


def _rids(connection: Connection, container: list[str], id: str, pk: str) -> list[str]:
    """The path of an item by rids."""
    database = must(connection, "GET", container[:2]).json["_rid"]
    own = must(connection, "GET", container).json["_rid"]
    answer = connection.send(MASTER, "GET", [*container, "docs", id], headers=key_header(pk))
    return ["dbs", database, "colls", own, "docs", answer.json["_rid"]]


def _mixtures(own: list[str], other: list[str]) -> Iterable[list[str]]:
    """Paths that take some parts from one item and the rest from the other."""
    for choice in range(1, 8):
        parts = [other if choice >> bit & 1 else own for bit in range(3)]
        yield [word for bit in range(3) for word in (own[2 * bit], parts[bit][2 * bit + 1])]


def _foreign_rids(outcome: Outcome, connection: Connection) -> None:
    """A token for one container opens nothing of another by any mixture of names and rids."""
    holder = Bearer("container token", token(connection, "rids", "All", "/".join(OWN)))
    narrow = Bearer("item token", token(connection, "rids1", "All", "/".join([*OWN, "docs", "1"]), ["a"]))
    own = _rids(connection, OWN, "1", "a")
    for container, mark in ((CLOSED, "container"), (AWAY, "database")):
        other = _rids(connection, container, "1", "a")
        named = [*container, "docs", "1"]
        for path in [*_mixtures(own, other), *_mixtures([*OWN, "docs", "1"], other), *_mixtures(own, named)]:
            for caller in (holder, narrow):
                answer = connection.send(caller, "GET", path, headers=key_header("a"))
                _expect_refusal(outcome, answer, mark, f"{caller.name} reads /{'/'.join(path)}")


def _signature_of_another_rid(outcome: Outcome, connection: Connection) -> None:
    """A signature made for one item's rid opens no other item."""
    own, other = _rids(connection, OWN, "1", "a"), _rids(connection, CLOSED, "1", "a")
    for path, mark in ((list(path), "container") for path in _mixtures(own, other)):
        for signed in (own[5], own[3], own[1]):
            if path[5] == signed and path == other:
                continue
            fields = READ_ONLY.headers_for("GET", "docs", signed.lower())
            answer = connection.send(NOBODY, "GET", path, headers={**fields, **key_header("a")})
            _expect_refusal(outcome, answer, mark, f"a signature for rid {signed} opens /{'/'.join(path)}")


def _made_anew(outcome: Outcome, connection: Connection) -> None:
    """A token ends with what it was made for: container, database, user or permission."""
    database = make_database(connection, "brief")
    container = make_container(connection, "c", "brief")
    other = make_container(connection, "d", "brief")
    must(connection, "POST", [*database, "users"], {"id": "u"})
    body = {"permissionMode": "All", "resource": "/".join(container)}
    made = must(connection, "POST", [*database, "users", "u", "permissions"], {**body, "id": "p"}).json[
        "_token"
    ]
    own = must(
        connection,
        "POST",
        [*database, "users", "u", "permissions"],
        {**body, "id": "q", "resource": "/".join(other)},
    )
    second = Bearer("token of a user that is gone", own.json["_token"])
    holder = Bearer("token of a container that is gone", made)
    put(connection, other, {"id": "1", "pk": "a", "text": "MARK-anew"})
    must(connection, "DELETE", container)
    make_container(connection, "c", "brief")
    put(connection, container, {"id": "1", "pk": "a", "text": "MARK-anew"})

    def expect(caller: Bearer, path: list[str]) -> None:
        answer = connection.send(caller, "GET", [*path, "docs", "1"], headers=key_header("a"))
        _expect_refusal(outcome, answer, "anew", f"{caller.name} reads what was made anew")

    expect(holder, container)
    must(connection, "DELETE", [*database, "users", "u"])
    must(connection, "POST", [*database, "users"], {"id": "u"})
    expect(second, other)
    must(connection, "DELETE", database)
    container = make_container(connection, "c", "brief")
    put(connection, container, {"id": "1", "pk": "a", "text": "MARK-anew"})
    expect(holder, container)
    must(connection, "DELETE", database)


def _positive(outcome: Outcome, connection: Connection, everybody: list[Suspect]) -> None:
    """What each caller is promised works; otherwise a server that refuses everything would pass."""
    for suspect in everybody:
        answer = connection.send(suspect.caller, "GET", [*OWN, "docs", "1"], headers=key_header("a"))
        outcome.answered(answer.status, f"{suspect.name} reads its item")
        if ("own" in suspect.sees) != (answer.status == 200):
            outcome.breaks(f"{suspect.name} reads its item -> {answer.status} {answer.body[:120]!r}")


def run(settings: Settings, store: str, data: Any) -> Outcome:
    """All of it on one store; half of the callers come over TLS."""
    outcome = Outcome(name="rights", store=store.partition(":")[0])
    with serving(Launch(data=data / "rights", store=store, limits=LIMITS)) as target:
        connection = target.connect()
        offer = prepare(connection)
        everybody = suspects(connection)
        if settings.brief:
            everybody = [suspect for suspect in everybody if suspect.name in BRIEF_NAMES]
        time.sleep(1.5)  # until the expired token is one
        _positive(outcome, connection, everybody)
        rounds: list[Sequence[str]] = [[flag] for flag in FLAGS] if settings.thorough else [FEW_FLAGS]
        if settings.brief:
            rounds = [BRIEF_FLAGS]
        for number, suspect in enumerate(everybody):
            round = _Round(outcome, target, offer, tls=number % 2 == 1, thorough=settings.thorough)
            for flags in rounds:
                round.play(suspect, flags)
            round.close()
        _confusions(outcome, connection)
        continuations.attack(outcome, connection, settings.seed, settings.brief)
        hosts.attack(outcome, target)
        connection.close()
        outcome.took_tracebacks(target.tracebacks(), target.said())
    return outcome
