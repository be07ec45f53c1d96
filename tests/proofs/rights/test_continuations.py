"""A continuation opens nothing: with the token of a wider request one still sees one's own rows only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import epk
from tests.proofs.rights.account import (
    KEY_HEADER,
    MASTER_KEY,
    TWIN,
    VICTIM,
    Account,
    Answer,
    OpenAccount,
    holder_of,
    signed,
)

DOCS = ["dbs", "d", "colls", "c", "docs"]
QUERY = {"x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true"}
QUERIES = (
    "SELECT * FROM c",
    "SELECT VALUE c.pk FROM c",
    "SELECT VALUE c.pk FROM c ORDER BY c.pk",
    "SELECT VALUE c.pk FROM c ORDER BY c.pk DESC",
    "SELECT DISTINCT VALUE c.pk FROM c",
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags",
    "SELECT c.pk, COUNT(1) AS many FROM c GROUP BY c.pk",
    "SELECT VALUE c.pk FROM c OFFSET 1 LIMIT 9",
    "SELECT TOP 9 VALUE c.pk FROM c",
    "SELECT VALUE {pk: c.pk, many: (SELECT VALUE COUNT(1) FROM t IN c.tags)} FROM c",
)


async def page(
    account: Account,
    proof: dict[str, str],
    body: Any,
    token: str = "",
    key: str | None = None,
    **headers: str,
) -> Answer:
    fields = {
        "x-ms-max-item-count": "1",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    if token:
        fields["x-ms-continuation"] = token
    if key is not None:
        fields[KEY_HEADER] = json.dumps([key])
    method = "GET" if body is None else "POST"
    return await account.send(method, DOCS, proof, body, {**fields, **(QUERY if body is not None else {})})


async def fill(account: Account) -> None:
    for pk in ("a", "b", "secret"):
        for number in range(4):
            item = {"id": f"{pk}{number}", "pk": pk, "tags": [pk, "common", number]}
            await account.as_master("POST", DOCS, item, {KEY_HEADER: json.dumps([pk])})


@pytest.mark.parametrize("text", QUERIES)
async def test_the_token_of_a_query_over_everything_shows_the_holder_of_one_key_that_key_only(
    text: str, account: OpenAccount
) -> None:
    async with account() as a:
        await fill(a)
        mine = holder_of(await a.token("mine", "Read", "dbs/d/colls/c", ["a"]))("POST", DOCS)
        master = signed(MASTER_KEY, "POST", DOCS)
        token, tokens = "", []
        while True:
            answer = await page(a, master, {"query": text}, token)
            assert answer.status == 200, answer.body
            token = answer.headers.get("x-ms-continuation", "")
            if not token:
                break
            tokens.append(token)
        assert tokens
        alone = set()
        token = ""
        while True:
            answer = await page(a, mine, {"query": text}, token, "a")
            alone |= {json.dumps(row, sort_keys=True) for row in answer.json["Documents"]}
            token = answer.headers.get("x-ms-continuation", "")
            if not token:
                break
        for token in tokens:
            assert (await page(a, mine, {"query": text}, token)).status == 403
            while token:
                answer = await page(a, mine, {"query": text}, token, "a")
                assert answer.status in (200, 400), answer.body
                if answer.status == 400:
                    break
                assert {json.dumps(row, sort_keys=True) for row in answer.json["Documents"]} <= alone
                token = answer.headers.get("x-ms-continuation", "")


async def test_tokens_of_feeds_and_places_in_change_feeds_show_the_holder_of_one_key_that_key_only(
    account: OpenAccount,
) -> None:
    async with account() as a:
        await fill(a)
        mine = holder_of(await a.token("mine", "Read", "dbs/d/colls/c", ["a"]))("GET", DOCS)
        master = signed(MASTER_KEY, "GET", DOCS)
        token = (await page(a, master, None)).headers["x-ms-continuation"]
        answer = await page(a, mine, None, token, "a")
        assert answer.status == 400 or {row["pk"] for row in answer.json["Documents"]} == {"a"}
        place = (await page(a, master, None, a_im="Incremental Feed")).headers["etag"]
        for given in (place, '"0"', '"1"', '"999999"', "0"):
            fields = {"a_im": "Incremental Feed", "if_none_match": given, "x_ms_max_item_count": "100"}
            answer = await page(a, mine, None, "", "a", **fields)
            assert answer.status in (200, 304)
            if answer.status == 200:
                assert {row["pk"] for row in answer.json["Documents"]} == {"a"}


async def test_the_token_of_one_container_or_feed_of_metadata_is_none_of_another(
    account: OpenAccount,
) -> None:
    async with account() as a:
        await a.engine.create_database({"id": "e"}, None)
        proof = signed(MASTER_KEY, "GET", ["dbs"])
        answer = await a.send("GET", ["dbs"], proof, None, {"x-ms-max-item-count": "1"})
        token = answer.headers["x-ms-continuation"]
        again = await a.send("GET", ["dbs"], proof, None, {"x-ms-continuation": token})
        assert [each["id"] for each in again.json["Databases"]] == ["e"]
        for path in (["dbs", "d", "colls"], ["dbs", "d", "users"], ["offers"]):
            answer = await a.send(
                "GET", path, signed(MASTER_KEY, "GET", path), None, {"x-ms-continuation": token}
            )
            assert answer.status == 400
        for made_up in ("1", "0", "-1", "x", token[:-4], token[:-4] + "AAA="):
            answer = await a.send("GET", ["dbs"], proof, None, {"x-ms-continuation": made_up})
            assert answer.status == 400


RANGE = {"x_ms_read_key_type": "EffectivePartitionKeyRange"}


@pytest.mark.parametrize(
    "text", [*QUERIES, "SELECT VALUE COUNT(1) FROM c", "SELECT VALUE MAX(c.said) FROM c"]
)
async def test_the_token_of_a_key_with_the_same_hash_shows_nothing_of_it(
    text: str, account: OpenAccount
) -> None:
    """Neither of the key itself nor of the range of its hash, and nothing of what is kept for the pages of either."""
    async with account() as a:
        for pk, word in ((VICTIM, "SECRET"), (TWIN, "mine")):
            for number in range(4):
                item = {
                    "id": f"{word}{number}",
                    "pk": pk,
                    "said": f"{word}{number}",
                    "tags": [word, "common", number],
                }
                await a.as_master("POST", DOCS, item, {KEY_HEADER: json.dumps([pk])})
        query = {"query": text.replace("c.pk", "c.said")}
        mine = holder_of(await a.token("mine", "Read", "dbs/d/colls/c", [TWIN]))("POST", DOCS)
        master = signed(MASTER_KEY, "POST", DOCS)
        hashed = epk((VICTIM,), KeyDefinition(("/pk",), "Hash", 2)).hex().upper()
        ends = {"x_ms_start_epk": hashed, "x_ms_end_epk": f"{hashed}FF"}
        for key, headers in ((VICTIM, {}), (None, {**RANGE, **ends})):
            token = ""
            while True:
                answer = await page(a, master, query, token, key, **headers)
                assert answer.status == 200, answer.body
                token = answer.headers.get("x-ms-continuation", "")
                if not token:
                    break
                seen = await page(a, mine, query, token, TWIN)
                assert seen.status == 400 if key else seen.status in (200, 400), seen.body
                assert b"SECRET" not in seen.body
