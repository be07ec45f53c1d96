"""Run the Rust client's own tests against Pleiad: `python -m conformance.rust.suite [--write]`.

The tests come inside the two crates of the client. Both are copied, unchanged, into a workspace in build/rust/suite, so
that the one is tested with the other. A setting of the compiler selects the tests, as the authors of the client do it:
those for an emulator, for the binary encoding and for splits. The others need several regions, a gateway of another
protocol or a management service, run without a server, or read files that are not in the package.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance import own_tests
from conformance.client_program import (
    BUILD_DIR,
    BuildFailedError,
)
from conformance.own_tests import Outcome, Verdict
from conformance.rust.run import PROGRAM, copy_program
from conformance.server_process import (
    EMULATOR_KEY,
    free_port,
    running_server,
)

SUITE_DIR = BUILD_DIR / "rust" / "suite"
CLIENT, DRIVER = "azure_data_cosmos", "azure_data_cosmos_driver"
CATEGORIES = "emulator", "binary_encoding", "split"
FEATURES = {
    CLIENT: "key_auth,control_plane,fault_injection,unstable_patch",
    DRIVER: "fault_injection,unstable_patch",
}
TARGETS = {CLIENT: ("emulator", "binary_encoding", "split"), DRIVER: ("emulator",)}
TARGET_TIMEOUT_S = 3600
_ENDED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
_SAID = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:)", re.MULTILINE | re.DOTALL)
_VERDICTS = {"ok": Verdict.PASSED, "FAILED": Verdict.FAILED, "ignored": Verdict.SKIPPED}


@dataclass(frozen=True, slots=True)
class TestBinary:
    """One target of tests, built."""

    crate: str
    target: str
    executable: Path


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.rust.suite", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/compatibility.md")
    parser.add_argument("--only", default="", metavar="TEXT", help="only tests with this text in their names")
    options = parser.parse_args(arguments)
    return own_tests.run_suite("Rust", "cargo", lambda: _suite(options.only), options.write)


def _suite(only: str) -> tuple[str, list[Outcome]]:
    """Run the tests; return what the page says of them, and how they ended."""
    versions = _copy_crates()
    return _lead(versions), _run(_build(), only)


def _copy_crates() -> Mapping[str, str]:
    """Copy the crates that the program over this client uses into one workspace; return their versions."""
    source = copy_program(PROGRAM.build_dir)
    command = ["cargo", "metadata", "--format-version", "1"]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailedError(f"the crates cannot be downloaded:\n{done.stderr.strip()}")
    packages = {package["name"]: package for package in json.loads(done.stdout)["packages"]}
    for crate in (CLIENT, DRIVER):
        folder = SUITE_DIR / crate
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(Path(packages[crate]["manifest_path"]).parent, folder)
    lines = [
        "[workspace]",
        'resolver = "2"',
        f"members = {json.dumps([CLIENT, DRIVER])}",
        "[patch.crates-io]",
        f'{DRIVER} = {{ path = "{DRIVER}" }}',
        "[profile.dev]",
        "debug = false",
        "incremental = false",
    ]
    (SUITE_DIR / "Cargo.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {crate: str(packages[crate]["version"]) for crate in (CLIENT, DRIVER)}


def _build() -> list[TestBinary]:
    """Build the targets whose tests can be run here."""
    print("building the tests of the Rust client, which takes minutes the first time", flush=True)
    chosen = [f'--cfg test_category="{category}"' for category in CATEGORIES]
    flags = " ".join([*chosen, "--cfg cosmos_aad_supported", "--cap-lints allow"])
    environment = {**os.environ, "RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(SUITE_DIR / "target")}
    built = []
    for crate, targets in TARGETS.items():
        command = ["cargo", "test", "--no-run", "--message-format", "json", "--package", crate]
        command += ["--features", FEATURES[crate]]
        for target in targets:
            command += ["--test", target]
        done = subprocess.run(
            command, cwd=SUITE_DIR, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildFailedError(f"cargo failed:\n{done.stderr.strip()[-6000:]}")
        for message in map(json.loads, done.stdout.splitlines()):
            if message.get("executable") and message["target"]["name"] in targets:
                built.append(TestBinary(crate, message["target"]["name"], Path(message["executable"])))
    return built


def _run(binaries: list[TestBinary], only: str) -> list[Outcome]:
    port = free_port()
    outcomes: list[Outcome] = []
    with running_server(port, BUILD_DIR / "rust" / "suite-server.log", tls=True):
        environment = {
            **os.environ,
            "AZURE_COSMOS_CONNECTION_STRING": f"AccountEndpoint=https://127.0.0.1:{port};AccountKey={EMULATOR_KEY};",
            "AZURE_COSMOS_TEST_MODE": "required",
            "AZURE_COSMOS_EMULATOR_SERVER_CERT_VALIDATION_DISABLED": "true",
        }
        for binary in binaries:
            command = [str(binary.executable), "--test-threads", "2", *([only] if only else [])]
            done = subprocess.run(
                command,
                cwd=SUITE_DIR / binary.crate,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=TARGET_TIMEOUT_S,
            )
            outcomes += outcomes_of(binary, done.stdout)
    return outcomes


def outcomes_of(binary: TestBinary, output: str) -> list[Outcome]:
    """Read how each test ended from what the target printed."""
    said = {name: " ".join(text.split())[:300] for name, text in _SAID.findall(output)}
    prefix = "driver " if binary.crate == DRIVER else ""
    return [
        Outcome(f"{prefix}{_short(name)}", _VERDICTS[word], said.get(name, ""))
        for name, word in _ENDED.findall(output)
    ]


def _short(name: str) -> str:
    """Return the file and the function: the first part only repeats the target."""
    return name.split("::", 1)[-1]


def _lead(versions: Mapping[str, str]) -> str:
    return (
        f"The crates {CLIENT} {versions[CLIENT]} and {DRIVER} {versions[DRIVER]} hold tests for an emulator, "
        "for the binary encoding and for splits; `python -m conformance.rust.suite` runs them over HTTPS. Their "
        "other tests need several regions, another protocol or a management service, need no server, or read "
        "files that the crates do not hold. A name that begins with `driver` is of the second crate. Skipped are "
        "those that the authors keep for another emulator."
    )


if __name__ == "__main__":
    sys.exit(main())
