"""The account that rights are tried on, opened anew for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pleiad.account.keys import AccountKeys, KeysInForce
from pleiad.engine.engine import Engine
from pleiad.engine.recording import Mode
from tests.proofs.rights.account import MASTER_KEY, READ_ONLY_KEY, Account, OpenAccount, fill
from tests.stores import PATIENT, OpenStore


@pytest.fixture
def account(tmp_path: Path, open_store: OpenStore) -> OpenAccount:
    """`async with account() as a:` opens an account with two containers; a second block with `name` another one."""

    @asynccontextmanager
    async def open_account(name: str = "data") -> AsyncIterator[Account]:
        engine = Engine(await open_store(tmp_path / name), PATIENT)
        await engine.open()
        await engine.workload.open(tmp_path / f"{name}-workload", Mode.OFF)
        opened = Account(engine, KeysInForce(AccountKeys(MASTER_KEY, READ_ONLY_KEY)))
        try:
            yield await fill(opened)
        finally:
            await opened.advices.close()
            await engine.close()

    return open_account
