"""What a server is started with, and what of it cannot be served."""

from __future__ import annotations

import dataclasses
import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pleiad.account.keys import EMULATOR_KEY, AccountKeys, digest
from pleiad.engine.consistency import Consistency
from pleiad.engine.recording import Mode
from pleiad.head_ports import BY_NAME, NOSQL, chosen
from pleiad.heads.http.host_names import is_host_name
from pleiad.limits import Limits
from pleiad.server.listener import is_taken
from pleiad.store.postgres.database import SCHEMES

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
    region_host: str | None = None
    """The host in the address of the account's region, instead of the one that a client asked by."""
    port: int = BY_NAME[NOSQL].port
    """That of the NoSQL head, which is always on."""
    heads: tuple[str, ...] = ()
    """Further heads, by name; `all` takes every one."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Of further heads: who has a port here is on, and the others take their own."""
    direct: bool = True
    """Whether clients in direct mode are served, on the port of the NoSQL head inside TLS."""
    key: str = EMULATOR_KEY
    read_only_key: str | None = None
    key_file: Path | None = None
    """Where the keys are kept instead; it is read anew when it changes."""
    limits: Limits = field(default_factory=Limits)
    consistency: Consistency = Consistency.SESSION
    allow_emulator_key: bool = False
    throttle: str = "enforce"
    """`enforce`: requests beyond the throughput get 429; `observe`: they are only counted."""
    clock: Callable[[], float] = time.monotonic
    """What throughput is measured by; who wants the same run twice turns one of its own."""
    burst: bool = False
    serverless: bool = False
    allow_different_settings: bool = False
    """Start although other servers on the same database have another key, other limits or another throttling."""
    allow_missing_data: bool = False
    """Start although something that held items is gone; what nobody knows is set aside."""
    log_requests: bool = False
    slow_query_ms: int | None = None
    """Queries that take this long or longer are logged."""
    record_workload: Mode = Mode.OFF
    """How containers are recorded that were not switched themselves."""
    backup_dir: Path | None = None
    """Where the admin API may have backups put; nowhere else, whatever a request says."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """The certificate and its key instead of those in the data directory."""
    https_only: bool = False
    """Plain requests are refused, but for health and readiness."""
    load: Path | None = None
    """A folder whose containers are loaded before anybody is answered, where they are not there yet."""

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
        if self.store != SQLITE and not self.store.startswith(SCHEMES):
            raise SettingsError(
                "there is no such store: give 'sqlite', or a PostgreSQL database as postgresql://user@host/database"
            )
        for name in (*self.host_names, self.region_host or "localhost"):
            if not is_host_name(name):
                raise SettingsError(
                    f"'{name}' is no host name: give the name or address alone, without a port"
                )
        self.listening()
        if (self.tls_cert is None) != (self.tls_key is None):
            raise SettingsError("a certificate and its key belong together: give --tls-cert and --tls-key")
        self._check_backup_dir()
        if self.key_file is not None and (self.key != EMULATOR_KEY or self.read_only_key):
            raise SettingsError("the keys are given twice: keep all of them in the key file, or none of them")

    def _check_backup_dir(self) -> None:
        if self.backup_dir is None:
            return
        if self.store != SQLITE:
            raise SettingsError(
                "an account in PostgreSQL is backed up with pg_basebackup or pg_dump, not with --backup-dir"
            )
        data = None if self.data is None else self.data.resolve()
        if data is not None and self.backup_dir.resolve().is_relative_to(data):
            raise SettingsError(
                "--backup-dir is inside the data directory: a backup there would be lost with the data"
            )

    def listening(self) -> dict[str, int]:
        """The heads that are on, with their ports."""
        try:
            return chosen(self.heads, {**self.ports, NOSQL: self.port})
        except ValueError as error:
            raise SettingsError(str(error)) from None

    def check_ports(self) -> None:
        """Refuses a port that is taken, before anything is made on the disk for a server that cannot start."""
        for head, port in self.listening().items():
            if is_taken(self.host, port):
                option = BY_NAME[head].option
                variable = f"PLEIAD_{option.strip('-').replace('-', '_').upper()}"
                raise SettingsError(
                    f"port {port} of {self.host} is in use: stop what listens there, or take another port with "
                    f"{option} or the variable {variable}, of which 0 is any free one"
                )

    @property
    def advertised_host(self) -> str | None:
        """The name clients are told where others than this machine can reach the server, if one was given."""
        return self.host_names[0] if self.host_names and not is_loopback(self.host) else None

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """What the certificate names beside loopback."""
        bound = () if self.host in ("", "0.0.0.0", "::") else (self.host,)
        return (*bound, *filter(None, (*self.host_names, self.region_host)))

    def check_keys(self, keys: AccountKeys) -> None:
        """Refuses a key everybody knows on an address everybody reaches."""
        if keys.has_emulator_key and not self.allow_emulator_key and not is_loopback(self.host):
            raise SettingsError(
                f"listening on {self.host} with the well-known emulator key would let anyone in: give a key of your "
                "own with --key or PLEIAD_KEY, or insist with --allow-emulator-key"
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
