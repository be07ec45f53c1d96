"""What is shown to who looks again and again: each answer is made once a second at most, for all of them."""

from __future__ import annotations

from pleiad.heads.admin import heat, history, live, overview
from pleiad.heads.admin.answer import made_answer
from pleiad.heads.admin.once import OnceASecond
from pleiad.heads.admin.partitions import container_of
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response


class Shown:
    """The answers of one server. Their callers are known before: what one may see, all may who come here."""

    def __init__(self) -> None:
        self._once = OnceASecond()

    async def overview(self, call: HttpCall) -> Response:
        engine = call.engine
        place = (id(engine), "overview")
        return made_answer(call, await self._once.get(place, lambda: overview.made(engine)))

    async def live(self, call: HttpCall) -> Response:
        engine = call.engine
        place = (id(engine), "live")
        return made_answer(call, await self._once.get(place, lambda: live.made(engine)))

    async def live_container(self, call: HttpCall) -> Response:
        engine, container = call.engine, await container_of(call)
        place = (id(engine), "live", container.resource.rid)
        made = await self._once.get(place, lambda: live.made_of_container(engine, container))
        return made_answer(call, made)

    async def history(self, call: HttpCall) -> Response:
        engine, minutes = call.engine, history.wanted(call)
        place = (id(engine), "history", minutes)
        return made_answer(call, await self._once.get(place, lambda: history.made(engine, minutes)))

    async def history_of_container(self, call: HttpCall) -> Response:
        engine, container, minutes = call.engine, await container_of(call), history.wanted(call)
        place = (id(engine), "history", container.resource.rid, minutes)
        made = await self._once.get(place, lambda: history.made_of_container(engine, container, minutes))
        return made_answer(call, made)

    async def heat(self, call: HttpCall) -> Response:
        engine, container = call.engine, await container_of(call)
        slices, since = heat.wanted(call)
        place = (id(engine), "heat", container.resource.rid, slices, since)
        made = await self._once.get(place, lambda: heat.made(engine, container, slices, since))
        return made_answer(call, made)
