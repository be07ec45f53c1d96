"""One running Pleiad: a store, the engine over it, the NoSQL head, and the server in front.

The command line and the test kit both start a database through this module, so they serve the same thing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.consistency import Consistency
from pleiad.engine.engine import Engine
from pleiad.errors import RESOURCE_EXISTS, PleiadError
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.nosql.auth import EMULATOR_KEY, Authenticator
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.item.body import dump
from pleiad.limits import Limits
from pleiad.partition.governor import SYSTEM, Throttle
from pleiad.sample import sample_containers
from pleiad.server.host_names import HostNames, is_host_name
from pleiad.server.lifecycle import Server
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store

DRAIN_SECONDS = 10.0
THROTTLES = ("enforce", "observe")
SQLITE = "sqlite"


class SettingsError(Exception):
    """Settings that cannot be served, with a sentence for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server is started with; without a data directory it keeps nothing."""

    data: Path | None = None
    store: str = SQLITE
    """`sqlite`, or the connection string of a PostgreSQL database."""
    host: str = "127.0.0.1"
    host_names: tuple[str, ...] = ()
    """Names by which clients reach the server, beside loopback names, its address and the name of the machine."""
    port: int = 8081
    key: str = EMULATOR_KEY
    read_only_key: str | None = None
    limits: Limits = field(default_factory=Limits)
    consistency: Consistency = Consistency.SESSION
    allow_emulator_key: bool = False
    throttle: str = "enforce"
    """`enforce`: requests beyond the throughput get 429; `observe`: they are only counted."""
    burst: bool = False
    serverless: bool = False
    allow_different_settings: bool = False
    """Start although other servers on the same database have another key, other limits or another throttling."""
    allow_missing_data: bool = False
    """Start although something that held items is gone; what nobody knows is set aside."""

    def shared(self) -> dict[str, str]:
        """What all servers on the same data must have alike; of keys a digest that is expensive to guess from."""
        return {
            "master key": _digest(self.key),
            "read-only key": _digest(self.read_only_key or ""),
            "consistency": self.consistency.option,
            "throttle": self.throttle,
            "burst": str(self.burst).lower(),
            **{f"limit {name}": str(value) for name, value in dataclasses.asdict(self.limits).items()},
        }

    def check(self) -> None:
        """Refuses what would be unsafe, such as a key everybody knows on an address everybody reaches."""
        if self.throttle not in THROTTLES:
            raise SettingsError(f"there is no throttle '{self.throttle}': it is {' or '.join(THROTTLES)}")
        if self.store != SQLITE and not self.store.startswith(("postgresql://", "postgres://")):
            raise SettingsError(
                "there is no such store: give 'sqlite', or a PostgreSQL database as postgresql://user@host/database"
            )
        for name in self.host_names:
            if not is_host_name(name):
                raise SettingsError(
                    f"'{name}' is no host name: give the name or address alone, without a port"
                )
        if self.key == EMULATOR_KEY and not self.allow_emulator_key and not is_loopback(self.host):
            raise SettingsError(
                f"listening on {self.host} with the well-known emulator key would let anyone in: give a key of your "
                "own with --key or PLEIAD_KEY, or insist with --allow-emulator-key"
            )


class Node:
    """A server with its database, from start to stop on one event loop."""

    def __init__(self, settings: Settings) -> None:
        settings.check()
        try:
            self._authenticator = Authenticator(settings.key, settings.read_only_key, settings.limits)
        except ValueError as error:
            raise SettingsError(str(error)) from error
        self.settings = settings
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    async def start(self) -> None:
        """Opens the data and listens.

        StoreLockedError, StoreUnreachableError, SchemaError, MissingDataError, UnfinishedCopyError, ValueError or
        OSError say why it cannot.
        """
        settings = self.settings
        if settings.data is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pleiad-")
        self.directory = settings.data or Path(self._temporary.name if self._temporary else "")
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        throttle = Throttle(enforced=settings.throttle == "enforce", burst=settings.burst)
        store = await self._open_store()
        if store.is_shared:
            try:
                await store.agree(settings.shared(), settings.allow_different_settings)
            except BaseException:
                await store.close()
                raise
        self.engine = Engine(store, settings.limits, settings.consistency, throttle, settings.serverless)
        await self.engine.open()
        admin = AdminOperations(
            self._authenticator, is_loopback(settings.host), lambda: self.server.connections
        )
        hosts = HostNames(settings.host, settings.host_names)
        head = NoSqlHead(self.engine, self._authenticator, admin, hosts)
        self.server = Server(
            head.handle,
            settings.limits,
            settings.host,
            settings.port,
            self.directory,
            _names(settings),
            head.admit,
        )
        try:
            await self.server.start()
        except BaseException:
            await self.engine.close()
            raise

    async def _open_store(self) -> Store:
        settings = self.settings
        if settings.store == SQLITE:
            return SqliteStore(
                self.directory,
                durable=settings.data is not None,
                allow_missing=settings.allow_missing_data,
            )
        return await PostgresStore.open(settings.store, allow_missing=settings.allow_missing_data)

    async def stop(self) -> None:
        """Lets running requests finish, then closes the data; what is held goes on."""
        self.engine.faults.clear()
        self.engine.is_stopping = True
        await self.server.drain(DRAIN_SECONDS)
        await self.engine.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def endpoint(self) -> str:
        host = self.settings.host
        if host in ("127.0.0.1", "::1", "0.0.0.0", "::", "localhost"):
            host = "localhost"
        return f"http://{host}:{self.server.port}/"

    async def load_sample(self) -> int:
        """Loads the sample containers that are not there yet; returns how many were."""
        loaded = 0
        settings = self.settings
        given = None if settings.serverless else Throughput(settings.limits.throughput_ru_default)
        for sample in sample_containers():
            paths = list(sample.partition_key_paths)
            definition = {"id": sample.container_id, "partitionKey": {"paths": paths, "version": 2}}
            try:
                await self.engine.create_database({"id": sample.database_id}, None)
            except PleiadError as error:
                if error.row is not RESOURCE_EXISTS:
                    raise
            database = self.engine.database(sample.database_id)
            try:
                await self.engine.create_container(database, definition, given)
            except PleiadError as error:
                if error.row is not RESOURCE_EXISTS:
                    raise
                continue
            container = await self.engine.container(sample.database_id, sample.container_id)
            for item in sample.items:
                await items.create(container, dump(item), container.key.extract(item), SYSTEM)
            loaded += 1
        return loaded


def _digest(key: str) -> str:
    return hashlib.scrypt(key.encode(), salt=b"pleiad server settings", n=2**12, r=8, p=1, dklen=16).hex()


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names(settings: Settings) -> tuple[str, ...]:
    """What the certificate names beside loopback."""
    bound = () if settings.host in ("", "0.0.0.0", "::") else (settings.host,)
    return (*bound, *settings.host_names)
