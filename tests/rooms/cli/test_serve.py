"""`pleiad serve` as its users start it: a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pleiad.head_ports import HEADS
from tests.ports import reserved_port
from tests.waiting import SECONDS_MAX, wait_until
from tests.warm_process import WarmProcess

OWN_KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ="


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "pleiad", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    """The environment of the tests without Pleiad's own variables, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLEIAD_")}
    return {**kept, **variables}


class Served:
    """A server process with the banner it printed."""

    def __init__(self, process: subprocess.Popen[str] | WarmProcess) -> None:
        self.process = process
        assert process.stdout is not None
        self.banner = ""
        for line in process.stdout:
            self.banner += line
            if line.split()[:1] == ["stop"]:
                break
        match = re.search(r"endpoint +http://[^:]+:(\d+)/", self.banner)
        assert match, f"{self.banner}{process.communicate()}"
        self.port = int(match.group(1))

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def stop(self, with_signal: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Ends the server; its exit code and what it wrote after the banner."""
        self.process.send_signal(with_signal)
        output, complaints = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.wait(), output, complaints


@contextlib.contextmanager
def serving(*arguments: object, **variables: str) -> Iterator[Served]:
    process = WarmProcess(["serve", *arguments], environment(**variables))
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def started_anew(*arguments: object, **variables: str) -> Iterator[Served]:
    """The same in a fresh interpreter, as a user starts it."""
    process = subprocess.Popen(
        command("serve", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


def refused(*arguments: object, **variables: str) -> str:
    """What a server that does not start says; it leaves with an error code and no traceback."""
    process = WarmProcess(["serve", *arguments], environment(**variables))
    output, complaints = process.communicate(SECONDS_MAX)
    assert process.returncode in (1, 2), complaints
    assert "Traceback" not in complaints, complaints
    assert output == ""
    return complaints


def test_the_time_to_the_first_answer_is_told(
    tmp_path: Path, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with reserved_port() as port, started_anew("--data", tmp_path / "data", "--port", port) as server:
        assert server.get("/_pleiad/health")[0] == 200
        seconds = time.monotonic() - began
    record_property("first_answer_seconds", round(seconds, 3))
    with capsys.disabled():
        print(f" [first answer after {seconds:.2f} s]", end="")


def test_the_banner_says_where_how_and_what(tmp_path: Path) -> None:
    with started_anew("--data", tmp_path / "data", "--port", 0) as server:
        endpoint = f"http://localhost:{server.port}/"
        assert f"AccountEndpoint={endpoint};AccountKey=C2y6yDjf5/R+ob0N8A7C" in server.banner
        assert str((tmp_path / "data").resolve()) in server.banner
        assert f"{endpoint}_pleiad/health" in server.banner
        assert "https on the same port" in server.banner
        assert "Ctrl-C" in server.banner
        assert "SIGTERM" in server.banner


def test_a_link_is_printed_where_it_is_asked_for_and_works_once(tmp_path: Path) -> None:
    with serving("--ephemeral", "--port", 0, "--link", PLEIAD_KEY=OWN_KEY) as server:
        found = re.search(rf"http://localhost:{server.port}/#handover=(\S+)", server.banner)
        assert found is not None
        headers = {
            "origin": f"http://localhost:{server.port}",
            "host": f"localhost:{server.port}",
            "x-pleiad-handover": found[1],
        }
        answers = []
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
            connection.request("POST", "/_pleiad/handover", headers=headers)
            response = connection.getresponse()
            answers.append((response.status, response.read().decode()))
            connection.close()
        assert answers[0] == (200, json.dumps({"key": OWN_KEY}, separators=(",", ":")))
        assert answers[1][0] == 401
        _, output, complaints = server.stop()
    assert found[1] not in output + complaints


@pytest.mark.parametrize("given", [(), ("--no-link",)], ids=str)
def test_no_link_stands_in_an_output_that_is_no_terminal(given: tuple[str, ...]) -> None:
    with serving("--ephemeral", "--port", 0, *given) as server:
        assert "handover" not in server.banner


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize(("given", "is_shown"), [((), True), (("--no-link",), False)], ids=str)
def test_a_terminal_shows_the_link_unless_it_is_not_wanted(given: tuple[str, ...], is_shown: bool) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command("serve", "--ephemeral", "--port", 0, *given), stdout=theirs, stderr=theirs, env=environment()
    )
    os.close(theirs)
    try:
        shown = b""
        while b"SIGTERM" not in shown:
            shown += os.read(ours, 4_096)
        assert (b"/#handover=" in shown) == is_shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_a_server_whose_terminal_is_closed_stops(tmp_path: Path) -> None:
    import pty

    process, terminal = pty.fork()
    if process == 0:
        os.execve(sys.executable, command("serve", "--data", tmp_path, "--port", 0), environment())
    try:
        shown = b""
        while b"SIGTERM" not in shown:
            shown += os.read(terminal, 4_096)
        os.close(terminal)
        assert wait_until(lambda: os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_beyond_loopback_there_is_no_link(tmp_path: Path) -> None:
    with serving("--ephemeral", "--port", 0, "--host", "0.0.0.0", "--link", PLEIAD_KEY=OWN_KEY) as server:
        assert "handover" not in server.banner


def test_a_key_of_ones_own_is_never_printed(tmp_path: Path) -> None:
    with serving("--ephemeral", "--port", 0, PLEIAD_KEY=OWN_KEY) as server:
        assert server.get("/")[0] == 401
        code, output, complaints = server.stop()
    assert code == 0
    assert OWN_KEY not in server.banner + output + complaints


def test_every_option_is_an_environment_variable_too(tmp_path: Path) -> None:
    data = tmp_path / "by variable"
    with (
        reserved_port() as port,
        serving(PLEIAD_DATA=str(data), PLEIAD_PORT=str(port), PLEIAD_LIMITS="tiny") as server,
    ):
        assert server.port == port
        assert (data / "catalog.sqlite").exists()


def test_an_ephemeral_server_leaves_nothing_behind(tmp_path: Path) -> None:
    with serving("--ephemeral", "--port", 0, TMPDIR=str(tmp_path)) as server:
        assert len(list(tmp_path.iterdir())) == 1
        assert "temporary" in server.banner
        assert server.stop()[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with serving("--data", tmp_path, "--port", 0) as first:
        said = refused("--data", tmp_path, "--port", 0)
        assert f"process {first.process.pid}" in said
        assert str(tmp_path) in said
        assert first.get("/_pleiad/health")[0] == 200
    with serving("--data", tmp_path, "--port", 0) as next_one:
        assert next_one.get("/_pleiad/health")[0] == 200


def test_the_well_known_key_is_refused_on_every_address_but_loopback() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        assert "--allow-emulator-key" in refused("--ephemeral", "--port", 0, "--host", host)


@pytest.mark.parametrize("how", [["--allow-emulator-key"], ["--key", OWN_KEY]])
def test_beyond_loopback_the_operator_insists_or_gives_a_key(how: list[str]) -> None:
    with serving("--ephemeral", "--port", 0, "--host", "0.0.0.0", *how) as server:
        assert server.get("/_pleiad/health")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--host-name", "pleiad", "--host-name", "db.example.com"], {}),
        ([], {"PLEIAD_HOST_NAME": "pleiad db.example.com"}),
        ([], {"PLEIAD_HOST_NAME": "pleiad, db.example.com"}),
    ],
)
def test_the_server_answers_to_the_names_that_the_operator_gives(
    arguments: list[str], variables: dict[str, str]
) -> None:
    with serving("--ephemeral", "--port", 0, *arguments, **variables) as server:
        for host, status in (
            ("pleiad:8081", 200),
            ("DB.example.com", 200),
            ("evil.example", 400),
            ("localhost", 200),
        ):
            assert server.get("/metrics", Host=host)[0] == status


def test_a_host_name_with_a_port_is_refused() -> None:
    assert "without a port" in refused("--ephemeral", "--port", 0, "--host-name", "pleiad:8081")


@pytest.mark.parametrize("key", ["short", "not base64!", "YQ==", ""])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    assert "key" in refused("--ephemeral", "--port", 0, "--key", key)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_lets_the_running_request_finish_and_exits_clean(name: str, tmp_path: Path) -> None:
    with serving("--data", tmp_path, "--port", 0) as server:
        body = b'{"id":"1"}'
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as client:
            client.sendall(
                b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:5]
            )
            for _ in range(2):  # later turns of the loop, in which what came before is read
                assert server.get("/_pleiad/health")[0] == 200
            server.process.send_signal(getattr(signal, name))
            assert server.process.stdout is not None
            said = ""
            while "finishing running requests" not in said:
                line = server.process.stdout.readline()
                assert line, said
                said += line
            client.sendall(body[5:])
            answer = client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 401")
        output, complaints = server.process.communicate(timeout=SECONDS_MAX)
        assert server.process.returncode == 0
        assert f"{name}: finishing running requests" in said
        assert "Stopped." in output
        assert complaints == ""


def test_health_needs_no_key_and_everything_else_does() -> None:
    with serving("--ephemeral", "--port", 0) as server:
        assert server.get("/_pleiad/health") == (200, b'{"status":"ok"}')
        assert server.get("/dbs")[0] == 401


def test_a_server_is_not_ready_while_its_data_is_away(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving("--data", data, "--port", 0) as served:
        assert served.get("/_pleiad/ready") == (200, b'{"status":"ready"}')
        data.rename(tmp_path / "away")
        status, body = served.get("/_pleiad/ready")
        assert (status, b"store unavailable" in body) == (503, True)
        assert served.get("/_pleiad/health")[0] == 200, "a restart would help nothing"
        (tmp_path / "away").rename(data)
        assert served.get("/_pleiad/ready")[0] == 200


def test_the_certificate_is_kept_over_restarts(tmp_path: Path) -> None:
    seen = set()
    for _ in range(2):
        with serving("--data", tmp_path, "--port", 0) as server:
            seen.add(ssl.get_server_certificate(("127.0.0.1", server.port)))
            assert server.stop()[0] == 0
    assert len(seen) == 1


def test_limits_come_from_a_file(tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("clock_skew_minutes = 7\n")
    with serving("--ephemeral", "--port", 0, "--limits", limits) as server:
        assert server.get("/_pleiad/health")[0] == 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item_bytes = ", "not valid TOML"),
        ("no_such_limit = 5", "no limit 'no_such_limit'"),
        ('item_bytes = "big"', "'item_bytes' must be a whole number"),
        ("item_bytes = -1", "'item_bytes' must be a whole number"),
        ('operation_seconds = "long"', "'operation_seconds' must be a number"),
        ('profile = "huge"', "no profile 'huge'"),
        ("profile = 5", "profile"),
        ("profile = []", "profile"),
    ],
)
def test_a_broken_limits_file_is_explained(text: str, said: str, tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text(text)
    assert said in refused("--ephemeral", "--port", 0, "--limits", limits)


def test_a_limits_profile_that_does_not_exist_is_explained() -> None:
    said = refused("--ephemeral", "--port", 0, "--limits", "2525")
    assert "2525" in said
    assert "default" in said


def test_a_port_in_use_is_explained() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("--ephemeral", "--port", port)
    assert str(port) in said
    assert "in use" in said


@pytest.mark.parametrize("option", ["--port", "PLEIAD_PORT"])
def test_a_port_in_use_leaves_no_directory_behind_and_names_the_option(option: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        given = [option, port] if option.startswith("--") else []
        variables = {} if given else {option: port}
        said = refused("--data", tmp_path / "new", *given, **variables)
    assert "take another port with --port or the variable PLEIAD_PORT, of which 0 is any free one" in said
    assert not (tmp_path / "new").exists()


def test_data_that_is_to_be_kept_and_not_to_be_kept_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert "give only one of them" in refused("--ephemeral", "--data", kept, "--port", 0)
    assert "give only one of them" in refused("--port", 0, PLEIAD_EPHEMERAL="1", PLEIAD_DATA=str(kept))
    with serving("--ephemeral", "--port", 0, PLEIAD_DATA=str(kept)) as server:
        assert "temporary" in server.banner, "the option wins over the variable"
    assert not kept.exists()


def test_a_pipe_that_closes_ends_no_server(tmp_path: Path) -> None:
    with started_anew("--data", tmp_path, "--port", 0) as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        assert server.get("/_pleiad/health")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=SECONDS_MAX) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


@pytest.mark.parametrize("is_closed", [True, False])
def test_standard_output_that_nobody_ever_reads_ends_no_server(is_closed: bool, tmp_path: Path) -> None:
    with reserved_port() as port:
        words = command("serve", "--data", tmp_path, "--port", port)
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" >&-', "sh", *words] if is_closed else words,
            stdout=writing,
            env=environment(),
        )
        os.close(writing)
        try:
            assert wait_until(lambda: process.poll() is not None or is_answering(port))
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=SECONDS_MAX) == 0
        finally:
            process.kill()
            process.wait()


def is_answering(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX):
        return True
    return False


def test_beyond_loopback_the_endpoint_has_the_first_name_that_was_given() -> None:
    names = ("--host-name", "db.example.com", "--host-name", "other")
    with serving("--ephemeral", "--port", 0, "--host", "0.0.0.0", "--key", OWN_KEY, *names) as server:
        assert f"AccountEndpoint=http://db.example.com:{server.port}/;" in server.banner
    with serving("--ephemeral", "--port", 0, *names) as server:
        assert f"AccountEndpoint=http://localhost:{server.port}/;" in server.banner


def test_data_that_cannot_be_a_directory_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "file" in refused("--data", tmp_path / "file", "--port", 0)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "catalog.sqlite").write_text(
        "this is no database, though it is long enough " * 40
    )
    assert "catalog.sqlite" in refused("--data", tmp_path / "foreign", "--port", 0)


def test_an_unknown_store_is_refused() -> None:
    assert "sqlite" in refused("--ephemeral", "--port", 0, "--store", "paper")


def test_the_help_is_a_manual() -> None:
    said = subprocess.run(command("serve", "--help"), capture_output=True, text=True, check=True).stdout
    from pleiad.cli.serve import serve

    for parameter in serve.params:
        for option in parameter.opts:
            assert option in said
            assert "PLEIAD_" + option.removeprefix("--").replace("-", "_").upper() in said
    for head in HEADS:
        is_told = f"port of the {head.title} head, which is not in this version" in " ".join(said.split())
        assert is_told == (not head.is_here)
    for word in ("SIGTERM", "/_pleiad/health", "certificate", "Examples"):
        assert word in said
    top = subprocess.run(command("--help"), capture_output=True, text=True, check=True).stdout
    assert "serve" in top


def test_the_sample_is_loaded_once(tmp_path: Path) -> None:
    for _ in range(2):
        with serving("--data", tmp_path, "--port", 0, "--sample") as server:
            from azure.cosmos import CosmosClient

            from pleiad.account.keys import EMULATOR_KEY

            client = CosmosClient(f"http://localhost:{server.port}", EMULATOR_KEY)
            containers = list(client.get_database_client("sample").list_containers())
            assert {"food", "devices", "flights"} <= {container["id"] for container in containers}
            assert server.stop()[0] == 0
