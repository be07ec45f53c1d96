"""The pytest fixtures, in test runs of their own inside this one."""

from __future__ import annotations

# What the runs inside import, each of them would else import anew.
import azure.core.pipeline.transport._requests_basic
import azure.cosmos.aio  # noqa: F401
import pytest

from tests.stores import StartServer

pytest_plugins = ["pytester"]

RUNNER_OF_COROUTINES = """
import asyncio
import inspect

import pytest

loop = asyncio.new_event_loop()

@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    if not inspect.isasyncgenfunction(fixturedef.func):
        return None
    given = {name: request.getfixturevalue(name) for name in fixturedef.argnames}
    steps = fixturedef.func(**given)
    value = loop.run_until_complete(anext(steps))

    def finish():
        assert loop.run_until_complete(anext(steps, "over")) == "over"

    request.addfinalizer(finish)
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    loop.run_until_complete(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
"""
"""What pytest-asyncio and anyio do, as far as it takes: a fixture and its test on one event loop."""


def passes(pytester: pytest.Pytester, tests: str, count: int) -> None:
    pytester.makepyfile(tests)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=count)


def test_the_asynchronous_fixtures_give_an_open_client_and_a_fresh_database(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(RUNNER_OF_COROUTINES)
    passes(
        pytester,
        """
        from azure.cosmos import PartitionKey

        async def test_an_order(pleiad_async_database):
            orders = await pleiad_async_database.create_container("orders", PartitionKey("/customerId"))
            await orders.create_item({"id": "1", "customerId": "a"})
            assert (await orders.read_item("1", "a"))["id"] == "1"

        async def test_a_test_may_delete_its_database(pleiad_async_client, pleiad_async_database):
            await pleiad_async_client.delete_database(pleiad_async_database.id)

        async def test_nothing_is_left(pleiad_async_client):
            assert [each async for each in pleiad_async_client.list_databases()] == []
        """,
        3,
    )


def test_fixtures_say_what_limits_and_throttling_the_server_has(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
        from urllib.request import urlopen

        import pytest
        from azure.cosmos import PartitionKey
        from azure.cosmos.exceptions import CosmosHttpResponseError

        from pleiad.limits import Limits

        @pytest.fixture(scope="session")
        def pleiad_limits():
            return Limits(item_bytes=2000)

        @pytest.fixture(scope="session")
        def pleiad_throttle():
            return "enforce"

        def test_an_item_is_too_large(pleiad_database):
            orders = pleiad_database.create_container("orders", PartitionKey("/id"))
            with pytest.raises(CosmosHttpResponseError) as caught:
                orders.create_item({"id": "1", "text": "x" * 3000})
            assert caught.value.status_code == 413

        def test_requests_beyond_the_throughput_are_refused(pleiad_server, pleiad_database):
            orders = pleiad_database.create_container("orders", PartitionKey("/pk"), offer_throughput=400)
            # Few and dear: a machine that is busy sends them fast enough, too.
            batch = [("upsert", ({"id": str(number), "pk": "a", "text": "x" * 1500},)) for number in range(100)]
            for _ in range(100):
                orders.execute_item_batch(batch, "a")
                with urlopen(f"{pleiad_server.endpoint}/metrics") as page:
                    if b'status="429"' in page.read():
                        return
            raise AssertionError("no request was refused")
        """,
        2,
    )


def test_tests_share_a_loaded_account_that_each_finds_as_it_was(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
        import pytest
        from azure.cosmos import PartitionKey

        @pytest.fixture(scope="session")
        def loaded(pleiad_server, pleiad_client):
            orders = pleiad_client.create_database("shop").create_container("orders", PartitionKey("/id"))
            orders.create_item({"id": "1"})
            pleiad_server.checkpoint()
            return orders

        @pytest.fixture
        def orders(loaded, pleiad_server):
            yield loaded
            pleiad_server.rollback()

        @pytest.mark.parametrize("turn", range(3))
        def test_the_order_can_be_deleted(orders, pleiad_database, turn):
            orders.delete_item("1", "1")
            assert list(orders.read_all_items()) == []
        """,
        3,
    )


def test_a_server_that_the_environment_names_is_used(
    pytester: pytest.Pytester, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_server(key="YSBrZXkgb2Ygb3VyIG93biwgbG9uZyBlbm91Z2g=") as server:
        monkeypatch.setenv("PLEIAD_CONNECTION_STRING", server.connection_string)
        monkeypatch.setenv("EXPECTED_PORT", str(server.port))
        passes(
            pytester,
            """
            import os

            import pytest

            def test_it_is_the_one(pleiad_server, pleiad_database):
                assert pleiad_server.port == int(os.environ["EXPECTED_PORT"])
                assert pleiad_server.key == "YSBrZXkgb2Ygb3VyIG93biwgbG9uZyBlbm91Z2g="
                assert pleiad_server.faults.list() == []

            def test_what_only_a_server_of_the_run_can_do_is_refused(pleiad_server):
                with pytest.raises(RuntimeError, match="checkpoints of a server only"):
                    pleiad_server.checkpoint()
                with pytest.raises(RuntimeError, match="not started here"):
                    pleiad_server.process_id
            """,
            2,
        )
        # It goes on, and the database of the test is gone from it.
        assert server.faults.list() == []


def test_a_connection_string_that_cannot_be_read_is_told(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLEIAD_CONNECTION_STRING", "AccountKey=secret;")
    pytester.makepyfile("def test_one(pleiad_server): pass")
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--tb=line")
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(["*ValueError: the connection string cannot be read*"])
    run.stdout.no_fnmatch_line("*secret*")


@pytest.mark.parametrize(
    ("fixture", "module", "libraries"),
    [
        ("pleiad_client", "azure.cosmos", "azure-cosmos"),
        ("pleiad_async_client", "azure.cosmos.aio", "azure-cosmos aiohttp"),
    ],
)
def test_a_fixture_whose_client_is_not_installed_says_what_to_install(
    pytester: pytest.Pytester, fixture: str, module: str, libraries: str
) -> None:
    pytester.makeconftest(RUNNER_OF_COROUTINES)
    pytester.makepyfile(
        f"""
        import sys

        sys.modules["{module}"] = None

        def test_one({fixture}): pass
        """
    )
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines([f"*official client, which is not here*: pip install {libraries}"])
