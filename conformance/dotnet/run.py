"""Check Pleiad with the official .NET client: `python -m conformance.dotnet.run`.

Runs the C# program of this folder by `dotnet` where its SDK is installed, else by the kit `shared/dotnet/netrun` beside
the checkout, against an ephemeral server on a free port over plain HTTP, in gateway mode. Passes the program's exit
code on. Exit code 3: there is neither an SDK nor the kit; 2: the check could not start.
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
    postgres_database,
    running_server,
    stop_children_when_terminated,
)

SOURCE_DIR = Path(__file__).resolve().parent
ROOT = SOURCE_DIR.parent.parent
BUILD_DIR = ROOT / "build" / "dotnet"
KIT = ROOT.parent / "shared" / "dotnet" / "netrun"
SECTIONS = "catalog,items,ids,queries,paging,changefeed,batch,bulk,scripts,binary,splits"
LEFT_OUT = "direct mode, which this server does not speak; several regions; client-side encryption"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.dotnet.run", description=__doc__)
    parser.add_argument("--sections", default=SECTIONS, help="comma-separated sections of the program")
    parser.add_argument(
        "--store", choices=("sqlite", "postgres"), default="sqlite", help="what the server keeps data in"
    )
    parser.add_argument("--endpoint", metavar="URL", help="use a server that already runs")
    parser.add_argument("--key", default=EMULATOR_KEY, help="account key for --endpoint")
    options = parser.parse_args(arguments)
    stop_children_when_terminated()
    command = _command()
    if command is None:
        print(
            "there is no .NET SDK here and no kit beside the checkout: the .NET client is left out",
            file=sys.stderr,
        )
        return 3
    try:
        return _check(command, options)
    except ServerUnavailableError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


def _command() -> list[str] | None:
    """What runs the program, or None where nothing does."""
    dotnet = shutil.which("dotnet")
    if dotnet is not None:
        sdks = subprocess.run([dotnet, "--list-sdks"], capture_output=True, text=True, check=False)
        if sdks.stdout.strip():
            shutil.copytree(SOURCE_DIR, BUILD_DIR / "source", dirs_exist_ok=True)
            return [dotnet, "run", "--configuration", "Release", "--project", str(BUILD_DIR / "source"), "--"]
    return [str(KIT), str(SOURCE_DIR)] if KIT.is_file() else None


def _check(command: list[str], options: argparse.Namespace) -> int:
    endpoint = options.endpoint
    with ExitStack() as stack:
        if endpoint is None:
            port = free_port()
            store = stack.enter_context(postgres_database()) if options.store == "postgres" else "sqlite"
            log = BUILD_DIR / "server.log"
            # What is throttled the client sends again, which is part of the check.
            stack.enter_context(running_server(port, log, tls=False, store=store, throttle="enforce"))
            endpoint = f"http://127.0.0.1:{port}/"
        # Without it the client asks a cloud's metadata address when it starts.
        environment = {**os.environ, "COSMOS_DISABLE_IMDS_ACCESS": "true"}
        program = [*command, endpoint, options.key, options.sections]
        code = subprocess.run(program, env=environment, check=False).returncode
    print(f"left out: {LEFT_OUT}")
    return code


if __name__ == "__main__":
    sys.exit(main())
