"""Run the programs over the official clients: `python -m conformance.clients [NAME ...]`, all of them without a name.

Each runs against an empty server of its own. One whose tools are not installed here is left out, and said so. The exit
code is 1 when a program failed or could not be built.
"""

import argparse
import subprocess
import sys
import time

from conformance.client_program import EXIT_LEFT_OUT

NAMES = ("dotnet", "javascript", "go", "java", "rust")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.clients", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    names = parser.parse_args(arguments).names or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"there is no program {', '.join(unknown)}; there are {', '.join(NAMES)}")
    outcomes = {name: _run(name) for name in names}
    print("\nThe programs over the official clients:")
    for name in NAMES:
        print(f"  {name:<12}{outcomes.get(name, 'left out: not asked for')}")
    return 1 if any(outcome.startswith("failed") for outcome in outcomes.values()) else 0


def _run(name: str) -> str:
    print(f"\n== {name}", flush=True)
    began_at = time.monotonic()
    code = subprocess.run([sys.executable, "-m", f"conformance.{name}.run"], check=False).returncode
    if code == EXIT_LEFT_OUT:
        return "left out: its tools are not installed here"
    verdict = "passed" if code == 0 else f"failed with exit code {code}"
    return f"{verdict} in {time.monotonic() - began_at:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
