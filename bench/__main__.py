"""``python -m bench``: run the scenarios, print the table, write ``build/bench.json``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from datetime import date

from bench.load import LoadError, LoadProcess
from bench.process import BUILD, machine
from bench.report import Bar, Line, Run, load_last, save, text_table, write_docs
from bench.scenarios import FAMILIES
from bench.settings import FULL, QUICK


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Pleiad against its bars.")
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=f"only these (of: {', '.join(FAMILIES)})"
    )
    parser.add_argument("--quick", action="store_true", help="rounds of about a second")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bar is missed")
    parser.add_argument(
        "--write-docs",
        action="store_true",
        help="measure nothing: put the tables of the last run into docs/performance.md",
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.families if name not in FAMILIES]
    if unknown:
        parser.error(f"there is no family {', '.join(unknown)}")
    return arguments


def _measure(families: list[str], quick: bool) -> Run:
    settings = QUICK if quick else FULL
    BUILD.mkdir(exist_ok=True)
    load_average = os.getloadavg()[0]
    lines: list[Line] = []
    bars: list[Bar] = []
    with LoadProcess() as load:
        for name in families or FAMILIES:
            report = FAMILIES[name](settings, load)
            lines += report.lines
            bars += report.bars
    return Run(
        machine=machine(),
        date=date.today().isoformat(),
        load_average=load_average,
        rounds=settings.rounds,
        seconds=settings.seconds,
        lines=tuple(lines),
        bars=tuple(bars),
    )


def main() -> int:
    """Run as asked; 1 when the run itself failed, or with ``--check`` when a bar was missed."""
    arguments = _arguments()
    if arguments.write_docs:
        try:
            write_docs(load_last())
        except FileNotFoundError:
            print("nothing was written: there is no earlier run; run the benchmark first", file=sys.stderr)
            return 1
        except ValueError as error:
            print(f"nothing was written: {error}", file=sys.stderr)
            return 1
        return 0
    try:
        run = _measure(arguments.families, arguments.quick)
    except LoadError as error:
        print(f"the benchmark failed: {error}", file=sys.stderr)
        return 1
    save(run)
    with contextlib.suppress(BrokenPipeError):
        print(text_table(run))
    return 1 if arguments.check and not all(bar.kept for bar in run.bars) else 0


if __name__ == "__main__":
    sys.exit(main())
