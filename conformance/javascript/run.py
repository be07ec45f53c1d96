"""Check Pleiad with the official JavaScript client: `python -m conformance.javascript.run`.

Installs the client into build/javascript and runs smoke.mjs there, over plain HTTP.
"""

import shutil
import sys
from pathlib import Path

from conformance.client_program import ClientProgram, check_client, require_tools, run_build_step

SOURCE_DIR = Path(__file__).resolve().parent


def build(directory: Path) -> list[str]:
    """Copy the check beside the client it imports, and install the client if its version is new."""
    require_tools("JavaScript", "node", "npm")
    installed = directory / "package.installed.json"
    wanted = (SOURCE_DIR / "package.json").read_text(encoding="utf-8")
    shutil.rmtree(directory / "sections", ignore_errors=True)
    shutil.copytree(SOURCE_DIR / "sections", directory / "sections")
    for name in ("package.json", "check.mjs", "smoke.mjs"):
        shutil.copy(SOURCE_DIR / name, directory / name)
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        run_build_step(install, directory)
        installed.write_text(wanted, encoding="utf-8")
    return ["node", "smoke.mjs"]


PROGRAM = ClientProgram(
    name="javascript",
    language="JavaScript",
    sections="foundation,batch,bulk,queries,paging,conditions,changefeed,scripts,encryption,splits",
    left_out=(
        "several regions; and what the client does wrong by itself: containers that did not "
        "change (it reads a body that is not there), orders of several types (it does not merge them), and going on "
        "from a token in an order of several keys (it asks for too few rows)"
    ),
    build=build,
)

if __name__ == "__main__":
    sys.exit(check_client(PROGRAM))
