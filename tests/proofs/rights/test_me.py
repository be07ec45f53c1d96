"""What callers are told of their rights is what the table of rights says."""

from __future__ import annotations

from pleiad.engine.operation import Area
from tests.proofs.rights.account import OpenAccount
from tests.proofs.rights.test_table import ALLOWED, IDENTITIES, KEYS, STRANGERS, TOKENS, callers

ME = ["_pleiad", "v1", "me"]


async def test_each_caller_is_told_what_the_table_says(account: OpenAccount) -> None:
    async with account() as a:
        for name, caller in (await callers(a)).items():
            answer = await a.send("GET", ME, caller("GET", ME))
            if name in STRANGERS:
                assert answer.is_refused, name
                continue
            told = set(answer.json["operations"])
            wanted = {
                operation.word
                for operation, allowed in ALLOWED.items()
                if name in allowed and operation.area is not Area.OPEN
            }
            if name in TOKENS:
                wanted.add("read_addresses")  # by the rid of its container, which the table does not ask with
            if name == "all of other":
                continue
            assert told == wanted, name


async def test_a_token_is_told_what_it_is_for_and_until_when(account: OpenAccount) -> None:
    async with account() as a:
        known = await callers(a)
        told = {
            name: (await a.send("GET", ME, known[name]("GET", ME))).json for name in known.keys() - STRANGERS
        }
        for name in KEYS:
            assert told[name]["scope"] is None
            assert told[name]["endsAt"] is None
            assert told[name]["mayAdminister"]
        assert told["master"]["caller"] == "master key"
        assert told["read-only"]["caller"] == "read-only key"
        assert not told["read-only"]["mayWrite"]
        for name in IDENTITIES:
            assert told[name]["caller"] == "identity token"
            assert told[name]["endsAt"] > "2020"
            assert not told[name]["mayAdminister"]
        for name in TOKENS:
            assert told[name]["caller"] == "resource token"
            assert told[name]["endsAt"] > "2020"
            assert told[name]["scope"]["database"] == "d"
            assert told[name]["mayWrite"] == name.startswith("all")
        assert told["read item"]["scope"]["item"] == "1"
        assert told["read item"]["scope"]["key"] == ["a"]
        assert told["read key"]["scope"]["key"] == ["a"]
        assert "key" not in told["read container"]["scope"]
        assert told["all of other"]["scope"]["container"] == "other"


async def test_a_token_whose_container_is_gone_is_told_so(account: OpenAccount) -> None:
    async with account() as a:
        caller = (await callers(a))["read container"]
        await a.as_master("DELETE", ["dbs", "d", "colls", "c"])
        answer = await a.send("GET", ME, caller("GET", ME))
        assert answer.status == 200
        assert answer.json["scope"]["container"] is None
