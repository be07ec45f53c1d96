"""docs/admin-api.md agrees with the server: paths, metrics, faults, and the example of a signed request."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from azure.cosmos import ContainerProxy

from pleiad.account.keys import EMULATOR_KEY, AccountKeys, KeysInForce
from pleiad.engine.faults import BY_WORD, OPERATIONS
from pleiad.engine.operation import Operation
from pleiad.engine.phase import HOLDABLE
from pleiad.engine.watch import watch
from pleiad.heads.admin.head import AdminOperations
from pleiad.testing.start import RunningServer
from tests.project import ROOT

from .test_metrics import scrape

PAGE = (ROOT / "docs" / "admin-api.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _nobody() -> NoReturn:
    raise AssertionError("nobody asks for them here")


def test_every_path_is_documented_with_its_methods() -> None:
    documented: dict[str, set[str]] = {}
    for path, methods in re.findall(r"^\| `/([^`]+)` \| ([A-Z, ]+) \|", PAGE, re.MULTILINE):
        pattern = re.sub(r"\{\w+\}|(?<=_pleiad/)(v1|health|ready|handover)", "*", path)
        documented.setdefault(pattern, set()).update(methods.split(", "))
    operations = AdminOperations(KeysInForce(AccountKeys(EMULATOR_KEY)), True, lambda: 0, _nobody, _nobody)
    assert documented == {pattern: set(methods) for pattern, methods in operations.routes().items()}


def test_every_metric_is_documented(server: RunningServer, container: ContainerProxy) -> None:
    container.read_item("1", "a")
    shown = {re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) for name in scrape(server)}
    named = re.findall(r"`((?:pleiad|process)_[a-z_]+)`", section("Metrics"))
    assert len(named) == len(set(named))
    # Warnings are there when there are some, the last backup where there is a folder for them, and workers where
    # there are several.
    seldom = {"pleiad_warnings", "pleiad_last_backup_timestamp_seconds"}
    assert shown == set(named) - seldom - {"pleiad_workers", "pleiad_worker_restarts_total"}


def test_every_fault_operation_and_warning_is_documented() -> None:
    faults = section("Faults on demand")
    faults, _, holds = faults.partition("\n### Holds\n")
    named = re.compile(r"^\| `([^`]+)`[^|]*\|[^|]*\|[^|]*\|$", re.MULTILINE)
    assert set(named.findall(faults)) == set(BY_WORD)
    assert named.findall(holds) == list(HOLDABLE)
    assert all(f"`{operation}`" in faults for operation in OPERATIONS)
    assert {each.kind for each in Operation if each.is_item_operation} <= set(OPERATIONS)
    kinds = {watch.SIZE, watch.SPLIT_REFUSED, watch.THROTTLED}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", section("Warnings"), re.MULTILINE)) == kinds


def test_the_example_of_a_signed_request_works(server: RunningServer, client: Any, capsys: Any) -> None:
    from azure.cosmos import PartitionKey

    client.create_database("sample").create_container("food", PartitionKey("/foodGroup"))
    (example,) = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "urllib.request" in block
    ]
    exec(compile(example.replace("http://localhost:8081", server.endpoint), "example", "exec"), {})
    assert '"container":"food"' in capsys.readouterr().out
