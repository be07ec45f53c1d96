"""A program over one official client: built, run against an empty server of its own, and reported by its exit code.

Each folder beside this file holds one such program. It reads the address, the keys and the sections to run from its
environment, prints a line for each check and `N passed, M failed` at the end, and fails if a check did. A program over
a client that has two connection modes runs in each, against a server each, and a check that passes in one has to pass
in the other. Exit codes: 0 all passed, 1 a check failed, 2 the program could not be built or started, 3 its tools are
not installed here.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from conformance.server_process import (
    EMULATOR_KEY,
    ServerUnavailableError,
    free_port,
    postgres_database,
    running_server,
    stop_children_when_terminated,
)

BUILD_DIR = Path(__file__).resolve().parent.parent / "build"
GATEWAY, DIRECT = "gateway", "direct"
EXIT_NOT_STARTED = 2
EXIT_LEFT_OUT = 3

# A second key, for reads only: the programs look whether a client that holds it is refused writes, and only these.
READ_ONLY_KEY = "cmVhZHMgb25seSwgZm9yIHRoZSBwcm9ncmFtcyBvdmVyIHRoZSBjbGllbnRz"


class ToolMissingError(Exception):
    """What builds or runs the program is not installed here; the text says what."""


class BuildFailedError(Exception):
    """The program could not be built; the text says why."""


@dataclass(frozen=True, kw_only=True)
class ClientProgram:
    """What is particular to the program over one client."""

    name: str
    language: str
    sections: str
    left_out: str
    # Builds the program in the folder given, and returns the command that runs it.
    build: Callable[[Path], list[str]]
    modes: tuple[str, ...] = (GATEWAY,)
    """The connection modes to run it in."""
    scheme: str = "http"
    throttle: str = "observe"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def build_dir(self) -> Path:
        """Where the program is built, and where its server logs."""
        return BUILD_DIR / self.name


def require_tools(language: str, *tools: str) -> None:
    """Raise unless every tool is installed."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise ToolMissingError(
            f"{' and '.join(missing)} not installed here: the {language} client is left out"
        )


def run_build_step(
    command: Sequence[str], directory: Path, *, environment: dict[str, str] | None = None
) -> None:
    """Run one step of a build, and raise with what it printed if it fails."""
    print(f"building: {' '.join(command)}", flush=True)
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildFailedError(f"{command[0]} failed:\n{done.stdout.strip()[-6000:]}")


def check_client(program: ClientProgram, arguments: list[str] | None = None) -> int:
    """Build the program, run it as the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog=f"python -m conformance.{program.name}.run",
        description=f"Check Pleiad with the official {program.language} client.",
    )
    parser.add_argument(
        "--sections",
        default=program.sections,
        help=f"comma-separated, of {program.sections.replace(',', ', ')}",
    )
    parser.add_argument(
        "--store", choices=("sqlite", "postgres"), default="sqlite", help="what the server keeps data in"
    )
    parser.add_argument("--mode", choices=program.modes, help="one connection mode only")
    parser.add_argument("--endpoint", metavar="URL", help="use a server that already runs")
    parser.add_argument("--key", default=EMULATOR_KEY, help="account key for --endpoint")
    parser.add_argument("--read-only-key", default=READ_ONLY_KEY, help="key for reads only for --endpoint")
    options = parser.parse_args(arguments)
    stop_children_when_terminated()
    program.build_dir.mkdir(parents=True, exist_ok=True)
    try:
        command = program.build(program.build_dir)
        modes = program.modes if options.mode is None else (options.mode,)
        outcomes = [_run(program, mode, command, options) for mode in modes]
    except ToolMissingError as error:
        print(error, file=sys.stderr)
        return EXIT_LEFT_OUT
    except (BuildFailedError, ServerUnavailableError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return EXIT_NOT_STARTED
    print(f"left out: {program.left_out}", flush=True)
    is_same = _report_differences(outcomes)
    return max(outcome.code for outcome in outcomes) if is_same else 1


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    mode: str
    code: int
    passed: frozenset[str]


def _report_differences(outcomes: Sequence[Outcome]) -> bool:
    """Print what passes in one mode and not in another; whether nothing does."""
    everywhere = frozenset.intersection(*(outcome.passed for outcome in outcomes))
    for outcome in outcomes:
        for name in sorted(outcome.passed - everywhere):
            print(f"only in {outcome.mode} mode: {name}", flush=True)
    if len(outcomes) > 1:
        modes = " and ".join(outcome.mode for outcome in outcomes)
        print(f"{len(everywhere)} checks passed in {modes} mode", flush=True)
    return all(outcome.passed == everywhere for outcome in outcomes)


def _run(program: ClientProgram, mode: str, command: list[str], options: argparse.Namespace) -> Outcome:
    if len(program.modes) > 1:
        print(f"-- {mode} mode", flush=True)
    # Frames travel inside TLS only, so a client in direct mode has to trust the server anyway.
    scheme = "https" if mode == DIRECT else program.scheme
    with ExitStack() as stack:
        endpoint = options.endpoint
        key, read_only_key = options.key, options.read_only_key
        if endpoint is None:
            port = free_port()
            key, read_only_key = EMULATOR_KEY, READ_ONLY_KEY
            store = stack.enter_context(postgres_database()) if options.store == "postgres" else "sqlite"
            server = running_server(
                port,
                program.build_dir / f"server-{mode}.log",
                tls=scheme == "https",
                store=store,
                throttle=program.throttle,
                read_only_key=read_only_key,
            )
            stack.enter_context(server)
            endpoint = f"{scheme}://127.0.0.1:{port}/"
        environment = {
            **os.environ,
            **program.environment,
            "ACCOUNT_HOST": endpoint,
            "ACCOUNT_KEY": key,
            "ACCOUNT_READ_ONLY_KEY": read_only_key,
            "SECTIONS": options.sections,
            "CONNECTION_MODE": mode,
        }
        return _watched(mode, command, program.build_dir, environment)


def _watched(mode: str, command: list[str], directory: Path, environment: dict[str, str]) -> Outcome:
    """Run the program, print what it prints, and note the checks that passed."""
    passed = set()
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            verdict, _, name = line.strip().partition(" ")
            if verdict == "ok":
                passed.add(name.strip())
    return Outcome(mode, process.returncode, frozenset(passed))
