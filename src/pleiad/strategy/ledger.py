"""A plan on its way: the step that is due, and what its calls have cost so far. Both runners keep one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pleiad.strategy.plan import Answer, Outcome, Plan, Step

T = TypeVar("T")


class Ledger(Generic[T]):
    """Hands out the steps of a plan and takes their outcomes."""

    def __init__(self, plan: Plan[T]) -> None:
        state = inspect.getgeneratorstate(plan) if inspect.isgenerator(plan) else None
        if state is None:
            raise TypeError(f"a plan is a generator, and this is {type(plan).__name__}")
        if state != inspect.GEN_CREATED:
            raise ValueError("a plan is carried out once: make a new one")
        self._plan = plan
        self._charge_ru = 0.0
        self._requests = 0
        self._value: Any = None
        self.step: Step | None = None
        """What is to be done next; None at the end."""
        self._go_on(lambda: next(plan))

    def told(self, outcome: Outcome | tuple[Outcome | None, ...] | None) -> None:
        """Tells the plan what came of its step."""
        outcomes = outcome if isinstance(outcome, tuple) else (outcome,)
        for each in outcomes:
            if each is not None:
                self._charge_ru += each.charge_ru
                self._requests += each.requests
        self._go_on(lambda: self._plan.send(outcome))

    def failed(self, error: Exception) -> None:
        """Raises in the plan what its step raised."""
        self._go_on(lambda: self._plan.throw(error))

    def answer(self) -> Answer[T]:
        return Answer(self._value, self._charge_ru, self._requests)

    def _go_on(self, resume: Callable[[], Step]) -> None:
        try:
            self.step = resume()
        except StopIteration as end:
            self.step, self._value = None, end.value
