"""The runner of plans for the synchronous client."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from pleiad.strategy.client import Container, Receipt, client_error, is_async, request_of
from pleiad.strategy.ledger import Ledger
from pleiad.strategy.plan import Answer, Call, Outcome, Pause, Plan, Query, Together

T = TypeVar("T")


def run(container: Container, plan: Plan[T]) -> Answer[T]:
    """Carries a plan out on a container of `azure.cosmos`; its result, with what it cost.

    Failures are the client's own errors, after what the plan does about them.
    """
    if is_async(container):
        raise TypeError("this container is one of azure.cosmos.aio: await run_async(container, plan)")
    runner = _Runner(container)
    ledger = Ledger(plan)
    while (step := ledger.step) is not None:
        try:
            outcome = runner.did(step)
        except Exception as error:
            ledger.failed(error)
        else:
            ledger.told(outcome)
    return ledger.answer()


class _Runner:
    def __init__(self, container: Container) -> None:
        self._container = container
        self._error = client_error()

    def did(self, step: Call | Together | Pause) -> Any:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        return self._together(step) if isinstance(step, Together) else self._call(step)

    def _call(self, call: Call) -> Outcome:
        receipt = Receipt()
        request = request_of(call, receipt)
        method = getattr(self._container, request.method)
        try:
            if isinstance(call, Query):
                across = {} if call.key is not None else {"enable_cross_partition_query": True}
                return receipt.outcome(tuple(islice(method(**request.arguments, **across), call.items_max)))
            found = method(**request.arguments)
        except self._error as error:
            return receipt.refused(error)
        return receipt.outcome(() if found is None else (found,))

    def _together(self, step: Together) -> tuple[Outcome | None, ...]:
        ended = threading.Event()

        def outcome(call: Call) -> Outcome | None:
            if ended.is_set():
                return None
            try:
                found = self._call(call)
            except BaseException:
                ended.set()
                raise
            if step.until_found and found.items:
                ended.set()
            return found

        if not step.calls:
            return ()
        with ThreadPoolExecutor(min(step.concurrency_max, len(step.calls))) as threads:
            return tuple(threads.map(outcome, step.calls))
