"""``python -m differential``: Pleiad beside the service's query planner.

First the recorded answers, then, where the planner itself lies beside the checkout, fresh random expressions and
queries. Differences are grouped by cause and shown by their shortest text. The exit code is 1 when a cause is not
named, with its reason, on the page of compatibility, or when wild queries agree less often than they have to.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from differential import fresh, recorded
from differential.compare import Difference, Tally, note_answer, report
from differential.ours import Case, answer_of, planner_answer
from differential.planner import Planner, is_here
from differential.shrink import shrunk

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
_ENTRY = re.compile(r"^- `(?P<cause>[^`]+)`: ", re.MULTILINE)


def known_causes(page: Path = PAGE) -> list[str]:
    """The causes that the page names under its heading about the planner."""
    text = page.read_text(encoding="utf-8")
    part = text.partition("## The service's query planner")[2].partition("\n## ")[0]
    return _ENTRY.findall(part)


def is_known(difference: Difference, known: list[str]) -> bool:
    """Whether the page names the cause of a difference: by its measure, as one of errors, or as one of acceptance."""
    measures = {difference.measure, "acceptance"}
    if difference.measure in ("code", "text", "place"):
        measures.add("errors")
    return any(f"{measure}: {difference.cause}" in known for measure in measures)


def shrink_each(tally: Tally, planner: Planner, shown: int) -> None:
    """Replace the first texts of each cause by shorter ones that differ in the same way."""
    groups: dict[tuple[str, str], int] = {}
    for number, each in enumerate(tally.differences):
        key = (each.measure, each.cause)
        groups[key] = groups.get(key, 0) + 1
        if groups[key] > shown:
            continue

        def differs(text: str, wanted: Difference = each) -> bool:
            again = Tally()
            if wanted.measure == "values":
                fresh.note_expression(planner, text, again)
            else:
                case = Case(text)
                document = planner.ask(case)
                if document is not None:
                    note_answer(again, text, planner_answer(document), answer_of(case))
            return any(
                (one.measure, one.cause) == (wanted.measure, wanted.cause) for one in again.differences
            )

        if differs(each.text):
            text = shrunk(each.text, differs)
            tally.differences[number] = Difference(each.measure, each.cause, text, each.expected, each.found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    shared = ROOT.parent / "shared"
    parser.add_argument(
        "--shared", type=Path, default=shared, help="the folder with the planner and the records"
    )
    parser.add_argument("--show", type=int, default=1, help="texts shown for each cause")
    parser.add_argument("--expressions", type=int, default=20_000, help="fresh expressions")
    parser.add_argument("--queries", type=int, default=10_000, help="fresh queries")
    parser.add_argument("--wild", type=int, default=5_000, help="fresh wild queries")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats a run")
    given = parser.parse_args()
    known = known_causes()
    failed = False
    tally = Tally()
    if (given.shared / "reference" / recorded.QUERIES).is_file():
        recorded.check_constants(given.shared / "reference" / recorded.CONSTANTS, tally)
        recorded.check_queries(given.shared / "reference" / recorded.QUERIES, tally)
        print("recorded answers")
        failed |= show(tally, known, given.show)
    if not is_here(given.shared):
        print("the planner does not lie beside the checkout: no fresh texts")
        return int(failed)
    tally = Tally()
    with Planner(given.shared) as planner:
        fresh.check_expressions(planner, given.seed, given.expressions, tally)
        fresh.check_queries(planner, given.seed, given.queries, tally)
        shrink_each(tally, planner, given.show)
        wild = Tally()
        fresh.check_wild(planner, given.seed, given.wild, wild)
    print(f"\nfresh texts, seed {given.seed}")
    failed |= show(tally, known, given.show)
    print(f"\nwild texts, seed {given.seed}")
    print("\n".join(report(wild, given.show)))
    return int(failed or any(wild.rate(measure) < least for measure, least in fresh.WILD_RATES.items()))


def show(tally: Tally, known: list[str], shown: int) -> bool:
    """Print rates and differences; whether there is one without a known cause."""
    print("\n".join(report(tally, shown)))
    unknown = sorted(
        {f"{each.measure}: {each.cause}" for each in tally.differences if not is_known(each, known)}
    )
    if unknown:
        print("\ncauses that docs/compatibility.md does not name:")
        print("\n".join(f"  {name}" for name in unknown))
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
