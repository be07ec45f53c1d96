"""HTTP and HTTPS on one port, and the certificate behind it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import http.client
import logging
import socket
import ssl
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pleiad.server.certificate import ensure_certificate
from pleiad.server.connections import Connection, ConnectionTable
from pleiad.server.http.message import Request, Response
from pleiad.server.memory import READ_BYTES
from pleiad.server.self_signed import self_signed
from pleiad.server.tcp import TcpProtocol
from pleiad.server.tls import FED_BYTES, HANDSHAKE_SECONDS_MAX, TlsConnection
from tests.waiting import SECONDS_MAX, forever, turns, wait_until

Serve = Callable[..., Any]
GET = b"GET / HTTP/1.1\r\n\r\n"


async def echo(request: Request) -> Response:
    if request.raw_path == b"/wait":
        await turns(50)
    return Response(200, b"x-secure: %d\r\n" % request.secure, request.body)


def https(port: int) -> http.client.HTTPSConnection:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS_MAX, context=context)


def closes(connection: socket.socket) -> bool:
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_plain_and_encrypted_clients_share_the_port(serve: Serve) -> None:
    running = serve(echo, tls=True)
    assert running.connect().send(GET).read().headers["x-secure"] == "0"
    client = https(running.server.port)
    for body in (b"", b"abc"):
        client.request("POST", "/wait", body)
        response = client.getresponse()
        assert response.headers["x-secure"] == "1"
        assert response.read() == body
    client.close()
    assert running.connect_tls().send(GET).read().status == 200


def test_the_client_can_verify_the_certificate_it_was_given(serve: Serve) -> None:
    running = serve(echo, tls=True)
    context = ssl.create_default_context(cafile=str(running.tls / "tls.crt"))
    for host in ("localhost", "127.0.0.1"):
        with (
            socket.create_connection(("127.0.0.1", running.server.port), timeout=SECONDS_MAX) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            secure.sendall(GET)
            assert secure.recv(12) == b"HTTP/1.1 200"


def test_three_megabytes_go_both_ways_over_tls(serve: Serve) -> None:
    running = serve(echo, tls=True)
    body = bytes(range(256)) * 12_288
    client = https(running.server.port)
    for _ in range(2):
        client.request("POST", "/", body)
        assert client.getresponse().read() == body
    client.close()


def test_pipelined_requests_over_tls_keep_their_order_under_back_pressure(serve: Serve) -> None:
    async def large(request: Request) -> Response:
        return Response(200, b"", request.target * 100_000)

    running = serve(large, tls=True)
    client = running.connect_tls()
    client.send(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % (n % 10) for n in range(60)))
    assert wait_until(lambda: running.server._table.memory.unsent_bytes > 0)
    for n in range(60):
        assert client.read().body == b"/%d" % (n % 10) * 100_000


def test_connection_close_over_tls_ends_with_a_goodbye(serve: Serve) -> None:
    client = serve(echo, tls=True).connect_tls()
    client.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert client.read().headers["connection"] == "close"
    # A stream cut without the goodbye would raise SSLEOFError here.
    client.socket.suppress_ragged_eofs = False
    assert client.socket.recv(100) == b""


def test_a_refusal_over_tls_ends_with_a_goodbye_though_the_client_sends_on(serve: Serve) -> None:
    client = serve(echo, tls=True).connect_tls()
    client.send(b"no request\r\n\r\n")
    assert client.read().status == 400
    client.send(b"x" * 100_000)
    client.socket.suppress_ragged_eofs = False
    assert client.socket.recv(100) == b""


class Sipper(Connection):
    """Reads a little, pauses, and reads on in the next turn of the loop."""

    def __init__(self, table: ConnectionTable) -> None:
        self.table = table
        self.taken_bytes = self.unread_bytes_max = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.remove(self)

    def data_received(self, data: bytes) -> None:
        self.taken_bytes += len(data)
        self.unread_bytes_max = max(self.unread_bytes_max, self.transport.get_extra_info("unread_bytes"))
        self.transport.pause_reading()
        self.table.loop.call_soon(self.transport.resume_reading)

    def sweep(self, now: float) -> None:
        """It has no limits."""

    def drain(self) -> None:
        self.abort()

    def abort(self) -> None:
        self.transport.abort()


def test_a_protocol_that_reads_slowly_has_one_read_of_ciphertext_waiting(serve_listeners: Serve) -> None:
    sippers: list[Sipper] = []

    class Sipping(TcpProtocol):
        def connect(self, table: ConnectionTable, secure: bool) -> Any:
            sippers.append(Sipper(table))
            return sippers[-1]

    sipping = Sipping(head_bytes=4, length_of=len, begin=lambda conversation: None)  # type: ignore[arg-type,return-value]
    client = serve_listeners([sipping], tls=True).connect_tls()
    client.send(bytes(5_000_000))
    assert wait_until(lambda: sippers[0].taken_bytes == 5_000_000)
    assert FED_BYTES < sippers[0].unread_bytes_max <= READ_BYTES + FED_BYTES


def test_a_goodbye_of_the_client_closes_the_connection(serve: Serve) -> None:
    running = serve(echo, tls=True)
    client = running.connect_tls().send(GET)
    assert client.read().status == 200
    client.socket.unwrap()
    assert wait_until(lambda: running.server.connections == 0)


def test_a_disconnect_over_tls_cancels_the_waiting_handler(serve: Serve) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def wait(request: Request) -> Response:
        begun.set()
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response(200)

    client = serve(wait, tls=True).connect_tls().send(GET)
    assert begun.wait(SECONDS_MAX)
    client.socket.close()
    assert cancelled.wait(SECONDS_MAX)


def test_an_oversized_body_over_tls_is_refused_readably(serve: Serve) -> None:
    client = serve(echo, tls=True, request_bytes=1000).connect_tls()
    client.send(b"POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000)
    assert client.read().status == 413


@pytest.mark.parametrize(
    "hello",
    [b"\x16", b"\x16\x03\x01\xff\xff" + b"\x00" * 500, b"\x16garbage that is no hello" * 40],
)
def test_a_bad_or_unfinished_handshake_is_cut(serve: Serve, hello: bytes) -> None:
    running = serve(echo, tls=True)
    client = running.connect().send(hello)

    def is_cut() -> bool:
        running.pass_time(HANDSHAKE_SECONDS_MAX)
        return bool(running.server.connections == 0)

    assert wait_until(lambda: running.server.connections == 1 or client.has_news())
    assert wait_until(is_cut)
    assert closes(client.socket)
    assert running.connect_tls().send(GET).read().status == 200


def test_garbage_inside_an_open_tls_connection_closes_it(serve: Serve) -> None:
    running = serve(echo, tls=True)
    client = running.connect_tls().send(GET)
    assert client.read().status == 200
    with socket.socket(fileno=socket.dup(client.socket.fileno())) as raw:
        raw.sendall(b"not a record at all" * 5)
        raw.settimeout(SECONDS_MAX)
        assert closes(raw)


def test_without_a_certificate_a_tls_hello_is_just_a_bad_request(serve: Serve) -> None:
    client = serve(echo).connect().send(b"\x16\x03\x01\x00\x05hello")
    assert client.read().status == 400


# -- the certificate -----------------------------------------------------------------------------------


def test_a_certificate_is_made_once_and_its_key_is_private(tmp_path: Path) -> None:
    made = ensure_certificate(tmp_path / "new", ["db.example", "10.0.0.7"])
    key = made.key_path.read_bytes()
    assert stat.S_IMODE(made.key_path.stat().st_mode) == 0o600
    parsed = x509.load_pem_x509_certificate(made.certificate_path.read_bytes())
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName)[:3] == ["localhost", "*.localhost", "db.example"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1", "10.0.0.7"]
    assert (parsed.not_valid_after_utc - datetime.datetime.now(datetime.UTC)).days > 3600
    assert ensure_certificate(tmp_path / "new", ["db.example"]).key_path.read_bytes() == key


def test_every_certificate_made_is_signed_by_its_own_key_on_the_curve(tmp_path: Path) -> None:
    start = datetime.datetime.now(datetime.UTC)
    for years in (*range(12), 40):
        made, key = self_signed("localhost", ["db.example", "::1"], start, 365 * years + 1)
        parsed = x509.load_pem_x509_certificate(made)
        parsed.verify_directly_issued_by(parsed)
        private = serialization.load_pem_private_key(key, None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        assert isinstance(private.curve, ec.SECP256R1)
        assert private.public_key() == parsed.public_key()
        assert parsed.not_valid_after_utc - parsed.not_valid_before_utc == datetime.timedelta(365 * years + 1)
        identifier = parsed.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        assert identifier == x509.SubjectKeyIdentifier.from_public_key(private.public_key())
    assert len({self_signed("localhost", [], start, 1) for _ in range(3)}) == 3


def test_a_host_the_kept_certificate_does_not_name_is_mentioned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ensure_certificate(tmp_path)
    with caplog.at_level(logging.WARNING, "pleiad.server"):
        ensure_certificate(tmp_path, ["late.example"])
    assert "late.example" in caplog.text


def test_one_file_without_the_other_is_explained(tmp_path: Path) -> None:
    ensure_certificate(tmp_path)
    (tmp_path / "tls.crt").unlink()
    with pytest.raises(ValueError, match=r"tls\.key stands alone"):
        ensure_certificate(tmp_path)


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key"])
def test_a_broken_file_is_explained_and_left_alone(tmp_path: Path, broken: str) -> None:
    ensure_certificate(tmp_path)
    (tmp_path / broken).write_bytes(b"not PEM")
    with pytest.raises(ValueError, match="cannot be used"):
        ensure_certificate(tmp_path)
    assert (tmp_path / broken).read_bytes() == b"not PEM"


def test_a_key_of_another_certificate_is_explained(tmp_path: Path) -> None:
    ensure_certificate(tmp_path / "a")
    ensure_certificate(tmp_path / "b")
    (tmp_path / "a" / "tls.key").write_bytes((tmp_path / "b" / "tls.key").read_bytes())
    with pytest.raises(ValueError, match="mismatch"):
        ensure_certificate(tmp_path / "a")


def test_an_expired_certificate_is_explained(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.now(datetime.UTC)
    old = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - 2 * day)
        .not_valid_after(now - day)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "tls.crt").write_bytes(old.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "tls.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    with pytest.raises(ValueError, match="expired"):
        ensure_certificate(tmp_path)


def test_a_host_that_no_certificate_can_name_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be named"):
        ensure_certificate(tmp_path, ["h\xf6st"])


def test_a_flood_of_handshakes_is_worked_off_one_in_a_turn(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    turns = 0
    shake = TlsConnection.shake

    def counted(connection: TlsConnection) -> None:
        nonlocal turns
        if not steps:
            running.loop.call_soon(count)
        steps.append(turns)
        shake(connection)

    def count() -> None:
        nonlocal turns
        turns += 1
        if len(steps) < 30:
            running.loop.call_soon(count)

    monkeypatch.setattr(TlsConnection, "shake", counted)
    running = serve(echo, tls=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connections = [
        socket.create_connection(("127.0.0.1", running.server.port), timeout=SECONDS_MAX) for _ in range(30)
    ]
    for connection in connections:
        hello = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), hello).do_handshake()
        connection.sendall(hello.read())
    for connection in connections:
        assert connection.recv(65536).startswith(b"\x16")
        connection.close()
    assert len(steps) >= 30
    assert len(set(steps)) >= len(steps) - 1, "no two in one turn"


def test_a_handshake_that_brings_too_much_is_cut(serve: Serve) -> None:
    running = serve(echo, tls=True)
    client = running.connect().send(b"\x16\x03\x01\x40\x00\x01\x00\xff\xff")
    with contextlib.suppress(ConnectionError):
        for _ in range(20):
            client.send(b"\x00" * 16_384)
    assert closes(client.socket)


def test_the_certificate_is_of_a_server_and_names_its_machine(tmp_path: Path) -> None:
    made = ensure_certificate(tmp_path, ("db.example",))
    certificate = x509.load_pem_x509_certificate(made.certificate_path.read_bytes())
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not constraints.ca
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "db.example"} <= set(names.get_values_for_type(x509.DNSName))
