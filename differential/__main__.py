"""``python -m differential``: the recorded answers, or with ``--fresh`` random texts asked of the planner itself."""

from __future__ import annotations

import argparse
from pathlib import Path

from differential import recorded
from differential.compare import Tally, report

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


def main() -> None:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument(
        "--shared", type=Path, default=SHARED, help="the folder with the planner and the records"
    )
    parser.add_argument("--show", type=int, default=3, help="texts shown for each cause")
    given = parser.parse_args()
    tally = Tally()
    recorded.check_constants(given.shared / "reference" / recorded.CONSTANTS, tally)
    recorded.check_queries(given.shared / "reference" / recorded.QUERIES, tally)
    print("\n".join(report(tally, given.show)))


if __name__ == "__main__":
    main()
