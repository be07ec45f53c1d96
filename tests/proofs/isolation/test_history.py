"""The checker itself: it must find each kind of broken history, and nothing in a good one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def good(history: Any) -> Any:
    """Two items are created together, one is replaced by its ETag, the other deleted, the first replaced again."""
    recorded = history.History(
        truth=[
            history.Change(1, "x", "a1"),
            history.Change(1, "y", "a1"),
            history.Change(2, "x", "b2"),
            history.Change(3, "y", None),
            history.Change(4, "x", "c4"),
        ],
        told=[
            history.Told(0, 1, 1, {"x": "a1", "y": "a1"}),
            history.Told(2, 5, 2, {"x": "b2"}, {"x": "a1"}),
            history.Told(6, 9, 4, {"x": "c4"}),
        ],
        deletes_told=["y"],
        refused={"no"},
        seen=[
            history.Seen(0, 1, {}),
            history.Seen(2, 3, {"x": (1, "a1"), "y": (1, "a1")}),
            history.Seen(4, 5, {"x": (2, "b2"), "y": (1, "a1")}),
            history.Seen(6, 7, {"x": (2, "b2")}),
            history.Seen(8, 9, {"x": (4, "c4")}, frozenset({"x", "y"})),
        ],
        pages=[
            history.Page(2, 3, 0, 1, {"x": (1, "a1"), "y": (1, "a1")}),
            history.Page(4, 5, 0, 1, {"y": (1, "a1")}),
            history.Page(8, 9, 1, 9, {"x": (4, "c4")}),
        ],
    )
    assert recorded.problems() == []
    return recorded


BREAKS: dict[str, Callable[[Any, Any], object]] = {
    "torn": lambda h, m: h.seen.append(m.Seen(2, 5, {"y": (1, "a1")}, frozenset({"x", "y"}))),
    "torn, stale or future": lambda h, m: h.seen.append(m.Seen(10, 11, {"x": (2, "b2")})),
    "stale or future": lambda h, m: h.seen.append(m.Seen(2, 3, {"x": (4, "c4")})),
    "read": lambda h, m: h.pages.append(m.Page(2, 3, 0, 1, {"x": (1, "a1")})),
    "dirty read": lambda h, m: h.seen.append(m.Seen(2, 3, {"x": (1, "no")})),
    "lost update": lambda h, m: h.told.__setitem__(2, m.Told(6, 9, 4, {"x": "c4"}, {"x": "a1"})),
    "never happened": lambda h, m: h.told.append(m.Told(10, 11, 7, {"x": "d"})),
    "nobody was told": lambda h, m: h.truth.append(m.Change(5, "x", "e")),
    "deletes were acknowledged": lambda h, m: h.deletes_told.append("y"),
    "but left": lambda h, m: h.told.__setitem__(0, m.Told(0, 1, 1, {"x": "a1", "y": "z"})),
    "same LSN": lambda h, m: h.told.append(h.told[-1]),
    "had ended": lambda h, m: h.told.__setitem__(0, m.Told(12, 13, 1, {"x": "a1", "y": "a1"})),
    "order of its LSNs": lambda h, m: h.truth.insert(0, m.Change(4, "x", "c4")),
}


@pytest.mark.parametrize("words", BREAKS)
def test_the_checker_finds_a_broken_history(history: Any, good: Any, words: str) -> None:
    BREAKS[words](good, history)
    assert any(words in problem for problem in good.problems()), good.problems()


def test_readers_must_agree_with_each_other(history: Any) -> None:
    """Nobody was told when the write ended, but one reader saw it, and a later one did not."""
    recorded = history.History(
        truth=[history.Change(1, "x", "a"), history.Change(2, "x", "b")],
        told=[history.Told(0, 1, 1, {"x": "a"}), history.Told(2, 9, 2, {"x": "b"})],
        seen=[history.Seen(3, 4, {"x": (2, "b")}), history.Seen(5, 6, {"x": (1, "a")})],
    )
    assert any("stale" in problem for problem in recorded.problems())
    recorded.seen.reverse()
    recorded.seen = [
        seen._replace(began=3 + 2 * place, ended=4 + 2 * place) for place, seen in enumerate(recorded.seen)
    ]
    assert recorded.problems() == []
