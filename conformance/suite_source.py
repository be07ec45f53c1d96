"""The official Python suite on disk: downloaded with pip, unpacked, with an interpreter of its own.

The suite ships inside the source distribution of the client. Its tests import a module of the client's
own build tools that is not published; the three small files written here stand in for it.
Everything is made once and reused; deleting build/conformance makes it anew.
"""

import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

SUITE_VERSION = "4.17.1"
PROJECT_ROOT = Path(__file__).resolve().parent.parent
BUILD_DIR = PROJECT_ROOT / "build" / "conformance"

REQUIREMENTS: tuple[str, ...] = (
    f"azure-cosmos=={SUITE_VERSION}",
    "aiohttp>=3.9",  # transport of the asynchronous client
    "pytest>=8,<10",
    "pytest-asyncio>=0.24",
    "pytest-timeout>=2.3",
    "requests>=2.31",  # imported by the suite for its faulty transports
)

STAND_IN_FILES: dict[str, str] = {
    "__init__.py": '"""Stands in for the client\'s unpublished build tools."""\n',
    "azure_recorded_testcase.py": (
        '"""Credentials: the suite runs with the account key, so there are none."""\n\n\n'
        "def get_credential(**options):\n    return None\n"
    ),
    "helpers.py": (
        '"""Live or recorded: the suite sets an attribute on this function."""\n\n\n'
        "def is_live():\n    return True\n"
    ),
}

PYTEST_INI = "[pytest]\nasyncio_mode = strict\njunit_family = xunit1\n"


class SuiteUnavailableError(Exception):
    """The suite could not be downloaded, unpacked or given an interpreter; the text says which."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Where the parts of the unpacked suite are."""

    tests_dir: Path
    python: Path
    stand_in_dir: Path
    pytest_ini: Path


def prepare() -> Suite:
    """Return the suite ready to run, downloading and installing what is missing."""
    BUILD_DIR.mkdir(parents=True, exist_ok=True)
    tests_dir = _unpacked()
    stand_in_dir = BUILD_DIR / "stubs"
    package_dir = stand_in_dir / "devtools_testutils"
    package_dir.mkdir(parents=True, exist_ok=True)
    for name, text in STAND_IN_FILES.items():
        (package_dir / name).write_text(text, encoding="utf-8")
    pytest_ini = BUILD_DIR / "pytest.ini"
    pytest_ini.write_text(PYTEST_INI, encoding="utf-8")
    return Suite(tests_dir, _interpreter(), stand_in_dir, pytest_ini)


def _unpacked() -> Path:
    source_dir = BUILD_DIR / f"azure_cosmos-{SUITE_VERSION}"
    tests_dir = source_dir / "tests"
    complete = source_dir / ".unpacked"
    if complete.exists():
        return tests_dir
    archive = _archive()
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(BUILD_DIR, filter="data")
    except (OSError, tarfile.TarError) as error:
        raise SuiteUnavailableError(f"cannot unpack {archive.name}: {error}") from error
    if not (tests_dir / "conftest.py").exists():
        raise SuiteUnavailableError(f"{archive.name} holds no tests/conftest.py")
    complete.touch()
    return tests_dir


def _archive() -> Path:
    """Return the source distribution, fetched through whatever index pip is configured with."""
    download_dir = BUILD_DIR / "sdist"
    found = sorted(download_dir.glob("azure*cosmos-*.tar.gz"))
    if found:
        return found[-1]
    _run(
        "download the suite",
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--no-binary", "azure-cosmos", "--dest", str(download_dir), f"azure-cosmos=={SUITE_VERSION}"),
        ],
    )
    found = sorted(download_dir.glob("azure*cosmos-*.tar.gz"))
    if not found:
        raise SuiteUnavailableError("pip downloaded no source archive of azure-cosmos")
    return found[-1]


def _interpreter() -> Path:
    """Return the suite's own interpreter: its pins must not meet those of the server."""
    venv_dir = BUILD_DIR / "venv"
    python = venv_dir / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    installed = venv_dir / ".installed"
    wanted = "\n".join(REQUIREMENTS)
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(venv_dir, with_pip=True)
    _run(
        "install the suite's requirements",
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS],
    )
    installed.write_text(wanted, encoding="utf-8")
    return python


def _run(purpose: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last_lines = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise SuiteUnavailableError(f"could not {purpose} (exit code {done.returncode}):\n{last_lines}")
