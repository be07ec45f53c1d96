"""What a page of rows, changes or versions must look like, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pleiad.item.ttl import is_expired
from pleiad.keys.range import EpkRange
from pleiad.store.checked.breach import CALLER, demand
from pleiad.store.glances import Glances
from pleiad.store.moves import Export, ExportMark
from pleiad.store.rows import ItemKey, LogicalPartition, Row, Verb, Version
from pleiad.store.selection import PREDICATES_MAX, OrderPosition, PathOrder, Selection

PAGES = "11"
EXPIRY = "5"
UNIQUE = "4"


def check_limit(limit: int) -> None:
    demand(limit >= 0, CALLER, f"a limit of {limit}")


def check_rows(rows: Sequence[Row], span: EpkRange, after: int, limit: int) -> None:
    """Rows in the order of their numbers, each of them once."""
    numbers = [row.number for row in rows]
    demand(len(rows) <= limit, PAGES, f"{len(rows)} rows of at most {limit}")
    demand(all(number > after for number in numbers), PAGES, f"numbers not above {after}: {numbers}")
    demand(all(a < b for a, b in pairwise(numbers)), PAGES, f"numbers out of order: {numbers}")
    _check_range((row.epk for row in rows), span)


def check_rows_back(rows: Sequence[Row], span: EpkRange, before: int, limit: int) -> None:
    """Rows against the order of their numbers, each of them once."""
    numbers = [row.number for row in rows]
    demand(len(rows) <= limit, PAGES, f"{len(rows)} rows of at most {limit}")
    demand(all(number < before for number in numbers), PAGES, f"numbers not below {before}: {numbers}")
    demand(all(a > b for a, b in pairwise(numbers)), PAGES, f"numbers out of order: {numbers}")
    _check_range((row.epk for row in rows), span)


def check_unique_keys(rows: Iterable[Row]) -> None:
    """No two rows of one moment have one (epk, id)."""
    keys = [(row.epk, row.id) for row in rows]
    demand(len(set(keys)) == len(keys), UNIQUE, f"an id twice in one moment: {keys}")


def check_changes(rows: Sequence[Row], span: EpkRange, after_lsn: int, limit: int, since_ts: int = 0) -> None:
    """Rows in the order (LSN, number); none of an LSN that is only half there."""
    places = [(row.lsn, row.number) for row in rows]
    _check_lsns(places, after_lsn, limit)
    demand(all(row.ts >= since_ts for row in rows), PAGES, f"rows from before {since_ts}")
    _check_range((row.epk for row in rows), span)


def check_versions(versions: Sequence[Version], span: EpkRange, after_lsn: int, limit: int) -> None:
    """Versions in the order (LSN, epk, position), each a change that can be."""
    _check_lsns([(each.lsn, each.epk, each.position) for each in versions], after_lsn, limit)
    _check_range((version.epk for version in versions), span)
    for version in versions:
        is_right = (
            version.verb is not Verb.UPSERT
            and bool(version.body) == (version.verb is not Verb.DELETE)
            and bool(version.previous_body) == (version.verb is not Verb.CREATE)
            and version.previous_lsn <= version.lsn
        )
        demand(is_right, "8", f"not a change: {version}")


def _check_lsns(
    places: Sequence[tuple[int, ...] | tuple[int, bytes, int]], after_lsn: int, limit: int
) -> None:
    demand(all(place[0] > after_lsn for place in places), PAGES, f"LSNs not above {after_lsn}: {places}")
    demand(all(a < b for a, b in pairwise(places)), PAGES, f"changes out of order: {places}")
    beyond = [place for place in places[limit:] if place[0] != places[limit - 1][0]] if limit else places
    demand(not beyond, PAGES, f"changes beyond the limit of {limit}: {beyond}")


def check_export(piece: Export, span: EpkRange, after: ExportMark, limit: int) -> None:
    """A piece begins behind its mark, and the next one behind its last row and version."""
    check_changes(piece.rows, span, after.lsn, limit)
    check_versions(piece.versions, span, after.version_lsn, limit)
    check_unique_keys(piece.rows)
    lsn = piece.rows[-1].lsn if piece.rows else after.lsn
    version_lsn = piece.versions[-1].lsn if piece.versions else after.version_lsn
    demand(
        (piece.mark.lsn, piece.mark.version_lsn) == (lsn, version_lsn), PAGES, f"a wrong mark: {piece.mark}"
    )
    if after.delete is None:
        demand(not piece.deletes, PAGES, "deletes that nobody asked for")
    else:
        demand((piece.mark.delete or 0) >= after.delete, PAGES, "the mark of deletes goes back")
    both = set(piece.deletes) & {row.number for row in piece.rows}
    demand(not both, PAGES, f"rows that are there and deleted in one moment: {both}")


def check_found(rows: Sequence[Row | None], keys: Sequence[ItemKey]) -> None:
    """One answer for each key, and the row of that key."""
    demand(len(rows) == len(keys), PAGES, f"{len(rows)} answers for {len(keys)} keys")
    for row, key in zip(rows, keys, strict=True):
        demand(row is None or (row.epk, row.id) == tuple(key), PAGES, f"the row {row} for the key {key}")


def check_number(row: Row | None, number: int) -> None:
    demand(row is None or row.number == number, PAGES, f"the row {row} for the number {number}")


def check_numbers(rows: Sequence[Row], numbers: Sequence[int]) -> None:
    found = [row.number for row in rows]
    is_right = len(set(found)) == len(found) and set(found) <= set(numbers)
    demand(is_right, PAGES, f"the rows {found} for the numbers {list(numbers)}")


def check_selected(rows: Iterable[Row], selection: Selection) -> None:
    """Rows of a selection are of its range and alive."""
    found = list(rows)
    _check_range((row.epk for row in found), selection.span)
    for row in found if selection.ranges else ():
        inside = any(part.contains(row.epk) for part in selection.ranges)
        demand(inside, PAGES, f"the row {row} of none of the ranges")
    dead = [row for row in found if is_expired(row.ts, row.ttl, selection.default_ttl, selection.now)]
    demand(not dead, EXPIRY, f"rows whose time is over were selected: {dead}")


def check_glances(glances: Glances, names: Sequence[str], after: int, limit: int) -> None:
    """Glances are rows above a number in their order, each with a size and a text or nothing for every name."""
    numbers = [glance[0] for glance in glances]
    demand(len(glances) <= limit, PAGES, f"{len(glances)} rows of at most {limit}")
    demand(all(a < b for a, b in pairwise((after, *numbers))), PAGES, f"rows not in order behind {after}")
    for _, size_bytes, *texts in glances:
        is_right = size_bytes > 0 and len(texts) == len(names)
        is_right = is_right and all(text is None or isinstance(text, str) for text in texts)
        demand(is_right, PAGES, f"{size_bytes} bytes and {texts} for the properties {names}")


def check_ranges(selection: Selection, ranges_max: int) -> None:
    """No more predicates and ranges than the store takes, and ranges in order and apart, within the whole."""
    ranges, predicates = selection.ranges, selection.predicates
    demand(
        len(predicates) <= PREDICATES_MAX, CALLER, f"{len(predicates)} of at most {PREDICATES_MAX} predicates"
    )
    demand(len(ranges) <= ranges_max, PAGES, f"{len(ranges)} ranges of at most {ranges_max}")
    ends = [end for part in ranges for end in (part.min, part.max)]
    is_right = ends == sorted(ends) and all(part.intersect(selection.span) == part for part in ranges)
    demand(is_right, PAGES, f"ranges that are no parts of {selection.span} in order: {ranges}")


def check_ordered(
    found: Sequence[tuple[Row, OrderPosition]], order: PathOrder, after: OrderPosition | None, limit: int
) -> None:
    """Rows in the order of a path, behind a position."""
    demand(len(found) <= limit, PAGES, f"{len(found)} rows of at most {limit}")
    places = [_place(position) for _, position in found]
    if after is not None:
        places.insert(0, _place(after))
    if order.descending:
        places.reverse()
    demand(all(a < b for a, b in pairwise(places)), PAGES, f"not in the order of {order}: {places}")
    stray = [row for row, position in found if row.number != position.number]
    demand(not stray, PAGES, f"positions of other rows than {stray}")


def _place(position: OrderPosition) -> tuple[int, bytes | int | float, int]:
    value = position.value
    return position.rank, value.encode() if isinstance(value, str) else value, position.number


def check_logical(found: Sequence[LogicalPartition], span: EpkRange) -> None:
    """Logical partitions in the order of their epk, none of them empty."""
    epks = [each.epk for each in found]
    _check_range(epks, span)
    demand(all(a < b for a, b in pairwise(epks)), PAGES, f"logical partitions out of order: {epks}")
    demand(all(each.items > 0 for each in found), PAGES, "a logical partition without items")


def check_largest(found: Sequence[LogicalPartition], span: EpkRange, count: int, bytes_min: int) -> None:
    """The largest first, and none that is too small."""
    sizes = [each.size_bytes for each in found]
    _check_range((each.epk for each in found), span)
    demand(len(found) <= count, PAGES, f"{len(found)} logical partitions of at most {count}")
    demand(sizes == sorted(sizes, reverse=True), PAGES, f"sizes out of order: {sizes}")
    demand(all(size >= bytes_min for size in sizes), PAGES, f"sizes below {bytes_min}: {sizes}")


def check_expired(rows: Sequence[Row], span: EpkRange, now: int, default_ttl: int | None, limit: int) -> None:
    """Rows whose time is over, and no others."""
    demand(len(rows) <= limit, PAGES, f"{len(rows)} rows of at most {limit}")
    _check_range((row.epk for row in rows), span)
    alive = [row for row in rows if not is_expired(row.ts, row.ttl, default_ttl, now)]
    demand(not alive, EXPIRY, f"rows that are alive were told to be expired: {alive}")


def _check_range(epks: Iterable[bytes], span: EpkRange) -> None:
    outside = [epk for epk in epks if not span.contains(epk)]
    demand(not outside, PAGES, f"outside of {span}: {outside}")
