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
        names = _prove(certificate)
    except (ssl.SSLError, OSError) as error:
        raise ValueError(
            f"the TLS certificate {certificate.certificate_path} with its key {certificate.key_path} "
            f"cannot be used: {_reason(error)}. Replace both files, or remove both to have a new pair made."
        ) from error
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
    # Imported here: it is needed once in the life of a data directory and costs every start otherwise.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            try:
                names.append(x509.DNSName(host))
            except ValueError as error:
                raise ValueError(f"'{host}' cannot be named in a certificate: {error}") from error
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # An end-entity certificate: some clients refuse one that could sign others as that of a server.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate.key_path.parent.mkdir(parents=True, exist_ok=True)
    _write(certificate.key_path, key_bytes, 0o600)
    _write(certificate.certificate_path, made.public_bytes(serialization.Encoding.PEM), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a new file in one step; its permissions hold from its first moment."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
