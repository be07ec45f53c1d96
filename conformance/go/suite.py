"""Run the Go client's own emulator tests against Pleiad: `python -m conformance.go.suite [--write]`.

The tests come inside the module. They are copied to build/go/suite, where only the address of the server is put in the
place of the emulator's, and run one by one, since one that panics ends its process.
"""

import argparse
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from conformance import own_tests
from conformance.client_program import (
    BUILD_DIR,
    BuildFailedError,
    run_build_step,
)
from conformance.own_tests import Outcome, Verdict
from conformance.server_process import (
    free_port,
    running_server,
)

SOURCE_DIR = Path(__file__).resolve().parent
SUITE_DIR = BUILD_DIR / "go" / "suite"
MODULE = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
TEST_TIMEOUT_S = 120


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.go.suite", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/compatibility.md")
    options = parser.parse_args(arguments)
    return own_tests.run_suite("Go", "go", _suite, options.write)


def _suite() -> tuple[str, list[Outcome]]:
    """Run the tests; return what the page says of them, and how they ended."""
    version = _copy_module()
    outcomes = _run()
    lead = (
        f"The module azcosmos {version} holds {len(outcomes)} tests for an emulator, which `python -m "
        "conformance.go.suite` runs over HTTPS. Its other tests need no server."
    )
    return lead, outcomes


def _copy_module() -> str:
    """Copy the module that go.mod names where its tests can be built; return its version."""
    command = ["go", "mod", "download", "-json", MODULE]
    told = subprocess.run(command, cwd=SOURCE_DIR, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise BuildFailedError(f"the module cannot be downloaded:\n{told.stdout}{told.stderr}")
    module = json.loads(told.stdout)
    shutil.rmtree(SUITE_DIR, ignore_errors=True)
    shutil.copytree(module["Dir"], SUITE_DIR, copy_function=shutil.copyfile)
    for directory, _, _ in os.walk(SUITE_DIR):
        os.chmod(directory, 0o755)  # the module cache is read-only
    return str(module["Version"])


def _run() -> list[Outcome]:
    port = free_port()
    names: list[str] = []
    for file in sorted(SUITE_DIR.glob("emulator_*test.go")):
        text = file.read_text(encoding="utf-8")
        names += re.findall(r"^func (Test\w+)", text, flags=re.MULTILINE)
        file.write_text(text.replace("localhost:8081", f"localhost:{port}"), encoding="utf-8")
    run_build_step(["go", "test", "-c", "-o", "emulator.test", "."], SUITE_DIR)
    with running_server(port, BUILD_DIR / "go" / "suite-server.log", tls=True):
        certificate = SUITE_DIR / "tls.crt"
        certificate.write_text(ssl.get_server_certificate(("127.0.0.1", port)), encoding="utf-8")
        environment = {**os.environ, "EMULATOR": "true", "SSL_CERT_FILE": str(certificate)}
        return [_one(name, environment) for name in names]


def _one(name: str, environment: Mapping[str, str]) -> Outcome:
    command = ["./emulator.test", "-test.v", f"-test.timeout={TEST_TIMEOUT_S}s", f"-test.run=^{name}$"]
    done = subprocess.run(
        command, cwd=SUITE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return Outcome(name, Verdict.SKIPPED if f"--- SKIP: {name} " in done.stdout else Verdict.PASSED)
    lines = [line.strip() for line in done.stdout.splitlines() if not line.startswith(("===", "---"))]
    return Outcome(name, Verdict.FAILED, " ".join(filter(None, lines))[:300])


if __name__ == "__main__":
    sys.exit(main())
