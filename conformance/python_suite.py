"""Run the official Python suite of Cosmos DB against Pleiad: `python -m conformance.python_suite`.

Downloads the suite, starts an ephemeral server, on SQLite or on a PostgreSQL of its own, runs the selected tests and
reports every failure with its reason. Exit codes: 0 every failure has a reason, 1 some failure has none, 2 the suite
could not be run.
The suite takes a server for an emulator only at exactly https://localhost:8081/, so that port is used
when it is free; on another port it skips what it reserves for emulators.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from conformance import reasons, report, results
from conformance.selection import GROUP_NAMES
from conformance.server_process import (
    EMULATOR_KEY,
    EMULATOR_PORT,
    ServerProcess,
    ServerUnavailableError,
    free_port,
    port_is_free,
    postgres_database,
    running_server,
    stop_children_when_terminated,
)
from conformance.suite_source import (
    BUILD_DIR,
    PROJECT_ROOT,
    SUITE_VERSION,
    Suite,
    SuiteUnavailableError,
    prepare,
)

LIMITS_FILE = PROJECT_ROOT / "conformance" / "limits.toml"
PAGE_FILE = PROJECT_ROOT / "docs" / "compatibility.md"
PROGRESS_INTERVAL_S = 15.0
EMULATOR_REGION_HOST = "127.0.0.1"
"""What the suite's authors found their emulator to call its region: they take it for a second one beside localhost."""
_NOTHING_COLLECTED = 5
"""What pytest ends with when every test of a file is left out."""


@dataclass(frozen=True, slots=True)
class Output:
    """The folder where a run leaves its files, one for each store."""

    folder: Path

    @property
    def results(self) -> Path:
        return self.folder / "results.jsonl"

    @property
    def selection(self) -> Path:
        return self.folder / "selection.json"

    @property
    def pytest_log(self) -> Path:
        return self.folder / "pytest.log"

    @property
    def server_log(self) -> Path:
        return self.folder / "server.log"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    stop_children_when_terminated()
    output = Output(BUILD_DIR / options.store)
    try:
        table = reasons.load()
        if options.report_only:
            if not output.results.exists():
                print("there are no results of an earlier run", file=sys.stderr)
                return 2
        else:
            finished = _run_suite(options, output)
            if not finished:
                return 2
    except (SuiteUnavailableError, ServerUnavailableError, reasons.ReasonsInvalidError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    run = report.Run(
        SUITE_VERSION,
        report.Store(options.store),
        _command_shown(output),
        results.read(output.results),
        table,
    )
    print(report.summary(run))
    if options.write:
        PAGE_FILE.write_text(report.page(run, PAGE_FILE.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"written: {PAGE_FILE.relative_to(PROJECT_ROOT)}")
    return 1 if report.unexplained(run) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.python_suite", description=__doc__)
    add = parser.add_argument
    add("--select", action="append", choices=(*GROUP_NAMES, "all"), help="a group of tests; may be repeated")
    add("--file", action="append", metavar="PATTERN", help="only files of the suite, such as 'test_crud*.py'")
    add("-k", dest="expression", metavar="EXPRESSION", help="only tests whose names match, as in pytest")
    stores = [store.value for store in report.Store]
    add("--store", choices=stores, default="sqlite", help="the store of the server that is started (sqlite)")
    add("--endpoint", metavar="URL", help="use a server that already runs instead of starting one")
    add("--key", default=EMULATOR_KEY, help="account key for --endpoint; the well-known key if not given")
    add("--any-port", action="store_true", help="do not insist on port 8081: take a free port")
    add("--timeout", type=int, default=120, metavar="SECONDS", help="limit for a single test (120)")
    add("--stop-after", type=int, metavar="COUNT", help="stop after this many failures")
    add("--write", action="store_true", help="write docs/compatibility.md from the findings")
    add("--report-only", action="store_true", help="report the last run again, with today's reasons")
    return parser


def _run_suite(options: argparse.Namespace, output: Output) -> bool:
    """Prepare the suite, run it against a server, and say whether it got as far as running tests."""
    output.folder.mkdir(parents=True, exist_ok=True)
    print(f"preparing the suite of azure-cosmos {SUITE_VERSION}", flush=True)
    suite = prepare()
    with ExitStack() as stack:
        server: ServerProcess | None = None
        endpoint: str | None = options.endpoint
        if endpoint is None:
            port = _port(any_port=options.any_port)
            store = stack.enter_context(postgres_database()) if options.store == "postgres" else "sqlite"
            server = stack.enter_context(
                running_server(
                    port,
                    output.server_log,
                    tls=True,
                    limits=str(LIMITS_FILE),
                    store=store,
                    region_host=EMULATOR_REGION_HOST,
                )
            )
            endpoint = f"https://localhost:{port}/"
        print(f"running against {endpoint}", flush=True)
        exit_code = _run_pytest(suite, options, endpoint, output)
        if server is not None and server.exit_code() is not None:
            print(f"THE SERVER ENDED during the run with code {server.exit_code()}:\n{server.log_tail()}")
    if exit_code in (0, 1):
        return True
    print(f"pytest ended with code {exit_code}; the end of {output.pytest_log.relative_to(PROJECT_ROOT)}:")
    print("\n".join(output.pytest_log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]))
    # A run that broke off still has results worth showing, but the page must only ever tell of whole runs.
    options.write = False
    return bool(results.read(output.results).tests)


def _port(*, any_port: bool) -> int:
    if not any_port and port_is_free(EMULATOR_PORT):
        return EMULATOR_PORT
    if not any_port:
        print("port 8081 is taken: using another one, so the suite skips its emulator-only tests")
    return free_port()


def _run_pytest(suite: Suite, options: argparse.Namespace, endpoint: str, output: Output) -> int:
    groups = ["all"] if not options.select and options.file else options.select or ["foundation"]
    output.results.write_text("", encoding="utf-8")
    output.selection.write_text(json.dumps(_pytest_free_arguments()), encoding="utf-8")
    command = [str(suite.python), "-m", "pytest", "-c", str(suite.pytest_ini), "--rootdir", "."]
    command += ["-p", "no:cacheprovider", "-p", "conformance.pytest_recording"]
    # Native tracebacks: for its own, pytest parses the sources, which fails where an error is one of recursion.
    command += ["-q", "--tb=native", "-W", "ignore", "--show-capture=no"]
    command += ["--timeout", str(options.timeout), "--timeout-method", "signal"]
    command += ["--continue-on-collection-errors"]
    if options.expression:
        command += ["-k", options.expression]
    if options.stop_after:
        command += ["--maxfail", str(options.stop_after)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ACCOUNT_", "COSMOS_"))},
        "ACCOUNT_HOST": endpoint,
        "ACCOUNT_KEY": options.key,
        "CONFORMANCE_GROUPS": ",".join(groups),
        "CONFORMANCE_RESULTS": str(output.results),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join((str(suite.stand_in_dir), str(PROJECT_ROOT))),
    }
    exit_code = 0
    with output.pytest_log.open("wb") as log:
        for file in _files(suite.tests_dir, options.file or []):
            # A process for each file: some change the client for good, or delete the database that all others share.
            process = subprocess.Popen(
                [*command, file], cwd=suite.tests_dir, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                code = _wait_with_progress(process, output.results)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            exit_code = max(exit_code, 0 if code == _NOTHING_COLLECTED else code)
    return exit_code


def _files(tests_dir: Path, patterns: list[str]) -> list[str]:
    """Return the test files to collect; helpers and workloads of the suite are not tests."""
    wanted = patterns or ["test_*.py"]
    found = {path for pattern in wanted for path in tests_dir.rglob(pattern) if path.name.startswith("test_")}
    files = sorted(str(path.relative_to(tests_dir)) for path in found if path.name != "test_config.py")
    if not files:
        raise SuiteUnavailableError(f"no file of the suite matches {', '.join(wanted)}")
    return files


def _wait_with_progress(process: subprocess.Popen[bytes], results_file: Path) -> int:
    """Wait for the tests, saying now and then how far they are."""
    while True:
        try:
            return process.wait(PROGRESS_INTERVAL_S)
        except subprocess.TimeoutExpired:
            tests = results.read(results_file).tests
            failed_count = sum(test.outcome is results.Outcome.FAILED for test in tests)
            print(f"  {time.strftime('%H:%M:%S')} {len(tests)} tests done, {failed_count} failed", flush=True)


def _pytest_free_arguments() -> list[str]:
    """Return the options that say what was run, without those that only say what to do with it."""
    return [word for word in sys.argv[1:] if word not in ("--write", "--report-only")]


def _command_shown(output: Output) -> str:
    """Return the command that reproduces the results being reported."""
    try:
        arguments = json.loads(output.selection.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        arguments = []
    return shlex.join(["python", "-m", "conformance.python_suite", *arguments, "--write"])


if __name__ == "__main__":
    sys.exit(main())
