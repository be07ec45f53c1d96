"""What both runners promise, and what importing the room costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from pleiad.strategy import find_item, run, run_async
from pleiad.strategy.plan import Plan, Read, Together, call
from tests.rooms.strategy.conftest import Hand


class Asynchronous:
    async def read_item(self, *_given: Any, **_named: Any) -> Any: ...


class Synchronous:
    def read_item(self, *_given: Any, **_named: Any) -> Any: ...


def test_a_container_of_the_other_client_is_refused_before_anything_is_asked() -> None:
    container: Any = Asynchronous()
    with pytest.raises(TypeError, match="await run_async"):
        run(container, find_item("1", ["a"]))
    other: Any = Synchronous()
    with pytest.raises(TypeError, match=r"run\(container, plan\)"):
        asyncio.run(run_async(other, find_item("1", ["a"])))


def test_a_plan_is_carried_out_once(hand: Hand) -> None:
    plan = find_item("1", ["a"])
    assert hand.do(plan) is None
    with pytest.raises(ValueError, match="make a new one"):
        hand.do(plan)
    no_plan: Any = find_item
    with pytest.raises(TypeError, match="a plan is a generator"):
        hand.do(no_plan)


def test_a_failure_is_raised_in_the_plan_where_its_step_was(hand: Hand) -> None:
    def plan() -> Plan[str]:
        try:
            yield from call(Read("", "a"))
        except (CosmosHttpResponseError, ValueError) as error:
            return f"went on after {type(error).__name__}"
        return "nothing failed"

    assert hand.do(plan()).startswith("went on after")


def test_a_container_that_is_not_there_is_a_failure_and_no_absent_item(hand: Hand) -> None:
    hand.do(find_item("1", ["a"]))
    hand.container.client_connection.DeleteContainer(hand.container.container_link)
    with pytest.raises(CosmosResourceNotFoundError):
        hand.do(find_item("1", ["a"]))


@pytest.mark.parametrize("concurrency_max", [0, -1])
def test_at_least_one_call_runs_at_a_time(concurrency_max: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Together([], concurrency_max)


def fresh_python(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_the_room_loads_neither_the_client_nor_the_rest_of_the_house() -> None:
    loaded = fresh_python(
        "import sys, pleiad.strategy\n"
        "print(sorted(name for name in sys.modules if name.startswith(('azure', 'aiohttp', 'pleiad.'))"
        " and not name.startswith('pleiad.strategy')))"
    )
    assert loaded == "[]"


def test_where_the_client_is_not_installed_the_message_says_what_to_install() -> None:
    said = fresh_python(
        "import sys\n"
        "sys.modules['azure.cosmos'] = None\n"
        "from pleiad.strategy import JoinedKey, find_item, run\n"
        "class Container:\n"
        "    def read_item(self): ...\n"
        "assert JoinedKey('a').value_of({'a': 1}) == '1'\n"
        "try:\n"
        "    run(Container(), find_item('1', ['a']))\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)"
    )
    assert "pip install 'azure-cosmos>=4.9'" in said
