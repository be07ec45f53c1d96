"""A visit: one request at the desk, and where it goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from pleiad.engine.access import NOBODY, Caller, Grant, Target
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import Key
from pleiad.engine.operation import Operation
from pleiad.engine.recorded import Work as RecordedWork
from pleiad.partition.partition import Partition


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a request goes, as it says itself: by names or rids, and by a physical partition or a partition key."""

    database: str = ""
    container: str = ""
    range_id: str = ""


@dataclass(slots=True, eq=False)
class Visit(ABC):
    """One request at the desk: what its head knows of it, and what is found out about it here.

    A head has a kind of its own, which says who asks and where the request goes.
    """

    activity_id: str
    began_at: float
    operation: Operation = field(init=False)
    """What the request is; nothing else decides what its caller must be allowed to do."""
    engine: Engine = field(init=False)
    """Set when the visit is admitted."""
    caller: Caller = field(default=NOBODY, init=False)
    charge_ru: float = field(default=0.0, init=False)
    """What the answer says the request cost."""
    container: Container | None = field(default=None, init=False)
    key_spent: Key | None = field(default=None, init=False)
    """The partition key that an operation on items of the container spent its charge on."""
    partition: Partition | None = field(default=None, init=False)
    """The physical partition that answered, or one of them."""
    partitions: Sequence[Partition] | None = field(default=None, init=False)
    """The physical partitions it went to, where the operation knows better than its key."""
    work: RecordedWork | None = field(default=None, init=False)
    """What the operation was about, for who records it."""
    answer_bytes: int = field(default=0, init=False)
    """The size of an answer with more than one item."""

    @abstractmethod
    async def identify(self, engine: Engine) -> Caller:
        """Who asks; raises when that is not proved."""

    @abstractmethod
    async def target(self, engine: Engine, grant: Grant) -> Target:
        """What the request touches, as far as the grant of its caller has to cover it."""

    @abstractmethod
    def destination(self) -> Destination:
        """Where the request goes."""

    @property
    @abstractmethod
    def key(self) -> Key | None:
        """The partition key the request names."""

    def question(self) -> str:
        """The text of a query, for who logs it."""
        return ""

    def item_id(self) -> str:
        """The id of the item that the request names itself."""
        return ""

    @property
    def is_continued(self) -> bool:
        """Whether it asks for a further page."""
        return False

    @property
    def is_kept_out(self) -> bool:
        """Whether it asks to be left out of the workload record."""
        return False
