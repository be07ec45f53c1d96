"""Check Pleiad with the official Rust client: `python -m conformance.rust.run`.

Cargo builds the program of this folder into build/rust; it runs over plain HTTP, which the client first tries to speak
as HTTP/2, with the binary encoding that is its default.
"""

import shutil
import sys
from pathlib import Path

from conformance.client_program import ClientProgram, check_client, require_tools, run_build_step

SOURCE_DIR = Path(__file__).resolve().parent


def copy_program(directory: Path) -> Path:
    """Copy the program into the folder, where Cargo notes the versions that it chooses beside it."""
    source = directory / "source"
    shutil.rmtree(source / "src", ignore_errors=True)
    shutil.copytree(SOURCE_DIR, source, dirs_exist_ok=True)
    return source


def build(directory: Path) -> list[str]:
    """Build a copy of the program."""
    require_tools("Rust", "cargo")
    source, target = copy_program(directory), directory / "target"
    if not target.exists():
        print("the first build of the Rust client compiles about 200 crates and takes minutes", flush=True)
    run_build_step(["cargo", "build"], source, environment={"CARGO_TARGET_DIR": str(target)})
    return [str(target / "debug" / "pleiad-check")]


PROGRAM = ClientProgram(
    name="rust",
    language="Rust",
    sections="transport,catalog,items,patch,batch,queries,paging,changefeed,access,splits",
    left_out=(
        "several regions; scripts, users and permissions, which the client does not have; queries that it refuses "
        "itself over several partitions (groups, aggregates, hybrid search)"
    ),
    build=build,
)

if __name__ == "__main__":
    sys.exit(check_client(PROGRAM))
