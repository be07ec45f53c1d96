"""The physical partitions of a container as text: a table with bars that fits the terminal.

The bar of the size compares the partitions with the largest of them, so that an uneven key is seen at once; the bar of
the throughput is the share used of what is allowed. What does not fit is left out: first the bars get shorter, then
ancestors and ranges go.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from pleiad.cli.key import key_text
from pleiad.cli.view.table import shown, width_of
from pleiad.cli.view.words import counted
from pleiad.limits import size_text

_GAP = "  "
_BAR_WIDTH_MAX = 20
_BAR_WIDTH_MIN = 4
_WIDTH_UNLIMITED = 120
_HOT_PERCENT = 90.0
_RANGE_DIGITS = 6
_KEY_WIDTH_MIN = 10
_BALANCE_COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class Look:
    """How text may look: the columns there are, whether colours show, and the letters of a bar and of a cut."""

    columns: int | None = None
    colours: bool = False
    blocks: tuple[str, str] = ("█", "░")
    cut: str = "…"

    def styled(self, text: str, colour: str) -> str:
        return click.style(text, fg=colour) if self.colours else text


@dataclass(frozen=True, slots=True)
class _Column:
    """One column: its title, its cells, whether they stand right, and when it may go."""

    title: str
    cells: list[str]
    right: bool = False
    keep: int = 9
    """The lowest goes first when the terminal is narrow."""
    colours: list[str] | None = None

    @property
    def width(self) -> int:
        return max(map(width_of, [self.title, *self.cells]))


def view(answer: dict[str, Any], warnings: Sequence[dict[str, Any]], look: Look) -> str:
    """The whole picture of a container."""
    lines = [*_wrapped(_heading(answer), look), *_balance(answer.get("balance"), look)]
    lines += ["", *_partitions(answer["partitions"], look)]
    lines += _section("largest logical partitions", answer["largest"], _largest_line, look)
    lines += _section("hottest logical partitions", answer["hottest"], _hottest_line, look)
    if answer["history"]:
        gone = ", ".join(shown(each["id"]) for each in answer["history"])
        lines += ["", _cut(f"split or merged before: {gone}", look)]
    if warnings:
        lines += ["", "warnings"]
        for each in warnings:
            text = _wrapped(shown(each["message"]), look, indent="  ")
            lines += [look.styled(line, "yellow") for line in text]
    return "\n".join(lines)


def _heading(answer: dict[str, Any]) -> str:
    parts = [
        f"{shown(answer['database'])}/{shown(answer['container'])}",
        "key " + ", ".join(map(shown, answer["partitionKey"])),
    ]
    throughput = answer["throughput"]
    if throughput:
        kind = "autoscale up to " if throughput["autoscale"] else ""
        owner = ", shared by its database" if throughput["shared"] else ""
        parts.append(f"{kind}{throughput['ru']:,} RU/s{owner}")
    parts.append(counted(len(answer["partitions"]), "physical partition"))
    return "   ".join(parts)


def _balance(balance: dict[str, Any] | None, look: Look) -> list[str]:
    """The server's own words on how the key spreads the load."""
    if balance is None:
        return []
    text = _wrapped(shown(f"{balance['word']}. {balance['sentence']} {balance['why']}"), look)
    colour = _BALANCE_COLOURS.get(balance["level"], "")
    return ["", *(look.styled(line, colour) if colour else line for line in text)]


def _partitions(partitions: list[dict[str, Any]], look: Look) -> list[str]:
    largest = max((each["bytes"] for each in partitions), default=0) or 1
    size_shares = [each["bytes"] / largest for each in partitions]
    columns = [
        _Column("partition", [shown(each["id"]) for each in partitions]),
        _Column("range", [_range(each) for each in partitions], keep=2),
        _Column("items", [f"{each['items']:,}" for each in partitions], right=True, keep=5),
        _Column("size", [size_text(each["bytes"]) for each in partitions], right=True),
    ]
    loads = [each["ru"] for each in partitions if "ru" in each]
    load_columns: list[_Column] = []
    used_shares: list[float] = []
    if len(loads) == len(partitions):
        used_shares = [load["normalizedPercent"] / 100 for load in loads]
        colours = ["red" if 100 * share >= _HOT_PERCENT else "" for share in used_shares]
        used = [f"{load['lastSecond']:,.0f} of {load['allowed']:,.0f}" for load in loads]
        load_columns = [
            _Column("RU/s", used, right=True, keep=6),
            _Column("busy", [f"{100 * share:.0f}%" for share in used_shares], right=True, colours=colours),
            _Column("429s", [f"{load['throttled']:,}" for load in loads], right=True, keep=7),
        ]
        if any(load.get("overBudget") for load in loads):
            over = [f"{load['overBudget']:,}" for load in loads]
            load_columns.append(_Column("over", over, right=True, keep=7))
    parents = [",".join(map(shown, each["parents"])) or "-" for each in partitions]
    last = _Column("from", parents, keep=1)
    return _fitted(columns, size_shares, load_columns, used_shares, last, look)


def _fitted(
    columns: list[_Column],
    size_shares: list[float],
    load_columns: list[_Column],
    used_shares: list[float],
    last: _Column,
    look: Look,
) -> list[str]:
    """The table with as many columns and as long bars as there is room for."""
    room = look.columns or _WIDTH_UNLIMITED
    kept = [*columns, *load_columns, last]
    bars = 2 if used_shares else 1
    while _width(kept) + bars * (_BAR_WIDTH_MIN + len(_GAP)) > room and min(each.keep for each in kept) < 9:
        kept.remove(min(kept, key=lambda each: each.keep))
    bar_width = min(_BAR_WIDTH_MAX, (room - _width(kept)) // bars - len(_GAP))
    if bar_width >= _BAR_WIDTH_MIN:
        kept.insert(kept.index(columns[-1]) + 1, _bars(size_shares, bar_width, look, "cyan"))
        if used_shares:
            kept.insert(kept.index(load_columns[1]) + 1, _bars(used_shares, bar_width, look, "green"))
    return [_line([each.title for each in kept], kept, look, None)] + [
        _line([each.cells[row] for each in kept], kept, look, row) for row in range(len(size_shares))
    ]


def _bars(shares: list[float], width: int, look: Look, colour: str) -> _Column:
    full, empty = look.blocks
    cells = []
    for share in shares:
        # What is not nothing shows, however small.
        filled = min(width, max(round(share * width), 1 if share > 0 else 0))
        cells.append(full * filled + empty * (width - filled))
    hot = ["red" if colour == "green" and 100 * share >= _HOT_PERCENT else colour for share in shares]
    return _Column("", cells, colours=hot)


def _width(columns: Sequence[_Column]) -> int:
    return sum(each.width for each in columns) + len(_GAP) * (len(columns) - 1)


def _line(cells: list[str], columns: Sequence[_Column], look: Look, row: int | None) -> str:
    parts = []
    for cell, column in zip(cells, columns, strict=True):
        blanks = " " * (column.width - width_of(cell))
        colour = column.colours[row] if column.colours and row is not None else ""
        text = look.styled(cell, colour) if colour else cell
        parts.append(blanks + text if column.right else text + blanks)
    return _GAP.join(parts).rstrip()


def _range(partition: dict[str, Any]) -> str:
    low, high = partition["minInclusive"] or "00", partition["maxExclusive"]
    return f"{low[:_RANGE_DIGITS]}-{high[:_RANGE_DIGITS]}"


def _section(
    title: str, entries: list[dict[str, Any]], line: Callable[[dict[str, Any]], str], look: Look
) -> list[str]:
    if not entries:
        return []
    keys = [key_text(each["key"]) for each in entries]
    texts = [line(each) for each in entries]
    room = (look.columns or _WIDTH_UNLIMITED) - max(map(width_of, texts)) - len(f"  {_GAP}")
    width = min(max(map(width_of, keys)), max(room, _KEY_WIDTH_MIN))
    lines = ["", title]
    for key, text in zip(keys, texts, strict=True):
        name = _cut_to(key, width, look)
        lines.append(_cut(f"  {name}{' ' * (width - width_of(name))}{_GAP}{text}", look))
    return lines


def _largest_line(entry: dict[str, Any]) -> str:
    return (
        f"{size_text(entry['bytes']):>9}  {entry['percent']:6.2f}% full  {counted(entry['items'], 'item')}  "
        f"partition {shown(entry['partition'])}"
    )


def _hottest_line(entry: dict[str, Any]) -> str:
    places = ", ".join(map(shown, entry["partitions"]))
    return f"{entry['ruPerSecond']:>12,.2f} RU/s  partition {places}"


def _cut(text: str, look: Look) -> str:
    return text if look.columns is None else _cut_to(text, look.columns, look)


def _wrapped(text: str, look: Look, indent: str = "") -> list[str]:
    width = look.columns or _WIDTH_UNLIMITED
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, replace_whitespace=False
    )


def _cut_to(text: str, width: int, look: Look) -> str:
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[:-1]
    return text + look.cut
