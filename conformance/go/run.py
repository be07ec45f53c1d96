"""Check Pleiad with the official Go client: `python -m conformance.go.run`.

Builds the program of this folder with the Go toolchain and runs it over plain HTTP.
"""

import sys
from pathlib import Path

from conformance.client_program import ClientProgram, check_client, require_tools, run_build_step

SOURCE_DIR = Path(__file__).resolve().parent


def build(directory: Path) -> list[str]:
    """Build the program with the client that go.mod names."""
    require_tools("Go", "go")
    program = directory / "check"
    run_build_step(["go", "build", "-o", str(program), "."], SOURCE_DIR)
    return [str(program)]


PROGRAM = ClientProgram(
    name="go",
    language="Go",
    sections="catalog,items,ids,patch,batch,queries,paging,readmany,changefeed,access,splits",
    left_out=(
        "several regions; scripts, users and permissions, which the client does not have; and what it does wrong by "
        "itself: keys with letters beyond the basic plane (no JSON), read many with keys of version 1 in several "
        "physical partitions (it asks the wrong one)"
    ),
    build=build,
)

if __name__ == "__main__":
    sys.exit(check_client(PROGRAM))
