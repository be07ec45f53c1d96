"""The secret of hashed workload records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pleiad.engine.engine import Engine
from pleiad.engine.recording import Mode
from pleiad.engine.watch import workload
from pleiad.limits import Limits
from pleiad.store.sqlite.store import SqliteStore


async def test_first_requests_at_once_have_one_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bytes] = []
    secret_in = workload._secret_in

    def noted(directory: Path) -> bytes:
        made.append(secret_in(directory))
        return made[-1]

    monkeypatch.setattr(workload, "_secret_in", noted)
    engine = Engine(SqliteStore(tmp_path / "data"), Limits())
    await engine.open()
    await engine.workload.open(tmp_path / "workload", Mode.OFF)
    await asyncio.gather(*(engine.workload.switch(f"rid{number}", Mode.HASHES) for number in range(5)))
    assert len(made) == 1
    assert (tmp_path / "workload" / "secret").read_bytes() == made[0]
    await engine.workload.close()
    await engine.close()
