"""The runner of plans for the asynchronous client."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pleiad.strategy.client import AsyncContainer, Receipt, client_error, is_async, request_of
from pleiad.strategy.ledger import Ledger
from pleiad.strategy.plan import Answer, Call, Outcome, Pause, Plan, Query, Together

T = TypeVar("T")


async def run_async(container: AsyncContainer, plan: Plan[T]) -> Answer[T]:
    """Carries a plan out on a container of `azure.cosmos.aio`; its result, with what it cost.

    Failures are the client's own errors, after what the plan does about them. A task that is cancelled leaves its plan
    where it is, as a process that ends does.
    """
    if not is_async(container):
        raise TypeError("this container is one of azure.cosmos: run(container, plan)")
    runner = _AsyncRunner(container)
    ledger = Ledger(plan)
    while (step := ledger.step) is not None:
        try:
            outcome = await runner.did(step)
        except Exception as error:
            ledger.failed(error)
        else:
            ledger.told(outcome)
    return ledger.answer()


class _AsyncRunner:
    def __init__(self, container: AsyncContainer) -> None:
        self._container = container
        self._error = client_error()

    async def did(self, step: Call | Together | Pause) -> Any:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        return await (self._together(step) if isinstance(step, Together) else self._call(step))

    async def _call(self, call: Call) -> Outcome:
        receipt = Receipt()
        request = request_of(call, receipt)
        method = getattr(self._container, request.method)
        try:
            if isinstance(call, Query):
                return receipt.outcome(await _first(method(**request.arguments), call.items_max))
            found = await method(**request.arguments)
        except self._error as error:
            return receipt.refused(error)
        return receipt.outcome(() if found is None else (found,))

    async def _together(self, step: Together) -> tuple[Outcome | None, ...]:
        outcomes: list[Outcome | None] = [None] * len(step.calls)
        waiting = iter(enumerate(step.calls))
        is_found = False

        async def work() -> None:
            nonlocal is_found
            for place, call in waiting:
                if is_found:
                    return
                outcomes[place] = found = await self._call(call)
                is_found = is_found or (step.until_found and bool(found.items))

        workers = [asyncio.create_task(work()) for _ in range(min(step.concurrency_max, len(step.calls)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return tuple(outcomes)


async def _first(found: Any, items_max: int | None) -> tuple[Any, ...]:
    items: list[Any] = []
    if items_max == 0:
        return ()
    async for item in found:
        items.append(item)
        if len(items) == items_max:
            break
    return tuple(items)
