"""`pleiad wait`: the exit code says whether a server is ready."""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from pleiad.cli.main import cli
from tests import warm_command
from tests.ports import reserved_port
from tests.stores import StartServer


@pytest.mark.every_store
def test_a_server_that_is_ready_is_not_waited_for(start_server: StartServer) -> None:
    with start_server() as server:
        done = CliRunner().invoke(cli, ["wait", "--timeout", "0", "--endpoint", server.endpoint])
        assert (done.exit_code, done.output) == (0, "")
        named = {"PLEIAD_CONNECTION_STRING": server.connection_string}
        assert CliRunner().invoke(cli, ["wait"], env=named).exit_code == 0


def test_a_server_that_starts_later_is_waited_for(start_server: StartServer) -> None:
    with reserved_port() as port:
        command = [*warm_command.words(), "wait", "--endpoint", f"http://localhost:{port}"]
        waiting = subprocess.Popen([*command, "--timeout", "600"], env=os.environ)
        try:
            with start_server(port=port):
                assert waiting.wait(timeout=600) == 0
        finally:
            waiting.kill()
            waiting.wait()


def test_nobody_is_waited_for_longer_than_told() -> None:
    with reserved_port() as port:
        endpoint = f"http://localhost:{port}"
        done = CliRunner().invoke(cli, ["wait", "--timeout", "0.1", "--endpoint", endpoint])
    assert done.exit_code == 1
    assert f"not ready within 0.1 s: nothing listens at {endpoint}" in done.stderr


def test_an_endpoint_that_is_none_is_not_waited_for() -> None:
    done = CliRunner().invoke(cli, ["wait", "--timeout", "600", "--endpoint", "localhost"])
    assert (done.exit_code, "is no endpoint" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("body", "told"), [(b'{"status": "stopping"}', "says 'stopping'"), (b"[", "answers with status 503")]
)
def test_a_server_that_is_not_ready_tells_why(body: bytes, told: str) -> None:
    class NotReady(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/_pleiad/ready"
            self.send_response(503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), NotReady) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{other.server_port}"
        done = CliRunner().invoke(cli, ["wait", "--timeout", "0", "--endpoint", endpoint])
        other.shutdown()
        thread.join()
    assert (done.exit_code, told in done.stderr) == (1, True)
