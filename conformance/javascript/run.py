"""Check Pleiad with the official JavaScript client: `python -m conformance.javascript.run`.

Installs the client into build/javascript, starts an ephemeral server on a free port over plain HTTP, runs
smoke.mjs and passes its exit code on. Exit code 3: Node.js or npm is missing; 2: the check could not start.
"""

import argparse
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from conformance.server_process import (
    EMULATOR_KEY,
    ServerUnavailableError,
    free_port,
    running_server,
    stop_children_when_terminated,
)

SOURCE_DIR = Path(__file__).resolve().parent
BUILD_DIR = SOURCE_DIR.parent.parent / "build" / "javascript"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.javascript.run", description=__doc__)
    parser.add_argument(
        "--sections",
        default="foundation,batch,bulk,queries,changefeed,scripts,splits",
        help="comma-separated sections of smoke.mjs, or all",
    )
    parser.add_argument("--endpoint", metavar="URL", help="use a server that already runs")
    parser.add_argument("--key", default=EMULATOR_KEY, help="account key for --endpoint")
    options = parser.parse_args(arguments)
    stop_children_when_terminated()
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed: the JavaScript client cannot be checked", file=sys.stderr)
            return 3
    if not _install():
        return 2
    try:
        return _check(options.endpoint, options.key, options.sections)
    except ServerUnavailableError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


def _install() -> bool:
    """Copy the check beside the client it imports, and install the client if its version is new."""
    installed = BUILD_DIR / "package.installed.json"
    wanted = (SOURCE_DIR / "package.json").read_text(encoding="utf-8")
    shutil.rmtree(BUILD_DIR / "sections", ignore_errors=True)
    BUILD_DIR.mkdir(parents=True, exist_ok=True)
    shutil.copytree(SOURCE_DIR / "sections", BUILD_DIR / "sections")
    for name in ("package.json", "check.mjs", "smoke.mjs"):
        shutil.copy(SOURCE_DIR / name, BUILD_DIR / name)
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return True
    command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=BUILD_DIR, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"npm install failed:\n{done.stderr.strip()}", file=sys.stderr)
        return False
    installed.write_text(wanted, encoding="utf-8")
    return True


def _check(endpoint: str | None, key: str, sections: str) -> int:
    with ExitStack() as stack:
        if endpoint is None:
            port = free_port()
            stack.enter_context(running_server(port, BUILD_DIR / "server.log", tls=False))
            endpoint = f"http://127.0.0.1:{port}/"
        environment = {**os.environ, "ACCOUNT_HOST": endpoint, "ACCOUNT_KEY": key, "SECTIONS": sections}
        return subprocess.run(["node", "smoke.mjs"], cwd=BUILD_DIR, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
