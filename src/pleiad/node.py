"""One running Pleiad: a store, the engine over it, the heads, and the server in front.

The command line and the test kit both start a database through this module, so they serve the same thing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pleiad.account.key_file import KeyFile
from pleiad.account.keys import EMULATOR_KEY, AccountKeys, KeyName, KeysInForce, digest
from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.consistency import Consistency
from pleiad.engine.desk import Desk
from pleiad.engine.engine import Engine
from pleiad.errors import RESOURCE_EXISTS, PleiadError
from pleiad.head_ports import BY_NAME, NOSQL, chosen
from pleiad.heads.admin.head import HEALTH_PATH, AdminOperations
from pleiad.heads.http.host_names import HostNames, is_host_name
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.item.body import dump
from pleiad.limits import Limits
from pleiad.partition.governor import SYSTEM, Throttle
from pleiad.sample import sample_containers
from pleiad.server.http.site import HttpSite
from pleiad.server.lifecycle import Server
from pleiad.server.listener import Listener, WireProtocol
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store

DRAIN_SECONDS = 10.0
THROTTLES = ("enforce", "observe")
SQLITE = "sqlite"
KEY_FILE_SECONDS = 1.0
"""How often a look is taken at the key file."""

_log = logging.getLogger(__name__)


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
    port: int = BY_NAME[NOSQL].port
    """That of the NoSQL head, which is always on."""
    heads: tuple[str, ...] = ()
    """Further heads, by name; `all` takes every one."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Of further heads: who has a port here is on, and the others take their own."""
    key: str = EMULATOR_KEY
    read_only_key: str | None = None
    key_file: Path | None = None
    """Where the keys are kept instead; it is read anew when it changes."""
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
        """What all servers on the same data must have alike; of keys a digest that is expensive to guess from.

        Keys in files change under running servers, one after the other: of these only that they are in files.
        """
        in_file = "kept in a file" if self.key_file is not None else None
        return {
            "master key": in_file or digest(self.key),
            "read-only key": in_file or digest(self.read_only_key or ""),
            "consistency": self.consistency.option,
            "throttle": self.throttle,
            "burst": str(self.burst).lower(),
            **{f"limit {name}": str(value) for name, value in dataclasses.asdict(self.limits).items()},
        }

    def check(self) -> None:
        """Refuses what cannot be served, with a sentence for the operator."""
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
        self.listening()
        if self.key_file is not None and (self.key != EMULATOR_KEY or self.read_only_key):
            raise SettingsError("the keys are given twice: keep all of them in the key file, or none of them")

    def listening(self) -> dict[str, int]:
        """The heads that are on, with their ports."""
        try:
            return chosen(self.heads, {**self.ports, NOSQL: self.port})
        except ValueError as error:
            raise SettingsError(str(error)) from None

    def check_keys(self, keys: AccountKeys) -> None:
        """Refuses a key everybody knows on an address everybody reaches."""
        if keys.has_emulator_key and not self.allow_emulator_key and not is_loopback(self.host):
            raise SettingsError(
                f"listening on {self.host} with the well-known emulator key would let anyone in: give a key of your "
                "own with --key or PLEIAD_KEY, or insist with --allow-emulator-key"
            )


class Node:
    """A server with its database, from start to stop on one event loop."""

    def __init__(self, settings: Settings) -> None:
        settings.check()
        self.settings = settings
        self._key_file = None if settings.key_file is None else KeyFile(settings.key_file)
        try:
            keys = self._read_keys()
        except ValueError as error:
            raise SettingsError(str(error)) from error
        self.keys = KeysInForce(keys, "options" if self._key_file is None else "file")
        self._authenticator = Authenticator(self.keys, settings.limits)
        self._key_watch: asyncio.Task[None] | None = None
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
        self.desk = Desk(self.engine)
        listeners = [
            Listener(name=head, host=settings.host, port=port, protocols=PROTOCOLS[head](self))
            for head, port in settings.listening().items()
        ]
        self.server = Server(settings.limits, listeners, self.directory, _names(settings))
        try:
            await self.server.start()
        except BaseException:
            await self.engine.close()
            raise
        if self._key_file is not None:
            self._key_watch = asyncio.create_task(self._watch_key_file(self._key_file))

    def nosql(self) -> tuple[WireProtocol, ...]:
        """What is spoken on the port of the NoSQL head; the admin API, metrics and health checks are there too."""
        settings = self.settings
        admin = AdminOperations(self.keys, is_loopback(settings.host), lambda: self.server.connections)
        hosts = HostNames(settings.host, settings.host_names)
        head = NoSqlHead(self.desk, self._authenticator, admin, hosts)
        return (HttpSite(head.handle, head.admit),)

    def _read_keys(self) -> AccountKeys:
        """The keys the settings name; SettingsError or ValueError when they cannot be used."""
        if self._key_file is not None:
            keys = self._key_file.read()
        else:
            keys = AccountKeys(self.settings.key, self.settings.read_only_key)
        self.settings.check_keys(keys)
        return keys

    async def _watch_key_file(self, file: KeyFile) -> None:
        while True:
            await asyncio.sleep(KEY_FILE_SECONDS)
            if file.has_changed():
                self.reload_keys()

    def reload_keys(self) -> None:
        """Puts the keys in the file in force. When they cannot be used, those of before stay, and the log says why."""
        try:
            keys = self._read_keys()
        except (SettingsError, ValueError) as error:
            self.keys.problem = str(error)
            _log.error("the keys of before stay in force: %s", error)
            return
        old = {key.name: key.secret for key in self.keys.keys.all}
        new = {key.name: key.secret for key in keys.all}
        self.keys.replace(keys)
        changed = [name.value for name in KeyName if old.get(name) != new.get(name)]
        _log.warning("keys of the account that changed: %s", ", ".join(changed) or "none")

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
        if self._key_watch is not None:
            self._key_watch.cancel()
        self.engine.faults.clear()
        self.engine.is_stopping = True
        await self.server.drain(DRAIN_SECONDS)
        await self.engine.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def endpoint(self) -> str:
        return f"http://{self.server.address(NOSQL)}/"

    @property
    def health_address(self) -> str:
        return self.endpoint.rstrip("/") + HEALTH_PATH.decode()

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


PROTOCOLS: Mapping[str, Callable[[Node], tuple[WireProtocol, ...]]] = {NOSQL: Node.nosql}
"""What is spoken on the port of each head that this version has."""


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
