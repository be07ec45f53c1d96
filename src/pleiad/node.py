"""One running Pleiad: a store, the engine over it, the heads, and the server in front.

The command line and the test kit both start a database through this module, so they serve the same thing.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pleiad.account.key_file import KeyFile
from pleiad.account.keys import AccountKeys, KeyName, KeysInForce
from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.desk import Desk
from pleiad.engine.engine import Engine
from pleiad.engine.watch.request_log import RequestLog
from pleiad.errors import RESOURCE_EXISTS, PleiadError
from pleiad.head_ports import NOSQL
from pleiad.heads.admin.handover import FRAGMENT, Handover
from pleiad.heads.admin.head import HEALTH_PATH, READY_PATH, AdminOperations
from pleiad.heads.admin.workers.workers import Workers
from pleiad.heads.explorer.page import ExplorerPage
from pleiad.heads.http.host_names import HostNames
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.direct.head import DirectHead
from pleiad.heads.nosql.direct.protocol import DirectProtocol
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.item.body import dump
from pleiad.job.advice.advices import Advices
from pleiad.job.backup.run import Backups
from pleiad.job.copy.copies import Copies
from pleiad.job.load_folder import load_folder
from pleiad.partition.governor import SYSTEM, Throttle
from pleiad.sample import sample_containers
from pleiad.server.certificate import Certificate
from pleiad.server.descriptors import Descriptors
from pleiad.server.http.site import HttpSite
from pleiad.server.lifecycle import Server
from pleiad.server.listener import Listener, WireProtocol
from pleiad.server.worker_place import WorkerPlace
from pleiad.settings import SQLITE, Settings, SettingsError, is_loopback
from pleiad.store.postgres.database import open_database
from pleiad.store.sqlite.store import DESCRIPTORS_OF_SEGMENT, SqliteStore
from pleiad.store.store import Store

DRAIN_SECONDS = 10.0
_WORKLOAD = "workload"
"""The folder of workload records in the data directory."""
LOOK_SECONDS = 1.0
"""How often a look is taken at the files that may change: the keys and the certificate."""

_log = logging.getLogger(__name__)


class Node:
    """A server with its database, from start to stop on one event loop."""

    def __init__(self, settings: Settings, place: WorkerPlace | None = None) -> None:
        settings.check()
        self.settings = settings
        self._workers = None if place is None else Workers(place, settings.limits)
        """The worker that this process is of a server with several, and the way to the others."""
        self._limits = settings.limits
        if place is not None:
            self._limits = settings.limits.for_one_of(place.count)
        self._key_file = None if settings.key_file is None else KeyFile(settings.key_file)
        try:
            keys = self._read_keys()
        except ValueError as error:
            raise SettingsError(str(error)) from error
        self.keys = KeysInForce(keys, "options" if self._key_file is None else "file")
        shared = None if place is None else place.handover
        self.handover = (
            Handover(self.keys, settings.limits, shared=shared) if is_loopback(settings.host) else None
        )
        """Gives the key to who has a link; only where nobody else than this machine can ask for it."""
        self._authenticator = Authenticator(self.keys, settings.limits)
        self._file_watch: asyncio.Task[None] | None = None
        self.backups: Backups | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.tell: Callable[[str], None] = _log.info
        """Takes sentences on what happens during a long start."""

    async def start(self) -> None:
        """Opens the data and listens.

        StoreLockedError, StoreUnreachableError, SchemaError, MissingDataError, UnfinishedCopyError, LoadError,
        ValueError or OSError say why it cannot.
        """
        settings = self.settings
        if self._workers is None:  # else who started the workers has looked, and the others listen already
            settings.check_ports()
        if settings.data is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pleiad-")
        self.directory = settings.data or Path(self._temporary.name if self._temporary else "")
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = await self._open_store()
        self.engine = await self._open_engine(store)
        if settings.load is not None:
            try:
                await load_folder(self.engine, settings.load, self.directory, self.tell)
            except BaseException:
                await self.engine.close()
                raise
        self.desk = Desk(self.engine)
        self.copies, self.advices = Copies(self.engine), Advices(self.engine)
        try:
            self.copies.open()
            await self._open_backups(store)
            listeners = [self._listener(head, port) for head, port in settings.listening().items()]
            own = None
            if settings.tls_cert is not None and settings.tls_key is not None:
                own = Certificate(settings.tls_cert, settings.tls_key)
            self.server = Server(
                self._limits,
                listeners,
                self.directory,
                settings.certificate_names,
                own,
                self._workers is not None,
            )
            if self._workers is not None:
                await self._workers.open(lambda: self.engine)
            await self.server.start()
        except BaseException:
            await self.copies.close()
            await self.engine.close()
            raise
        self._file_watch = asyncio.create_task(self._watch_files())

    async def _open_engine(self, store: Store) -> Engine:
        settings = self.settings
        if store.is_shared:
            try:
                await store.agree(settings.shared(), settings.allow_different_settings)
            except BaseException:
                await store.close()
                raise
        throttle = Throttle(
            enforced=settings.throttle == "enforce", burst=settings.burst, clock=settings.clock
        )
        engine = Engine(store, self._limits, settings.consistency, throttle, settings.serverless)
        await engine.open()
        try:
            place = None if self._workers is None else self._workers.place
            number, count = (0, 1) if place is None else (place.number, place.count)
            await engine.workload.open(self.directory / _WORKLOAD, settings.record_workload, number, count)
        except BaseException:
            await engine.close()
            raise
        if settings.log_requests or settings.slow_query_ms is not None:
            slow_seconds = None if settings.slow_query_ms is None else settings.slow_query_ms / 1000
            engine.observers.add(RequestLog(settings.log_requests, slow_seconds))
        return engine

    async def reopen(self, change: Callable[[], None], is_rollback: bool = False) -> None:
        """Closes the data, has its files changed, and opens them again, while requests wait and connections stay.

        Faults end and counts begin anew. With `is_rollback` the files are older than what clients have seen:
        numbers of resources go on all the same, and sessions demand nothing. TimeoutError, and no change, when
        requests under way do not end.
        """
        if self.backups is not None:
            raise SettingsError("a server with --backup-dir does not exchange its data while it runs")
        self.engine.faults.clear()
        async with self.desk.quiet(DRAIN_SECONDS):
            before = self.engine
            await self.advices.close()
            await self.copies.close()
            await before.close()
            try:
                await asyncio.to_thread(change)
            finally:
                self.engine = await self._open_engine(await self._open_store())
                self.engine.is_rolled_back = before.is_rolled_back or is_rollback
                self.engine.catalog.skip_numbers(before.catalog.last_number)
                self.desk.move_to(self.engine)
                self.copies, self.advices = Copies(self.engine), Advices(self.engine)
                self.copies.open()

    def _listener(self, head: str, port: int) -> Listener:
        protocols = PROTOCOLS[head](self)
        plain = None
        if self.settings.https_only:
            # HTTP tells its clients what to do; who speaks anything else without TLS is not answered.
            plain = tuple(each for each in protocols if isinstance(each, HttpSite))
        return Listener(
            name=head,
            host=self.settings.host,
            port=port,
            protocols=protocols,
            plain=plain,
            advertised_host=self.settings.advertised_host,
        )

    async def _open_backups(self, store: Store) -> None:
        if self.settings.backup_dir is None or not isinstance(store, SqliteStore):
            return
        self.backups = Backups(store, self.settings.backup_dir)
        try:
            await self.backups.open()
        except OSError as error:
            raise SettingsError(f"--backup-dir cannot be used: {error}") from error

    def nosql(self) -> tuple[WireProtocol, ...]:
        """What is spoken on the port of the NoSQL head; the admin API, metrics and health checks are there too."""
        settings = self.settings
        admin = AdminOperations(
            self.keys,
            is_loopback(settings.host),
            lambda: self.server.connections,
            lambda: self.copies,
            lambda: self.advices,
            self.backups,
            self.handover,
            self._workers,
        )
        hosts = HostNames(settings.host, settings.host_names, settings.region_host)
        head = NoSqlHead(self.desk, self._authenticator, admin, hosts, settings.direct, ExplorerPage())
        plain_paths = frozenset({HEALTH_PATH, READY_PATH}) if settings.https_only else None
        site = HttpSite(head.answer, head.admit, plain_paths=plain_paths)
        if not settings.direct:
            return (site,)
        direct = DirectHead(head, self.desk)
        return (DirectProtocol(direct.answer, direct.admit), site)

    def _read_keys(self) -> AccountKeys:
        """The keys the settings name; SettingsError or ValueError when they cannot be used."""
        if self._key_file is not None:
            keys = self._key_file.read()
        else:
            keys = AccountKeys(self.settings.key, self.settings.read_only_key)
        self.settings.check_keys(keys)
        return keys

    async def _watch_files(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._key_file is not None and self._key_file.has_changed():
                self.reload_keys()
            if self.server.has_new_certificate():
                self.reload_certificate()

    def reload(self) -> None:
        """Reads the files that may change anew; during the start they are about to be read."""
        if self._file_watch is None:
            return
        if self._key_file is not None:
            self.reload_keys()
        self.reload_certificate()

    def reload_certificate(self) -> None:
        """Has connections to come get the certificate in its files; one that cannot be used changes nothing."""
        try:
            self.server.load_certificate()
        except ValueError as error:
            _log.error("the certificate of before stays in use: %s", error)
            return
        _log.warning("the certificate was read anew, for connections that begin from now on")

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
                open_segments_max=self._open_segments_max(),
            )
        return await open_database(settings.store, allow_missing=settings.allow_missing_data)

    def _open_segments_max(self) -> int:
        """How many segments may be open: those for whose files there is room."""
        limits = self.settings.limits
        descriptors = Descriptors.of_process(limits).for_files
        if descriptors is None:
            return limits.open_segments
        return min(limits.open_segments, descriptors // DESCRIPTORS_OF_SEGMENT)

    async def stop(self) -> None:
        """Lets running requests finish, then closes the data; what is held goes on."""
        if self._file_watch is not None:
            self._file_watch.cancel()
        if self.backups is not None:
            await self.backups.close()
        await self.advices.close()
        await self.copies.close()
        self.engine.faults.clear()
        self.engine.is_stopping = True
        await self.server.drain(DRAIN_SECONDS)
        if self._workers is not None:
            self._workers.close()
        await self.engine.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def endpoint(self) -> str:
        return f"http://{self.server.address(NOSQL)}/"

    def new_link(self) -> str | None:
        """A link to the page that brings the key along and works once; None where there are no links."""
        if self.handover is None:
            return None
        scheme = "https" if self.settings.https_only else "http"
        return f"{scheme}://{self.server.address(NOSQL)}/#{FRAGMENT}={self.handover.new_token()}"

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
