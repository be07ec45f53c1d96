"""Continuation tokens: small, good for one query on one container, and refused when anything is wrong with them."""

from __future__ import annotations

import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import orjson
import pytest

from pleiad.engine.query.job import prepare
from pleiad.engine.seal import Seal
from pleiad.errors import BAD_CONTINUATION, PleiadError
from pleiad.keys.range import WHOLE
from pleiad.query.pace import Pace
from pleiad.server.http import failures
from pleiad.store.selection import Selection

QUERIES = (
    "SELECT * FROM c",
    "SELECT c.id, t FROM c JOIN t IN c.tags",
    "SELECT * FROM c ORDER BY c.n",
    "SELECT * FROM c ORDER BY c.s DESC",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n",
    "SELECT * FROM c OFFSET 2 LIMIT 20",
    "SELECT * FROM c WHERE c.pk = 'p1' AND c.id IN ('i1', 'i12', 'i23', 'i34')",
)


async def fill(world: Any, count: int = 40) -> None:
    for number in range(count):
        await world.put(
            {"id": f"i{number}", "pk": f"p{number % 11}", "n": number % 9, "s": f"s{number}", "tags": [1, 2]}
        )


async def refused(world: Any, text: str, token: str) -> None:
    with pytest.raises(PleiadError) as caught:
        await world.page(text, items_max=3, token=token)
    assert failures.status_of(caught.value) == 400, text


async def status_of(world: Any, text: str, token: str) -> int:
    """How a page with a token ends."""
    try:
        page = await world.page(text, items_max=3, token=token)
    except PleiadError as error:
        return failures.status_of(error)
    assert len(page.results) <= 3
    return 200


async def test_a_token_of_another_query_parameter_or_range_is_refused(world: Any) -> None:
    async with world(partitions=3) as w:
        await fill(w)
        issued = {text: (await w.page(text, items_max=1)).token for text in QUERIES}
        for text, token in issued.items():
            assert token is not None, text
            for other in QUERIES:
                if other != text:
                    await refused(w, other, token)
        first = await w.page("SELECT * FROM c WHERE c.n > @n", {"@n": 1}, items_max=1)
        with pytest.raises(PleiadError):
            await w.page("SELECT * FROM c WHERE c.n > @n", {"@n": 2}, items_max=1, token=first.token)
        one, other = (w.container.map.partitions[index].span for index in (0, 1))
        confined = await w.page("SELECT * FROM c", items_max=1, span=one)
        for wrong in (other, WHOLE):
            with pytest.raises(PleiadError):
                await w.page("SELECT * FROM c", token=confined.token, span=wrong)
        counted = await w.page("SELECT VALUE c.n FROM c GROUP BY c.n", items_max=1)
        w.container.limits = replace(w.container.limits, operation_seconds=0.0)
        skipping = await w.page("SELECT * FROM c OFFSET 39 LIMIT 9", items_max=1)
        assert not skipping.results
        for text, page in (
            ("SELECT VALUE c.n FROM c GROUP BY c.n", counted),
            ("SELECT * FROM c OFFSET 39 LIMIT 9", skipping),
        ):
            with pytest.raises(PleiadError):
                await w.page(text, token=page.token, span=one)


@pytest.mark.parametrize("text", ["SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.n"])
async def test_the_children_of_a_split_go_on_with_the_token_of_their_parent(world: Any, text: str) -> None:
    async with world(partitions=1) as w:
        await fill(w)
        first = await w.page(text, items_max=7)
        await w.engine.split(w.container, w.container.map.partitions[0].range_id)
        found = list(first.results)
        for partition in w.container.map.partitions:
            token = first.token
            while token is not None:
                page = await w.page(text, items_max=7, token=token, span=partition.span)
                found += page.results
                token = page.token
        assert sorted(found) == sorted(orjson.dumps(f"i{number}") for number in range(40))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 30 VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c OFFSET 0 LIMIT 30",
        "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 30",
        "SELECT TOP 30 VALUE c.id FROM c ORDER BY c.n",
    ],
)
async def test_each_child_of_a_split_gives_what_a_limit_still_allows(world: Any, text: str) -> None:
    async with world(partitions=1) as w:
        await fill(w)
        first = await w.page(text, items_max=7)
        await w.engine.split(w.container, w.container.map.partitions[0].range_id)
        found = list(first.results)
        for partition in w.container.map.partitions:
            token, given = first.token, []
            while token is not None:
                page = await w.page(text, items_max=7, token=token, span=partition.span)
                given += page.results
                token = page.token
            assert len(given) <= 23
            found += given
        assert len(set(found)) == len(found) >= 30


async def test_a_token_of_another_container_is_refused(world: Any) -> None:
    async with world(name="one") as one:
        await fill(one)
        token = (await one.page("SELECT * FROM c", items_max=1)).token
    async with world(name="two") as two:
        await two.engine.create_container(
            two.engine.database("d"), {"id": "other", "partitionKey": {"paths": ["/pk"]}}, None
        )
        two.container = await two.engine.container("d", "other")
        await refused(two, "SELECT * FROM c", token)


async def test_a_damaged_token_is_refused(world: Any) -> None:
    async with world(partitions=3) as w:
        await fill(w)
        for text in QUERIES:
            token = (await w.page(text, items_max=1)).token
            for end in range(0, len(token), 7):
                if end:
                    await refused(w, text, token[:end])
            raw = bytearray(urlsafe_b64decode(token))
            for position in range(0, len(raw), 5):
                changed = bytearray(raw)
                changed[position] ^= 1
                await refused(w, text, urlsafe_b64encode(changed).decode())
        for text in QUERIES:
            for token in ("x", "bm9wZQ==", "e30=", "W10=", "\u00e9", "=" * 9, "A" * 5000):
                await refused(w, text, token)
            for token in (
                "[",
                "[]",
                "[1]",
                "[{}]",
                '[{"token":1}]',
                '[{"token":"\u00e9"}]',
                '[{"token":"x"}]',
            ):
                await refused(w, text, token)


def forged_with(secret: bytes, mark: int, state: dict[str, Any]) -> str:
    return Seal(SimpleNamespace(secret=secret)).encode(mark, state)


def state_of(token: str) -> dict[str, Any]:
    """What a token says, which is no secret."""
    state: dict[str, Any] = orjson.loads(urlsafe_b64decode(token)[12:])
    return state


async def test_a_token_that_a_client_made_itself_is_refused(world: Any) -> None:
    """Whoever knows how tokens are made, and all but the secret, still cannot make one."""
    async with world(partitions=3) as w:
        await fill(w)
        for text in QUERIES:
            mark = prepare(w.container, w.request(text), Pace()).mark
            token = (await w.page(text, items_max=1)).token
            state = state_of(token)
            for secret in (b"", b"secret", bytes(32), w.container.resource.rid.encode()):
                await refused(w, text, forged_with(secret, mark, state))
            body = urlsafe_b64decode(token)[12:]
            for proof in (b"", bytes(12), crc32(body, mark & 0xFFFFFFFF).to_bytes(4, "big")):
                await refused(w, text, urlsafe_b64encode(proof + body).decode())
            old_form = orjson.dumps({"f": crc32(orjson.dumps(state)), **state})
            await refused(w, text, urlsafe_b64encode(old_form).decode())


async def test_strange_things_in_a_token_are_refused_or_harmless(world: Any) -> None:
    """What another version of Pleiad sealed may be anything; the worst it gives is a page of its own query."""
    chosen = random.Random(4)
    strange: tuple[Any, ...] = (
        None,
        -1,
        2**63,
        1.5,
        "x",
        [],
        [[]],
        {},
        [1, 2],
        [["", "FF", 0]],
        [["", "FF", -1]],
        [["zz", "", 1]],
    )
    async with world(partitions=3) as w:
        await fill(w)
        for text in QUERIES:
            mark = prepare(w.container, w.request(text), Pace()).mark
            state = state_of((await w.page(text, items_max=1)).token)
            for _ in range(150):
                changed = dict(state)
                for name in chosen.sample("ukteclospdn", 2):
                    changed[name] = chosen.choice(strange)
                assert await status_of(w, text, w.container.seal.encode(mark, changed)) in (200, 400)


PAGE_STATES: dict[str, dict[str, Any]] = {
    "stream": {"y": "s", "p": [["", "20", 3], ["20", "FF", 0]], "o": 0},
    "lookup": {"y": "l", "n": 3, "o": 0},
    "paused": {"y": "g", "p": [["", "20", 3]], "w": "nothing", "d": 1},
    "ordered": {"y": "o", "k": [[3]], "t": [4, 0], "e": 2},
    "numbered": {"y": "n", "c": 2, "q": "f", "a": 1},
    "whole": {"y": "w", "c": 2, "w": "nothing"},
    "count": {"y": "c", "p": [["20", "FF", 0]], "n": 5},
}
ORDER_KINDS, WHOLE_KINDS = {"ordered", "numbered", "paused"}, {"whole", "paused"}
KINDS_OF = {
    "SELECT * FROM c": {"stream"},
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags": {"stream"},
    "SELECT * FROM c WHERE c.pk = 'p1' AND c.id IN ('i1', 'i12', 'i23', 'i34')": {"lookup"},
    "SELECT * FROM c ORDER BY c.n": ORDER_KINDS,
    "SELECT * FROM c ORDER BY c.n DESC": ORDER_KINDS,
    "SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n": WHOLE_KINDS,
    "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n": WHOLE_KINDS,
    "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c)": WHOLE_KINDS,
    "SELECT VALUE COUNT(1) FROM c": {"count"},
}


@pytest.mark.parametrize("text", KINDS_OF)
async def test_a_page_goes_on_with_the_states_of_its_own_kind_alone(world: Any, text: str) -> None:
    async with world(partitions=2) as w:
        await fill(w)
        mark = prepare(w.container, w.request(text), Pace()).mark
        taken = {
            kind
            for kind, state in PAGE_STATES.items()
            if await status_of(w, text, w.container.seal.encode(mark, state)) == 200
        }
        assert taken == KINDS_OF[text]


@pytest.mark.parametrize("is_indexed", [False, True], ids=["scanned", "indexed"])
async def test_any_json_in_a_token_is_refused_or_gives_a_page(
    world: Any, index_settings: tuple[Any, Any], is_indexed: bool
) -> None:
    chosen = random.Random(15)
    deep = orjson.loads("[" * 190 + "]" * 190)
    scalars = (None, True, 0, 1, -1, 7, 2**62 - 1, 2**62, 2**63, 2**64 - 1, 1.5, "", "20", "FF", "zz", "é")

    def anything(depth: int = 0) -> Any:
        many = range(chosen.randrange(4))
        match chosen.randrange(4 if depth < 4 else 2):
            case 2:
                return [anything(depth + 1) for _ in many]
            case 3:
                return {chosen.choice("ypkn"): anything(depth + 1) for _ in many}
            case _:
                return chosen.choice(scalars)

    async with world(partitions=2, indexes=index_settings[is_indexed]) as w:
        await fill(w, 20)
        for text, kinds in KINDS_OF.items():
            await w.query(text)
            await w.indexes_built()
            mark = prepare(w.container, w.request(text), Pace()).mark
            sealed = [anything() for _ in range(40)]
            for kind in sorted(kinds):
                for _ in range(60):
                    state = dict(PAGE_STATES[kind])
                    state[chosen.choice("pdwolsxnkteacqrub")] = chosen.choice((anything(), [[anything()]]))
                    sealed.append(state)
            pause = {"p": [["", "20", 3]]}
            sealed += [{**PAGE_STATES["ordered"], **more, "k": [[deep]]} for more in ({}, pause)]
            sealed += [{**PAGE_STATES["ordered"], "t": [number, 0]} for number in (-(2**62), 2**62, 2**63)]
            for state in sealed:
                assert await status_of(w, text, w.container.seal.encode(mark, state)) in (200, 400), state


async def test_the_token_of_a_walk_is_refused_where_a_key_makes_look_ups_of_it(world: Any) -> None:
    """Else the look-ups would begin anew and give items a second time."""
    text = "SELECT * FROM c WHERE c.id IN ('i1', 'i12', 'i23', 'i34')"
    async with world() as w:
        await fill(w)
        token = (await w.page(text, items_max=1)).token
        with pytest.raises(PleiadError) as caught:
            await w.page(text, token=token, key=("p1",), span=w.container.span_of(("p1",)))
        assert caught.value.row is BAD_CONTINUATION


async def test_a_count_goes_on_where_a_part_of_its_range_has_nothing_to_count(world: Any) -> None:
    text = "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p1'"
    async with world(partitions=2) as w:
        await fill(w)
        mark = prepare(w.container, w.request(text), Pace()).mark
        token = w.container.seal.encode(mark, PAGE_STATES["count"])
        epk = w.container.epk_of(("p1",))
        spans = [partition.span for partition in w.container.map.partitions]
        answers = {span.contains(epk): (await w.page(text, token=token, span=span)).results for span in spans}
        assert answers == {True: [b"4"], False: [b"0"]}


@pytest.mark.every_store
async def test_a_token_outlives_a_restart(world: Any) -> None:
    async with world(name="lasting", partitions=3) as w:
        await fill(w)
        whole = {text: (await w.query(text)).results for text in QUERIES}
        first = {text: await w.page(text, items_max=5) for text in QUERIES}
    async with world(name="lasting", partitions=3) as w:
        for text, page in first.items():
            given = [orjson.loads(result) for result in page.results]
            if page.token is not None:
                given += (await w.query(text, page_items=lambda: 50, token=page.token)).results
            assert given == whole[text]


async def test_what_distinct_has_met_beyond_the_range_of_a_request_hides_nothing_in_it(world: Any) -> None:
    """Else the token of a wider range would tell whether an item outside has a value, by what is missing inside."""
    text = "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags"
    async with world(partitions=1) as w:
        await w.put({"id": "1", "pk": "outside", "tags": ["secret", "more"]})
        await w.put({"id": "2", "pk": "inside", "tags": ["secret"]})
        number = (await w.container.map.partitions[0].select(Selection(WHOLE, (), 0, None), 0, 1))[0].number
        inside = w.container.span_of(("inside",))
        mark = prepare(w.container, w.request(text), Pace()).mark
        state = {"p": [["", "FF", 0]], "s": [[number, 1]], "o": 0}
        token = w.container.seal.encode(mark, state)
        page = await w.page(text, token=token, span=inside)
        assert page.results == [b'"secret"']


async def test_tokens_of_usual_queries_are_below_a_kilobyte(world: Any) -> None:
    async with world(partitions=5, key_paths=("/a", "/b", "/c")) as w:
        for number in range(60):
            await w.put({"id": f"i{number}", "a": "x", "b": "y", "c": number, "n": number, "s": "s" * 200})
        for text in (*QUERIES[:-1], "SELECT * FROM c WHERE c.a = 'x' AND c.b = 'y'"):
            for token in (page.token for page in (await w.query(text, page_items=lambda: 7)).pages):
                assert token is None or len(token) <= 1024


@pytest.mark.parametrize("token_bytes_max", [1024, 4096])
@pytest.mark.parametrize("size_chars", [10, 600, 5_000])
async def test_long_sort_keys_do_not_make_long_tokens(
    world: Any, index_settings: tuple[Any, Any], token_bytes_max: int, size_chars: int
) -> None:
    """A sort key that does not fit is replaced by the number of rows given."""
    async with world(partitions=2, indexes=index_settings[1]) as w:
        for number in range(30):
            text = f"{'é' * size_chars}{number % 10}"
            await w.put({"id": f"i{number}", "pk": f"p{number}", "s": text})
        for query in (
            "SELECT VALUE c.id FROM c ORDER BY c.s",
            "SELECT VALUE c.id FROM c ORDER BY c.s DESC OFFSET 3 LIMIT 20",
            "SELECT TOP 11 VALUE c.id FROM c ORDER BY c.s",
        ):
            for _ in range(2):
                whole = await w.query(query)
                paged = await w.query(query, page_items=lambda: 4, token_bytes_max=token_bytes_max)
                assert paged.results == whole.results
                assert paged.charge_ru == whole.charge_ru
                for page in paged.pages:
                    assert page.token is None or len(page.token) <= token_bytes_max
                await w.indexes_built()


async def test_pages_of_an_ordered_query_hold_together_while_others_write(world: Any) -> None:
    async with world(partitions=2) as w:
        await fill(w, 30)
        text = "SELECT VALUE c.id FROM c ORDER BY c.s"
        before = (await w.query(text)).results
        first = await w.page(text, items_max=10)
        await w.put({"id": "new", "pk": "new", "s": ""})
        await w.remove({"id": "i0", "pk": "p0"})
        rest = await w.query(text, page_items=lambda: 10, token=first.token)
    assert rest.results == before[10:]
