"""Try the programs of docs/start.md, each with its client: `python -m conformance.start_page [NAME ...]`.

Each block is taken from the page as it stands; only the address, the key and the path of the certificate are put in. It
runs over plain HTTP and over HTTPS in the way that its section tells, and must print every food group of the sample. A
client whose tools are not installed here is left out, and said so.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.client_program import (
    BUILD_DIR,
    BuildFailedError,
    ToolMissingError,
    require_tools,
    run_build_step,
)
from conformance.dotnet.run import KIT
from conformance.go.run import SOURCE_DIR as GO_DIR
from conformance.java.run import PROGRAM as JAVA
from conformance.javascript.run import PROGRAM as JAVASCRIPT
from conformance.rust.run import PROGRAM as RUST
from conformance.rust.run import copy_program
from conformance.server_process import EMULATOR_KEY, free_port, running_server, stop_children_when_terminated
from pleiad.sample import sample_containers

PAGE_FILE = Path(__file__).resolve().parent.parent / "docs" / "start.md"
RUN_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is that the programs ask, by plain HTTP or by HTTPS."""

    scheme: str
    port: int
    certificate: Path

    def put_into(self, block: str) -> str:
        """Return a block of the page with this address, the key and the certificate."""
        text = re.sub(r"https?://localhost:8081", f"{self.scheme}://localhost:{self.port}", block)
        return text.replace("KEY", EMULATOR_KEY, 1).replace("data/tls.crt", str(self.certificate))


@dataclass(frozen=True, slots=True)
class Command:
    """What runs a program, with the variables that its section names."""

    words: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)


def blocks(heading: str, language: str) -> list[str]:
    """Return the blocks in a language under a third-level heading of the page."""
    page = PAGE_FILE.read_text(encoding="utf-8")
    part = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##)", page, flags=re.MULTILINE | re.DOTALL)
    if part is None:
        raise BuildFailedError(f"the page has no section {heading!r}")
    return re.findall(rf"^```{language}\n(.*?)^```", part.group(1), flags=re.MULTILINE | re.DOTALL)


def _python(heading: str) -> Callable[[Place], Command]:
    def command(place: Place) -> Command:
        program = _written("python", f"{heading.split()[0].lower()}.py", place, blocks(heading, "python")[0])
        return Command([sys.executable, "-W", "ignore", str(program)])

    return command


def _javascript(place: Place) -> Command:
    directory = JAVASCRIPT.build_dir
    directory.mkdir(parents=True, exist_ok=True)
    JAVASCRIPT.build(directory)
    program = directory / "start.mjs"
    program.write_text(place.put_into(blocks("JavaScript", "js")[0]), encoding="utf-8")
    return Command(["node", str(program)], {"NODE_EXTRA_CA_CERTS": str(place.certificate)})


def _go(place: Place) -> Command:
    require_tools("Go", "go")
    program = _written("go", "main.go", place, blocks("Go", "go")[0])
    for name in ("go.mod", "go.sum"):
        shutil.copy(GO_DIR / name, program.parent / name)
    run_build_step(["go", "build", "-o", "start", "."], program.parent)
    return Command([str(program.parent / "start")], {"SSL_CERT_FILE": str(place.certificate)})


def _dotnet(place: Place) -> Command:
    if not KIT.is_file():
        raise ToolMissingError("there is no kit beside the checkout: the .NET client is left out")
    program = _written("dotnet", "Program.cs", place, blocks(".NET", "csharp")[0])
    return Command([str(KIT), str(program.parent)], {"SSL_CERT_FILE": str(place.certificate)})


def _java(place: Place) -> Command:
    JAVA.build_dir.mkdir(parents=True, exist_ok=True)
    JAVA.build(JAVA.build_dir)
    program = _written("java", "Program.java", place, blocks("Java", "java")[0])
    store = program.parent / "trust.p12"
    store.unlink(missing_ok=True)
    line = blocks("Java", "sh")[0].replace("data/tls.crt", str(place.certificate))
    run_build_step(line.split(), program.parent)
    options = [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=pleiad"]
    if place.scheme == "http":
        options.append("-DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true")
    return Command(["java", *options, "-cp", f"{JAVA.build_dir / 'lib'}/*", str(program)])


def _rust(place: Place) -> Command:
    require_tools("Rust", "cargo")
    RUST.build_dir.mkdir(parents=True, exist_ok=True)
    source, target = copy_program(RUST.build_dir), RUST.build_dir / "target"
    program = source / "src" / "bin" / "start.rs"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(place.put_into(blocks("Rust", "rust")[0]), encoding="utf-8")
    run_build_step(
        ["cargo", "build", "--bin", "start"], source, environment={"CARGO_TARGET_DIR": str(target)}
    )
    program.unlink()
    return Command([str(target / "debug" / "start")], {"SSL_CERT_FILE": str(place.certificate)})


PROGRAMS: Mapping[str, Callable[[Place], Command]] = {
    "python": _python("Python"),
    "javascript": _javascript,
    "go": _go,
    "dotnet": _dotnet,
    "java": _java,
    "rust": _rust,
    "entra": _python("Entra credentials"),
}

# This client sends no token of Entra over plain HTTP.
SCHEMES: Mapping[str, tuple[str, ...]] = {"entra": ("https",)}


def _written(name: str, file: str, place: Place, block: str) -> Path:
    program = BUILD_DIR / "start_page" / name / file
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(place.put_into(block), encoding="utf-8")
    return program


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.start_page", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}")
    names = parser.parse_args(arguments).names or list(PROGRAMS)
    stop_children_when_terminated()
    port = free_port()
    passed = True
    with tempfile.TemporaryDirectory() as data:
        log = BUILD_DIR / "start_page" / "server.log"
        with running_server(port, log, tls=True, sample_in=Path(data)):
            for name in names:
                for scheme in SCHEMES.get(name, ("http", "https")):
                    told = _try(name, Place(scheme, port, Path(data) / "tls.crt"))
                    print(f"{name:<12}{scheme:<7}{told or 'ok'}", flush=True)
                    passed = passed and (told is None or told.startswith("left out"))
    return 0 if passed else 1


def _try(name: str, place: Place) -> str | None:
    """Run one program; return what is wrong, or None."""
    try:
        command = PROGRAMS[name](place)
    except ToolMissingError as error:
        return f"left out: {error}"
    except BuildFailedError as error:
        return f"cannot be built: {error}"
    done = subprocess.run(
        command.words,
        env={**os.environ, **command.variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_TIMEOUT_S,
    )
    missing = [text for text in expected(name) if text not in done.stdout]
    if done.returncode == 0 and not missing:
        return None
    return f"exit code {done.returncode}, not printed: {missing}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"


def expected(name: str) -> list[str]:
    """Return what the program prints: every food group of the sample, or the number of its items."""
    food = next(each for each in sample_containers() if each.container_id == "food")
    return [str(len(food.items))] if name == "entra" else sorted({item["foodGroup"] for item in food.items})


if __name__ == "__main__":
    sys.exit(main())
