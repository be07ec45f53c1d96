"""Client encryption: a container's policy stays as it was made, names keys that are there, and keys know their age."""

from __future__ import annotations

import time
from typing import Any

from tests.waiting import wait_until

KEY = {
    "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
    "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    "wrappedDataEncryptionKey": "AAAA",
}


def policy(key: str) -> dict[str, Any]:
    path = {
        "path": "/secret",
        "clientEncryptionKeyId": key,
        "encryptionType": "Deterministic",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
    }
    return {"includedPaths": [path], "policyFormatVersion": 1}


def test_a_policy_is_neither_dropped_nor_changed_by_a_replacement(place: Any, wire: Any) -> None:
    database = ["dbs", place.database]
    wire.send("POST", [*database, "clientencryptionkeys"], {"id": "k", **KEY})
    body = {"id": "safe", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    made = wire.send("POST", [*database, "colls"], {**body, "clientEncryptionPolicy": policy("k")})
    assert made.status == 201
    path = [*database, "colls", "safe"]
    others: tuple[dict[str, object], ...] = (
        {},
        {"clientEncryptionPolicy": None},
        {"clientEncryptionPolicy": {"includedPaths": []}},
    )
    for other in others:
        refused = wire.send("PUT", path, {**body, **other})
        assert refused.status == 400
        assert (
            "'clientEncryptionPolicy' cannot be changed as part of collection replace operation."
            in refused.message
        )
    kept = wire.send("PUT", path, {**body, "clientEncryptionPolicy": policy("k"), "defaultTtl": 60})
    assert (kept.status, kept.json["defaultTtl"]) == (200, 60)
    assert kept.json["clientEncryptionPolicy"] == policy("k")
    plain = wire.send(
        "PUT", place.path, {**body, "id": place.container, "clientEncryptionPolicy": policy("k")}
    )
    assert plain.status == 400


def test_a_policy_with_an_unknown_key_is_refused(place: Any, wire: Any) -> None:
    body = {"id": "x", "partitionKey": {"paths": ["/pk"]}, "clientEncryptionPolicy": policy("unknownKey")}
    refused = wire.send("POST", ["dbs", place.database, "colls"], body)
    assert refused.status == 400
    assert "ClientEncryptionKey with id '[unknownKey]' does not exist." in refused.message


def test_a_key_keeps_the_time_it_was_made_at(place: Any, wire: Any) -> None:
    keys = ["dbs", place.database, "clientencryptionkeys"]
    made = wire.send("POST", keys, {"id": "k", **KEY, ".created": 7}).json
    assert abs(made["_cts"] - time.time()) < 3600
    assert ".created" not in made
    assert wait_until(lambda: time.time() >= made["_ts"] + 1), "the next second has begun"
    changed = wire.send("PUT", [*keys, "k"], {"id": "k", **KEY, "wrappedDataEncryptionKey": "BBBB"}).json
    assert changed["_cts"] == made["_cts"]
    assert changed["_ts"] > made["_ts"]
    assert wire.send("GET", [*keys, "k"]).json["_cts"] == made["_cts"]
    assert wire.send("GET", keys).json["ClientEncryptionKeys"][0]["_cts"] == made["_cts"]
