"""The budgets of physical partitions, shared among all servers on one store.

A few times a second each server tells the store how much of each budget it could use and which share of it it holds,
and takes what nobody holds; between two turns its governors decide alone. A server that is alone holds all of every
budget, and its turns say no more than that it is there. What a server could use comes from what its requests spent and
whether some were refused; the budget is divided so that nobody who wants more has less than an even part.

Invariants:
- at every moment the shares of all servers in one budget sum up to 1 at most: the store hands out only what nobody
  holds, a server gives up a share before it tells the store so, and it stops using one before the store lets others
  have it. A crash or failover of the database, and a jump of its clock, may break this for `LEASE_SECONDS`; a process
  that stood still for longer may spend once more what its buckets hold;
- a server that dies or loses the database keeps nothing from the others for longer than `LEASE_SECONDS`;
- without the database a server admits what is in its buckets, and then nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from pleiad.engine.at_work import AtWork
from pleiad.engine.throughput.provisioning import Provisioning
from pleiad.errors import PleiadError
from pleiad.partition.governor import CHUNK, SHARE_SECONDS, Governor
from pleiad.store.budget import BudgetClaim, BudgetParts
from pleiad.store.catalog import CatalogStore

_log = logging.getLogger(__name__)

LEASE_SECONDS = 1.5
TURN_SECONDS = 0.2
ALONE_TURN_SECONDS = 0.5
_AT_ONCE_SECONDS = 0.01
_MEMORY_SECONDS = 0.5
"""How fast the use of the past is forgotten."""
_IDLE = 0.001
_WANT_MIN = 0.02
_HEADROOM = 2.0
_NEARLY_ALL = 0.8


def fair_part(want: float, others: Sequence[float]) -> float:
    """The part of a budget that is due to a server that wants so much of it, beside others with their wants.

    Nobody gets more than it wants while another one lacks something, and who lacks something has no less than any
    other. What nobody wants is divided evenly. The parts of all sum up to 1.
    """
    wants = sorted([want, *others])
    left, most = 1.0, 0.0
    for index, each in enumerate(wants):
        most = max(most, left / (len(wants) - index))
        left -= each
    unwanted = 1.0 - sum(min(each, most) for each in wants)
    return min(want, most) + max(0.0, unwanted) / len(wants)


class _Use:
    """What this server makes of one budget."""

    def __init__(self, governor: Governor, now: float) -> None:
        self.governor = governor
        self.want = 0.0
        self.other_wants: tuple[float, ...] = ()
        self._spent_ru, self._denied, _, _ = governor.demand()
        self._at = now
        self._denied_at = float("-inf")
        self._used = 0.0
        """The part of the rate that requests spent lately."""

    def measure(self, now: float) -> bool:
        """Sets `want` to the part of the budget that it could use; False when it has no use for any."""
        spent_ru, denied, is_empty, is_full = self.governor.demand()
        seconds = now - self._at
        if seconds > 0:
            used = (spent_ru - self._spent_ru) / (self.governor.rate_ru * seconds)
            self._used = max(used, self._used * max(0.0, 1 - seconds / _MEMORY_SECONDS))
            self._at, self._spent_ru = now, spent_ru
        if denied > self._denied:
            self._denied, self._denied_at = denied, now
        is_short = is_empty or now - self._denied_at < SHARE_SECONDS
        if is_short or self._used > _NEARLY_ALL * max(self.governor.share, CHUNK):
            self.want = 1.0
        else:
            self.want = min(1.0, _HEADROOM * self._used + _WANT_MIN)
        return is_short or not is_full or self._used > _IDLE

    def claim(self, name: str) -> BudgetClaim:
        return BudgetClaim(name, self.want, fair_part(self.want, self.other_wants), self.governor.share)


class Standing:
    """Whether every budget belongs to this server, which decides what its new governors begin with."""

    def __init__(self) -> None:
        self.is_alone = False

    def first_share(self) -> float:
        """The share that a new governor begins with."""
        return 1.0 if self.is_alone else 0.0


class SharedBudget:
    """The part of one server in the budgets of all."""

    def __init__(
        self,
        store: CatalogStore,
        standing: Standing,
        provisioning: Provisioning,
        at_work: AtWork,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._standing = standing
        self._provisioning = provisioning
        self._at_work = at_work
        self._clock = clock
        self._uses: dict[str, _Use] = {}
        self._servers = 2  # until it is known, this server is not taken to be alone
        self._is_failing = False
        self._pause_seconds = ALONE_TURN_SECONDS
        self._lapse: asyncio.TimerHandle | None = None

    @property
    def is_alone(self) -> bool:
        """Whether every budget belongs to this server."""
        return self._standing.is_alone

    def governors(self) -> Mapping[str, Governor]:
        """The governors of the containers at work, by a name that is the same at every server."""
        return self._provisioning.governors(self._at_work)

    async def for_ever(self) -> None:
        """Takes turn after turn."""
        while True:
            await asyncio.sleep(self._pause_seconds)
            await self.try_turn()

    async def try_turn(self) -> None:
        """Takes a turn; one that fails is tried again later, and costs the shares if that lasts."""
        try:
            await self.turn()
            self._is_failing = False
        except PleiadError as error:
            if not self._is_failing and not self._store.problems.is_troubled:
                _log.warning("sharing the throughput with other servers is interrupted: %s", error.message)
            self._is_failing = True
        except Exception:
            _log.exception("sharing the throughput with other servers failed")

    def stop(self) -> None:
        """Ends the turns; the store gives back what is held when it is closed."""
        if self._lapse is not None:
            self._lapse.cancel()

    async def turn(self) -> None:
        """Tells the others what this server uses and wants, and takes what is its due."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LEASE_SECONDS
        claims = [] if self._standing.is_alone else self._claims()
        answer = await self._store.share_budgets(claims, self._standing.is_alone, LEASE_SECONDS)
        if loop.time() >= end:
            return
        if self._lapse is not None:
            self._lapse.cancel()
        self._lapse = loop.call_at(end, self._lose)
        self._servers = answer.servers
        if answer.servers == 1:
            self._take_all()
        elif self._standing.is_alone:
            self._meet_others()
        else:
            self._take(answer)

    def _claims(self) -> list[BudgetClaim]:
        """What this server says of the budgets it has a use for; of the others it keeps nothing."""
        now = self._clock()
        governors = self.governors()
        self._uses = {name: self._use(name, governor, now) for name, governor in governors.items()}
        claims = []
        for name, use in self._uses.items():
            if use.measure(now):
                claims.append(use.claim(name))
            else:
                self._set(use, 0.0)
        return claims

    def _use(self, name: str, governor: Governor, now: float) -> _Use:
        known = self._uses.get(name)
        return known if known is not None and known.governor is governor else _Use(governor, now)

    def _take_all(self) -> None:
        self._pause_seconds = ALONE_TURN_SECONDS
        if self._standing.is_alone:
            return
        self._standing.is_alone = True
        self._uses = {}
        for governor in self.governors().values():
            governor.set_share(1.0)

    def _meet_others(self) -> None:
        """Keeps what is in use of the budgets, until the next turn divides it."""
        self._standing.is_alone = False
        self._pause_seconds = _AT_ONCE_SECONDS
        for governor in self.governors().values():
            governor.set_share(0.0 if governor.demand().is_full else 1.0, self._servers)

    def _take(self, answer: BudgetParts) -> None:
        gives_up = False
        for name, part in answer.parts.items():
            use = self._uses[name]
            use.other_wants = part.other_wants
            share = min(part.share, fair_part(use.want, part.other_wants))
            gives_up = gives_up or share < use.governor.share - CHUNK / 2
            self._set(use, share)
        # Others wait for what is given up, so they are told at once.
        self._pause_seconds = _AT_ONCE_SECONDS if gives_up else TURN_SECONDS

    def _set(self, use: _Use, share: float) -> None:
        use.governor.set_share(share, self._servers)

    def _lose(self) -> None:
        """The store did not answer in time: from now on others may have what this server held."""
        self._standing.is_alone = False
        self._pause_seconds = TURN_SECONDS
        for governor in self.governors().values():
            governor.set_share(0.0, self._servers)
