"""The names a server answers to."""

from __future__ import annotations

import socket

import pytest

from pleiad.errors import PleiadError
from pleiad.heads.http.host_names import HostNames, is_host_name
from pleiad.server.http.failures import UNKNOWN_HOST
from pleiad.server.http.message import Request
from pleiad.settings import Settings, SettingsError

LOOPBACK = [
    "localhost", "LOCALHOST", "localhost.", "localhost:8081", "localhost:", "x.localhost", "127.0.0.1",
    "127.0.0.1:65535", "127.255.255.254", "[::1]", "[::1]:8081", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]",
    "[::1%25lo]:8081", " localhost ",
]  # fmt: skip
OTHERS = [
    "evil.example", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example", "xlocalhost", "127.1",
    "2130706433", "0x7f000001", "0.0.0.0", "192.0.2.1", "[2001:db8::1]", "[::ffff:192.0.2.1]", "localhost..",
]  # fmt: skip
NO_HOSTS = [
    "", " ", ":8081", "localhost:x", "localhost:99999", "localhost:123456", "user@localhost", "local host",
    "localhost/", "localhost, evil.example", "[::1", "::1", "[localhost", "*", "localhost\x00", "löcalhost", "[]",
]  # fmt: skip


def takes(names: HostNames, host: str | None, target: bytes = b"/") -> bool:
    headers = {} if host is None else {b"host": host.encode("latin-1")}
    request = Request("GET", target, headers)
    try:
        names.check(request)
    except PleiadError as error:
        return error.row is not UNKNOWN_HOST
    return True


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "192.0.2.7"])
def test_loopback_names_are_taken_wherever_a_server_listens(bound: str) -> None:
    names = HostNames(bound)
    for host in LOOPBACK:
        for _ in range(2):
            assert takes(names, host), host


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_and_addresses_are_refused_on_loopback(host: str) -> None:
    names = HostNames("127.0.0.1")
    for _ in range(2):
        assert not takes(names, host)


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused_everywhere(host: str) -> None:
    assert not takes(HostNames("127.0.0.1"), host)
    assert not takes(HostNames("0.0.0.0"), host)


def test_the_name_of_the_machine_the_address_and_given_names_are_taken() -> None:
    names = HostNames("192.0.2.7", ("db.example.com", "pleiad", "[2001:db8::1]"))
    own = socket.gethostname()
    for host in (
        own,
        own.upper() + ":8081",
        "192.0.2.7:80",
        "DB.example.com.",
        "pleiad:1",
        "[2001:DB8:0::1]",
    ):
        assert takes(names, host), host
    for host in ("192.0.2.8", "example.com", "x.db.example.com", "pleiad.example"):
        assert not takes(names, host), host


def test_a_server_on_all_addresses_takes_any_address_and_no_other_name() -> None:
    """An address means one machine; a name means what its owner says."""
    for bound in ("0.0.0.0", "::", ""):
        names = HostNames(bound)
        for host in ("192.0.2.1:8081", "[2001:db8::1]:8081", "[fe80::1%25eth0]", "10.1.2.3"):
            assert takes(names, host), host
        assert not takes(names, "evil.example")


def test_a_request_without_a_host_is_taken() -> None:
    assert takes(HostNames("127.0.0.1"), None)


@pytest.mark.parametrize("host", ["localhost", None])
def test_the_host_of_an_absolute_target_counts_too(host: str | None) -> None:
    names = HostNames("127.0.0.1")
    assert takes(names, host, b"http://localhost:8081/dbs")
    assert not takes(names, host, b"http://evil.example/dbs")
    assert not takes(names, host, b"http://localhost@evil.example/dbs")
    assert not takes(names, host, b"http:///dbs")
    assert not takes(names, "evil.example", b"http://localhost/dbs")


def test_what_is_remembered_has_an_end() -> None:
    names = HostNames("127.0.0.1")
    for port in range(5_000):
        assert takes(names, f"localhost:{port}")
    assert len(names.known) <= 1_000
    assert not takes(names, "evil.example")


@pytest.mark.parametrize("name", ["pleiad", "db.example.com", "192.0.2.1", "::1", "[::1]", "a_b"])
def test_a_name_or_an_address_can_be_given(name: str) -> None:
    assert is_host_name(name)


@pytest.mark.parametrize(
    "name", ["", "x:8081", "http://x", "a b", "x/", "*", "*.example.com", "ä.example", "[::1]:1"]
)
def test_what_is_no_name_cannot_be_given(name: str) -> None:
    assert not is_host_name(name)
    with pytest.raises(SettingsError):
        Settings(host_names=(name,)).check()
    if name:
        with pytest.raises(SettingsError):
            Settings(region_host=name).check()


@pytest.mark.parametrize(
    ("given", "asked", "told"),
    [
        (None, "localhost:8081", "localhost:8081"),
        ("127.0.0.1", "localhost:8081", "127.0.0.1:8081"),
        ("db.example.com", "10.0.0.7", "db.example.com"),
        ("::1", "[::1]:8081", "[::1]:8081"),
        ("[::1]", "localhost:8081", "[::1]:8081"),
    ],
)
def test_the_region_has_the_host_that_was_given_and_the_port_that_was_asked(
    given: str | None, asked: str, told: str
) -> None:
    names = HostNames("127.0.0.1", region=given)
    assert names.region(asked) == told
    assert takes(names, told), "clients go on there"
