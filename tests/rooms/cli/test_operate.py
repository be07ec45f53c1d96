"""The commands of docs/operate.md, given as they stand there, with places of this machine in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

import pleiad
from pleiad.account.keys import EMULATOR_KEY
from pleiad.server.certificate import ensure_certificate
from tests import warm_command
from tests.postgres_server import PostgresServer
from tests.project import ROOT
from tests.waiting import SECONDS_MAX, wait_until

from .test_serve import Served, environment

PAGE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")


def scripts(heading: str) -> list[str]:
    """The blocks of commands under a heading, up to the next one of its kind."""
    level = heading.partition(" ")[0]
    text = PAGE.partition(f"\n{heading}\n")[2]
    text = re.split(rf"^#{{2,{len(level)}}} ", text, flags=re.MULTILINE)[0]
    found = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert found
    return found


class Operator:
    """A shell with the verb `pleiad`, in a directory of its own; a server that it starts runs beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        programs = directory / "bin"
        programs.mkdir()
        warm_command.program(programs)
        self.variables = environment(PATH=f"{programs}:{os.environ['PATH']}", PLEIAD_PORT="0")
        self.served: Served | None = None

    def run(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=self.directory,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stderr}"
        return done.stdout

    def serve(self, command: str) -> Served:
        process = subprocess.Popen(
            ["bash", "-ec", f"exec {command}"],
            cwd=self.directory,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.served = Served(process)
        self.variables["PLEIAD_ENDPOINT"] = f"http://localhost:{self.served.port}"
        return self.served

    def stop(self) -> None:
        if self.served is not None:
            assert self.served.stop()[0] == 0
            self.served = None


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    found = Operator(tmp_path)
    yield found
    if found.served is not None:
        found.served.process.kill()
        found.served.process.communicate()


def test_the_commands_of_backup_and_restore_do_what_is_said(operator: Operator) -> None:
    here = str(operator.directory)
    for script in scripts("## Backup and restore"):
        for line in script.replace("/var/lib", f"{here}/lib").replace("/mnt", f"{here}/mnt").splitlines():
            names = sorted(path.name for path in Path(here, "mnt", "backups").glob("2*"))
            command = re.sub(r"\d{4}-\d\d-\d\dT\d{6}Z", names[-1] if names else "none", line)
            if command.startswith("pleiad serve"):
                operator.stop()
                served = operator.serve(command)
                client = CosmosClient(f"http://localhost:{served.port}", EMULATOR_KEY)
                database = client.create_database_if_not_exists("db")
                container = database.create_container_if_not_exists("c", PartitionKey("/pk"))
                if "restored" in command:
                    assert container.read_item("1", "a")["id"] == "1"
                container.upsert_item({"id": "1", "pk": "a"})
                continue
            if "--data" in command:
                operator.stop()
            operator.run(command)
    assert "restored" in command


def test_the_commands_for_new_keys_replace_one_under_a_running_server(operator: Operator) -> None:
    begin, replace = scripts("### New keys without a restart")
    make, _, serve = begin.rstrip().rpartition("\n")
    operator.run(make)
    assert (operator.directory / "keys.json").stat().st_mode & 0o077 == 0
    before = json.loads((operator.directory / "keys.json").read_text())
    assert len(before) == len(set(before.values())) == 4
    served = operator.serve(serve)
    endpoint = f"http://localhost:{served.port}"
    secondary = CosmosClient(endpoint, before["secondaryMasterKey"])
    secondary.create_database("db")
    operator.run(replace)
    after = json.loads((operator.directory / "keys.json").read_text())
    assert {name for name in after if after[name] != before[name]} == {"primaryMasterKey"}

    def is_refused() -> bool:
        assert [each["id"] for each in secondary.list_databases()] == ["db"], (
            "clients with the other key go on"
        )
        try:
            CosmosClient(endpoint, before["primaryMasterKey"])
        except CosmosHttpResponseError as error:
            return error.status_code == 401
        return False

    assert wait_until(is_refused)
    assert list(CosmosClient(endpoint, after["primaryMasterKey"]).list_databases())
    assert list(CosmosClient(endpoint, after["secondaryReadonlyMasterKey"]).list_databases())
    operator.stop()


def test_the_command_for_tls_serves_https_only(operator: Operator) -> None:
    (script,) = scripts("## TLS")
    operator.run(scripts("### New keys without a restart")[0].rpartition("pleiad serve")[0])
    ensure_certificate(operator.directory)
    served = operator.serve(
        script.replace("/etc/pleiad", str(operator.directory)).replace("0.0.0.0", "127.0.0.1")
    )
    assert served.get("/dbs")[0] == 403
    assert served.get("/_pleiad/ready")[0] == 200
    key = json.loads((operator.directory / "keys.json").read_text())["primaryMasterKey"]
    operator.variables |= {"PLEIAD_KEY": key, "SSL_CERT_FILE": str(operator.directory / "tls.crt")}
    operator.run(f"pleiad throughput --endpoint https://localhost:{served.port}")
    operator.stop()


def test_the_commands_for_postgresql_back_up_and_restore_an_account(
    operator: Operator, postgres_server: PostgresServer
) -> None:
    dsn = postgres_server.new_database()
    dump, base = scripts("### Sizing and connection settings")
    operator.variables["PATH"] = f"{postgres_server.programs()}:{operator.variables['PATH']}"
    places = {
        "postgresql://pleiad@db.example/pleiad": f"'{dsn}'",
        "postgresql://pleiad@db.example/restored": f"'{postgres_server.dsn('restored')}'",
        "postgresql://pleiad@db.example/postgres": f"'{postgres_server.dsn('postgres')}'",
        "db.example": str(postgres_server.directory),
    }
    with pleiad.start(store=dsn) as server:
        client = CosmosClient(server.endpoint, server.key)
        client.create_database("db").create_container("c", PartitionKey("/pk")).create_item(
            {"id": "1", "pk": "a"}
        )
        for script in (dump, base):
            for old, new in places.items():
                script = script.replace(old, new)
            told = operator.run(script)
            assert "all is whole" in told or "successfully verified" in told
    try:
        with pleiad.start(store=postgres_server.dsn("restored")) as server:
            container = (
                CosmosClient(server.endpoint, server.key).get_database_client("db").get_container_client("c")
            )
            assert container.read_item("1", "a")["id"] == "1"
    finally:
        with psycopg.connect(postgres_server.dsn("postgres"), autocommit=True) as connection:
            connection.execute("DROP DATABASE restored WITH (FORCE)")
        postgres_server.give_back(dsn)
