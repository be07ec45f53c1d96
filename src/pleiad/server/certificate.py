"""The server's own certificate: made on first start, kept, and proved before it is used.

``tls.crt`` and ``tls.key`` in the data directory are a self-signed EC P-256 pair for the names of the server and its
machine. An operator may put their
own pair there; files that exist are never overwritten. Whether a pair can be used (readable, fitting
together, valid today) is found by a TLS handshake in memory between a server that holds it and a client that
trusts it, so the answer is that of the TLS library itself.
"""

from __future__ import annotations

import datetime
import ipaddress
import logging
import os
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pleiad.server.machine import machine_names
from pleiad.server.self_signed import self_signed

CERTIFICATE_FILE = "tls.crt"
KEY_FILE = "tls.key"
VALID_DAYS = 3650
DEFAULT_HOSTS = ("localhost", "*.localhost", "127.0.0.1", "::1")

_log = logging.getLogger("pleiad.server")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A pair of files that was found usable."""

    certificate_path: Path
    key_path: Path

    def state(self) -> tuple[int, ...]:
        """What tells one state of the two files from another."""
        numbers: list[int] = []
        for path in (self.certificate_path, self.key_path):
            try:
                found = path.stat()
            except OSError:
                numbers += (0, 0, 0, 0)
            else:
                numbers += (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        return tuple(numbers)

    def proved(self) -> set[str]:
        """The names that the pair is for; ValueError with a sentence for the operator when it cannot be used."""
        try:
            return _prove(self)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(
                f"the TLS certificate {self.certificate_path} with its key {self.key_path} cannot be used: "
                f"{_reason(error)}"
            ) from error

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.2 or newer, HTTP/1.1 only, no renegotiation."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        # An empty password, because without one the library would ask for it on the terminal.
        context.load_cert_chain(self.certificate_path, self.key_path, password="")
        return context


def ensure_certificate(directory: Path, extra_hosts: Iterable[str] = ()) -> Certificate:
    """The certificate in that directory, made now if there is none.

    Raises ValueError with a sentence for the operator when there are files that cannot be used.
    """
    certificate = Certificate(directory / CERTIFICATE_FILE, directory / KEY_FILE)
    hosts = list(dict.fromkeys([*DEFAULT_HOSTS, *extra_hosts, *filter(_is_name, machine_names())]))
    found = [path for path in (certificate.certificate_path, certificate.key_path) if path.exists()]
    if not found:
        _make(certificate, hosts)
    elif len(found) == 1:
        raise ValueError(
            f"{found[0]} stands alone: {CERTIFICATE_FILE} and {KEY_FILE} belong together. "
            "Put the missing file beside it, or remove it to have a new pair made."
        )
    try:
        names = certificate.proved()
    except ValueError as error:
        raise ValueError(f"{error}. Replace both files, or remove both to have a new pair made.") from error
    missing = [host for host in extra_hosts if host.lower() not in names]
    if missing:
        _log.warning(
            "%s does not name %s; remove it and %s to have a new pair made",
            certificate.certificate_path,
            ", ".join(missing),
            certificate.key_path,
        )
    return certificate


def _is_name(host: str) -> bool:
    """Whether a certificate can name a host; a machine may be called what it likes."""
    return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?", host) is not None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or "unreadable").replace("_", " ").lower()
    return str(error)


def _prove(certificate: Certificate) -> set[str]:
    """Shake hands with itself; the host names of the certificate, in lower case."""
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    server_context = certificate.server_context()
    client_context.load_verify_locations(certificate.certificate_path)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    if waiting:
        raise OSError("the handshake did not finish")
    described = client.getpeercert() or {}
    names = cast(Iterable[tuple[str, str]], described.get("subjectAltName", ()))
    return {str(ipaddress.ip_address(name)) if kind == "IP Address" else name.lower() for kind, name in names}


def _make(certificate: Certificate, hosts: list[str]) -> None:
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    certificate_bytes, key_bytes = self_signed("localhost", hosts, start, VALID_DAYS)
    certificate.key_path.parent.mkdir(parents=True, exist_ok=True)
    _write(certificate.key_path, key_bytes, 0o600)
    _write(certificate.certificate_path, certificate_bytes, 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a new file in one step; its permissions hold from its first moment."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
