"""What tokens say: every state survives its token, and whatever else stands in one is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.charge import Tally
from pleiad.engine.pages import feed
from pleiad.engine.pages.feed import LatestPageState, ListingPageState, MetadataPageState, VersionsPageState
from pleiad.engine.pages.query import (
    CountPageState,
    LookupPageState,
    NumberedPageState,
    OrderedPageState,
    Pause,
    PausedPageState,
    QueryPageState,
    QueryState,
    Remainder,
    Scope,
    StreamPageState,
    WholePageState,
)
from pleiad.engine.pages.script import ScriptResultsPageState, ScriptRowsPageState
from pleiad.engine.scan import Piece
from pleiad.errors import BAD_CONTINUATION, BAD_REQUEST, PleiadError
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.values.undefined import UNDEFINED

NUMBERS = st.integers(0, 2**62 - 1)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3).map(tuple)
NAMES = st.none() | st.text("abcXYZ-_", max_size=16)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
)
JSON = st.recursive(
    SCALARS.filter(lambda value: value not in (math.inf, -math.inf)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def positions(draw: st.DrawFn) -> tuple[Piece, ...]:
    edges = sorted(draw(st.sets(st.binary(max_size=16), min_size=2, max_size=7)))
    spans = [EpkRange(low, high) for low, high in zip(edges[::2], edges[1::2], strict=False)]
    return tuple(Piece(span, draw(NUMBERS)) for span in spans)


REMAINDERS = st.builds(Remainder, NUMBERS, st.none() | NUMBERS, PAIRS, PAIRS)
PAUSES = st.builds(Pause, positions(), st.booleans(), NAMES)
EDGES = st.integers(-(2**62), 2**62)
PAGES: dict[Any, st.SearchStrategy[Any]] = {
    StreamPageState: st.builds(StreamPageState, positions(), st.booleans(), REMAINDERS, NAMES),
    LookupPageState: st.builds(LookupPageState, NUMBERS, REMAINDERS),
    PausedPageState: st.builds(PausedPageState, PAUSES),
    OrderedPageState: st.builds(
        OrderedPageState,
        st.lists(JSON | st.just(UNDEFINED), min_size=1, max_size=3).map(tuple),
        st.tuples(EDGES, EDGES),
        NUMBERS,
        st.booleans(),
        st.none() | PAUSES,
    ),
    NumberedPageState: st.builds(NumberedPageState, NUMBERS, NUMBERS, st.booleans(), st.none() | PAUSES),
    WholePageState: st.builds(WholePageState, NUMBERS, NAMES)
    | st.builds(WholePageState, NUMBERS, st.none(), PAUSES),
    CountPageState: st.builds(CountPageState, positions(), NUMBERS),
}
FEEDS: dict[Any, st.SearchStrategy[Any]] = {
    ListingPageState: st.builds(ListingPageState, positions(), st.booleans()),
    LatestPageState: st.builds(LatestPageState, positions()),
    VersionsPageState: st.builds(VersionsPageState, positions(), NUMBERS),
    MetadataPageState: st.builds(MetadataPageState, NUMBERS),
}
SCOPES = st.just(WHOLE) | positions().map(lambda position: position[0].span)
QUERIES = st.builds(
    QueryState,
    st.one_of(*PAGES.values()),
    SCOPES.map(Scope.of),
    st.lists(NUMBERS, min_size=8, max_size=8).map(lambda counts: Tally(*counts)),
    st.integers(-(2**53) + 1, 2**53 - 1),
)
LETTERS = "ypdwolsxnkteacqrub"
PLAUSIBLE: st.SearchStrategy[Any] = st.sampled_from(
    [
        *([], [[]], {}, "", "zz", "s", 1, 0, -1, True, 1.0, 2**62, 2**64 - 1, None, [1, 2], [[1, 2]]),
        *([["", "FF", 0]], [["FF", "", 0]], [["", "FF", -1]], [["00"]]),
        [["80", "FF", 0], ["", "80", 0]],
        [["", "80", 0], ["40", "FF", 0]],
    ]
)
MEMBERS = st.dictionaries(st.sampled_from(LETTERS), JSON | PLAUSIBLE, max_size=6)


def through_a_token(state: dict[str, Any]) -> Any:
    """What comes out of a token that the state was sealed in."""
    return orjson.loads(orjson.dumps(state))


def feed_reader(kind: Any) -> Callable[[Any], Any]:
    return lambda given: feed.from_state(given, "token", kind)


def read_query(given: Any) -> QueryState:
    return QueryState.from_state(given, "token")


READERS: dict[str, Callable[[Any], Any]] = {
    "query": read_query,
    **{kind.__name__: feed_reader(kind) for kind in FEEDS},
}


def test_every_kind_of_page_of_a_query_is_tried() -> None:
    assert set(PAGES) == set(get_args(QueryPageState))
    kinds = [kind.KIND for kind in (*PAGES, *FEEDS)]
    assert len(set(kinds)) == len(kinds)


@given(QUERIES)
def test_the_state_of_a_query_survives_its_token(state: QueryState) -> None:
    assert read_query(through_a_token(state.to_state())) == state


@pytest.mark.parametrize("kind", FEEDS)
@given(data=st.data())
def test_the_state_of_a_feed_survives_its_token(kind: Any, data: st.DataObject) -> None:
    state = data.draw(FEEDS[kind])
    assert feed_reader(kind)(through_a_token(state.to_state())) == state


@given(QUERIES)
def test_a_query_goes_on_with_a_token_from_before_the_kinds(state: QueryState) -> None:
    older = through_a_token(state.to_state())
    del older["y"]
    assert read_query(older) == state


@pytest.mark.parametrize("kind", FEEDS)
@given(data=st.data())
def test_a_feed_goes_on_with_a_token_from_before_the_kinds(kind: Any, data: st.DataObject) -> None:
    state = data.draw(FEEDS[kind])
    older = through_a_token(state.to_state())
    del older["y"]
    assert feed_reader(kind)(older) == state


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_the_state_of_another_kind_of_page_is_refused(name: str, data: st.DataObject) -> None:
    others = [kind for kind in FEEDS if kind.__name__ != name]
    if name != "query":
        others += PAGES
    state = data.draw(st.sampled_from(others).flatmap(lambda kind: (PAGES | FEEDS)[kind]))
    with pytest.raises(PleiadError) as caught:
        READERS[name](through_a_token(state.to_state()))
    assert caught.value.row is BAD_CONTINUATION


def read_or_refused(read: Callable[[Any], Any], given: Any) -> Any:
    """The state that was read, or the refusal."""
    try:
        return read(given)
    except PleiadError as error:
        return error.row


def assert_refused_or_whole(read: Callable[[Any], Any], given: Any) -> None:
    """What is read is a state that could have been written; everything else is the same refusal."""
    state = read_or_refused(read, given)
    if state is not BAD_CONTINUATION:
        assert read(through_a_token(state.to_state())) == state


@pytest.mark.parametrize("name", READERS)
@given(sealed=JSON | MEMBERS)
def test_whatever_a_token_holds_is_refused_or_a_state(name: str, sealed: Any) -> None:
    assert_refused_or_whole(READERS[name], sealed)


@given(st.one_of(*PAGES.values(), *FEEDS.values()), MEMBERS, st.sampled_from(sorted(READERS)))
def test_a_state_with_other_members_in_it_is_refused_or_a_state(
    state: Any, other: dict[str, Any], name: str
) -> None:
    assert_refused_or_whole(READERS[name], {**through_a_token(state.to_state()), **other})


WALK = {"y": "s", "p": [["", "FF", 0]], "o": 0}
ORDER: dict[str, Any] = {"y": "o", "k": [[1]], "t": [1, 0], "e": 1}
DEEP = orjson.loads("[" * 900 + "]" * 900)


@pytest.mark.parametrize(
    "wrong",
    [
        {**WALK, "p": [["80", "FF", 0], ["", "80", 0]]},
        {**WALK, "p": [["", "80", 0], ["7F", "FF", 0]]},
        {**WALK, "p": [["80", "80", 0]]},
        {**WALK, "p": [["", "FF", 2**62]]},
        {**WALK, "p": []},
        {**WALK, "o": -1},
        {**WALK, "l": None},
        {**WALK, "s": [[1]]},
        {**WALK, "s": [[1, True]]},
        {**WALK, "w": "w" * 65},
        {**WALK, "d": 0},
        {**WALK, "r": []},
        {**WALK, "r": ["", "80", "FF"]},
        {**WALK, "r": ["0"]},
        {**WALK, "u": [0] * 7},
        {**WALK, "u": [0] * 7 + [-1]},
        {**WALK, "b": 2**53},
        {**WALK, "y": "unknown"},
        {**WALK, "y": None},
        {**ORDER, "k": []},
        {**ORDER, "k": [[1, 2]]},
        {**ORDER, "k": [[DEEP]]},
        {**ORDER, "t": [2**63, 0]},
        {**ORDER, "t": [1]},
        {"y": "n", "c": 1, "q": "not hex"},
        {"y": "n", "c": 1},
        {"y": "w"},
        {"y": "g"},
        {},
        [],
        None,
    ],
)
def test_a_state_with_something_wrong_in_it_is_refused(wrong: Any) -> None:
    read_query({**WALK, "s": [[1, 1]], "r": ["", "80"], "u": [0] * 8, "b": 1, "w": "w" * 64, "d": 1})
    read_query({**ORDER, "k": [[], [[[]]]]})
    with pytest.raises(PleiadError) as caught:
        read_query(wrong)
    assert caught.value.row is BAD_CONTINUATION


@given(st.integers(0, 10**18 - 1))
def test_the_continuation_of_a_script_is_good_for_its_own_kind_of_page(number: int) -> None:
    rows, results = ScriptRowsPageState(number), ScriptResultsPageState(number)
    assert ScriptRowsPageState.from_text(rows.to_text()) == rows
    assert ScriptResultsPageState.from_text(results.to_text()) == results
    for kind, other in ((ScriptRowsPageState, results), (ScriptResultsPageState, rows)):
        with pytest.raises(PleiadError) as caught:
            kind.from_text(other.to_text())
        assert caught.value.row is BAD_REQUEST


@given(st.text(max_size=4) | st.text("c0123456789-_ ²", max_size=25))
def test_any_text_is_a_continuation_of_a_script_or_refused(text: str) -> None:
    for kind in (ScriptRowsPageState, ScriptResultsPageState):
        state = read_or_refused(kind.from_text, text)
        if state is not BAD_REQUEST:
            assert kind.from_text(state.to_text()) == state
