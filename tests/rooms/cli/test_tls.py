"""A certificate of the operator's own, replaced under a running server, and a server that answers over HTTPS only."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient

from pleiad.account.keys import EMULATOR_KEY
from pleiad.server.certificate import ensure_certificate
from tests.waiting import SECONDS_MAX, wait_until

from .test_backup import refused
from .test_serve import Served, serving


class Pair:
    """The files that a server is started with, and pairs to put there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.cert, self.key = directory / "own.crt", directory / "own.key"
        self.options = ("--tls-cert", self.cert, "--tls-key", self.key)
        self._made = 0

    def new(self) -> bytes:
        """Makes a new pair; its certificate as clients see it."""
        self._made += 1
        made = ensure_certificate(self._directory / str(self._made))
        self._put(made.key_path, self.key)
        self._put(made.certificate_path, self.cert)
        return ssl.PEM_cert_to_DER_cert(self.cert.read_text())

    def _put(self, origin: Path, target: Path) -> None:
        part = target.with_suffix(".part")
        shutil.copy(origin, part)
        os.replace(part, target)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def secure(served: Served) -> http.client.HTTPSConnection:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", served.port, timeout=SECONDS_MAX, context=context)
    connection.connect()
    return connection


def shown(served: Served) -> bytes | None:
    """The certificate that a new connection gets."""
    connection = secure(served)
    try:
        assert isinstance(connection.sock, ssl.SSLSocket)
        return connection.sock.getpeercert(binary_form=True)
    finally:
        connection.close()


def status(connection: http.client.HTTPConnection, path: str = "/_pleiad/health") -> int:
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    return response.status


def test_a_new_certificate_is_taken_when_its_files_change_and_no_connection_is_cut(pair: Pair) -> None:
    first = pair.new()
    with serving("--ephemeral", "--port", 0, *pair.options) as served:
        old = secure(served)
        assert status(old) == 200
        assert shown(served) == first
        second = pair.new()
        assert wait_until(lambda: shown(served) == second)
        assert status(old) == 200, "a connection of before goes on"
        old.close()


def test_a_certificate_that_cannot_be_used_changes_nothing_and_the_log_says_why(pair: Pair) -> None:
    first = pair.new()
    with serving("--ephemeral", "--port", 0, *pair.options) as served:
        pair.cert.write_text("nonsense")
        served.process.send_signal(signal.SIGHUP)
        assert served.process.stderr is not None
        line = served.process.stderr.readline()
        assert "the certificate of before stays in use" in line
        assert str(pair.cert) in line
        assert shown(served) == first
        second = pair.new()
        served.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: shown(served) == second)
        pair.key.unlink()
        while "cannot be used" not in (line := served.process.stderr.readline()):
            assert line
        assert shown(served) == second
        assert served.stop()[0] == 0


def test_a_certificate_that_cannot_be_used_at_the_start_is_refused(pair: Pair, tmp_path: Path) -> None:
    assert "belong together" in refused("serve", "--ephemeral", "--port", 0, *pair.options[:2])
    assert "cannot be used" in refused("serve", "--ephemeral", "--port", 0, *pair.options)
    pair.new()
    pair.key.write_bytes((tmp_path / "1" / "tls.key").read_bytes()[:-40])
    assert "cannot be used" in refused("serve", "--ephemeral", "--port", 0, *pair.options)


def test_a_server_for_https_only_refuses_plain_requests_and_answers_probes(tmp_path: Path) -> None:
    with serving("--data", tmp_path, "--port", 0, "--https-only") as served:
        for path in ("/", "/dbs", "/metrics", "/_pleiad/v1/warnings", "/_pleiad/health/x", "/nothing"):
            code, body = served.get(path)
            assert code == 403
            assert "HTTPS only" in json.loads(body)["message"]
        assert served.get("/_pleiad/health")[0] == 200
        assert served.get("/_pleiad/ready?x=1")[0] == 200
        with socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS_MAX) as plain:
            # Refused before its body is sent.
            plain.sendall(b"POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            assert plain.recv(65_536).startswith(b"HTTP/1.1 403")
        connection = secure(served)
        assert status(connection) == 200
        assert status(connection, "/dbs") == 401, "it is heard, and lacks a key"
        connection.close()
        own = str(tmp_path / "tls.crt")
        client = CosmosClient(f"https://localhost:{served.port}", EMULATOR_KEY, connection_verify=own)
        assert client.create_database("db").read()["id"] == "db"
