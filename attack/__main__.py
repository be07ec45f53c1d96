"""``python -m attack``: run the classes of attack on both stores, print the table, end with 1 where a promise broke."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
import tempfile
import time
from pathlib import Path

from attack.report import Outcome, save, table
from attack.settings import FULL, QUICK, STORES, Settings
from attack.target import store_named
from bench.process import BUILD, machine
from conformance.server_process import stop_children_when_terminated

CLASSES = ("rights", "stall", "memory", "connections", "files", "fuzz")
REPORT = BUILD / "attack.json"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m attack", description="Attack real servers on this machine and see what holds."
    )
    parser.add_argument(
        "--only", action="append", choices=CLASSES, metavar="CLASS", help=f"of {', '.join(CLASSES)}"
    )
    parser.add_argument("--store", choices=[*STORES, "both"], default="both")
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of hours")
    parser.add_argument(
        "--seed", type=int, default=FULL.seed, help="repeats a run; printed with every finding"
    )
    parser.add_argument(
        "--requests", type=int, help="how many fuzzed requests, over both stores and both schemes"
    )
    parser.add_argument("--queries", type=int, help="how many fuzzed queries, over both stores")
    parser.add_argument(
        "--frames", type=int, help="how many handfuls of fuzzed frames of direct mode, over both stores"
    )
    parser.add_argument(
        "--json", type=Path, default=REPORT, help=f"where figures are written ({REPORT.name})"
    )
    return parser.parse_args()


def _settings(arguments: argparse.Namespace) -> Settings:
    settings = dataclasses.replace(QUICK if arguments.quick else FULL, seed=arguments.seed)
    if arguments.requests is not None:
        settings = dataclasses.replace(settings, fuzz_requests=arguments.requests)
    if arguments.queries is not None:
        settings = dataclasses.replace(settings, fuzz_queries=arguments.queries)
    if arguments.frames is not None:
        settings = dataclasses.replace(settings, fuzz_frames=arguments.frames)
    return settings


def run(names: list[str], stores: list[str], settings: Settings, directory: Path) -> list[Outcome]:
    """Every class on every store, each on a store of its own; what a class found is told when it ends."""
    outcomes: list[Outcome] = []
    for store in stores:
        for name in names:
            began_at = time.monotonic()
            data = directory / store / name
            data.mkdir(parents=True)
            with store_named(store) as setting:
                outcome = importlib.import_module(f"attack.classes.{name}").run(settings, setting, data)
            outcome.store = store
            outcomes.append(outcome)
            seconds = time.monotonic() - began_at
            print(
                f"{name} on {store}: {len(outcome.broken)} broken, {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return outcomes


def main() -> int:
    """Run as asked; 1 when a promise did not hold."""
    stop_children_when_terminated()
    arguments = _arguments()
    settings = _settings(arguments)
    stores = list(STORES) if arguments.store == "both" else [arguments.store]
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="attack-", dir=BUILD) as directory:
        outcomes = run(arguments.only or list(CLASSES), stores, settings, Path(directory))
    save(outcomes, arguments.json, settings)
    print(f"{machine()}\nseed {settings.seed}\n\n{table(outcomes)}")
    return 1 if any(outcome.broken for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
