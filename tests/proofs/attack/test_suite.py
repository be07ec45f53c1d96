"""The attack suite itself: it knows every route, its list is long enough, and it says what it finds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NoReturn

from attack import probes
from attack.classes.stall import BRIEF_SHOTS
from attack.fuzzing.frames import GOOD_FRAMES, FrameMaker
from attack.fuzzing.queries import QueryMaker
from attack.fuzzing.requests import RequestMaker
from attack.hostile.shots import all_shots
from attack.report import Outcome, save, table
from attack.settings import FULL
from attack.target import MASTER
from attack.watch import Reads
from pleiad.account.keys import EMULATOR_KEY, AccountKeys, KeysInForce
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.http.host_names import HostNames
from pleiad.heads.nosql.account import AccountOperations
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.routes import routes
from pleiad.heads.nosql.users import UserOperations
from pleiad.limits import Limits
from pleiad.wire.rntbd.frame import read_request
from pleiad.wire.rntbd.request_tokens import RequestToken


def test_the_list_of_hostile_requests_has_more_than_sixty_of_every_family() -> None:
    shots = all_shots()
    names = Counter(shot.name for shot in shots)
    assert len(shots) > 60
    assert max(names.values()) == 1
    assert {shot.method for shot in shots} == {"PATCH", "POST"}
    assert {"docs", "sprocs", "udfs", "dbs", "offers"} <= {
        part for shot in shots for part in shot.segments[::2]
    }


def test_the_short_list_is_a_part_of_the_long_one() -> None:
    assert set(BRIEF_SHOTS) <= {shot.name for shot in all_shots()}


def test_hostile_texts_are_as_long_as_the_service_takes_and_one_is_longer() -> None:
    lengths = [
        len(shot.body["query"])
        for shot in all_shots()
        if isinstance(shot.body, dict) and "query" in shot.body
    ]
    assert sum(200_000 < length <= 262_144 for length in lengths) > 20
    assert max(lengths) > 262_144


def test_one_seed_is_one_request_and_one_query() -> None:
    assert str(RequestMaker(7).make()) == str(RequestMaker(7).make())
    assert len({str(RequestMaker(seed).make()) for seed in range(50)}) == 50
    assert QueryMaker(7).make() == QueryMaker(7).make()


def test_one_seed_is_one_handful_of_frames_that_a_server_reads() -> None:
    assert str(FrameMaker(7, MASTER, b"/path").make()) == str(FrameMaker(7, MASTER, b"/path").make())
    operations = set()
    for seed in range(200):
        for number, data in FrameMaker(seed, MASTER, b"/path").make().frames.items():
            length = int.from_bytes(data[:4], "little")
            frame = read_request(data[:length], data[length + 4 :])
            assert frame.tokens[RequestToken.TRANSPORT_REQUEST_ID] == number
            operations.add(frame.operation_type)
    assert operations >= {int(operation) for _, operation, _, _ in GOOD_FRAMES}


def test_a_stall_counts_as_all_the_reads_it_held_up() -> None:
    reads = Reads()
    for _ in range(900):
        reads.note(began_at=0.0, wall=0.001, own=0.001, ok=True)
    assert reads.p99_ms() == 1.0
    reads.note(began_at=9.0, wall=0.9, own=0.5, ok=True)
    assert reads.count == 901
    assert reads.longest_ms() == 500.0
    assert reads.longest_ms(wall=True) == 900.0
    assert reads.p99_ms() > 300.0
    assert [stall.began_at for stall in reads.stalls] == [9.0]


def test_what_broke_is_in_the_table_and_in_the_file(tmp_path: Path) -> None:
    outcome = Outcome(name="rights", store="sqlite")
    outcome.answered(500, "GET /dbs")
    outcome.trespass("somebody read something")
    assert "500: GET /dbs" in table([outcome])
    assert "somebody read something" in table([outcome])
    save([outcome], tmp_path / "attack.json", FULL)
    saved = json.loads((tmp_path / "attack.json").read_text())
    assert saved["outcomes"][0]["trespasses"] == 1
    assert saved["outcomes"][0]["errors_500"] == 1


def _nobody() -> NoReturn:
    raise AssertionError("nobody asks for them here")


def _routes() -> set[tuple[str, str]]:
    """What the server has a route for, with a star where a name stands."""
    keys = KeysInForce(AccountKeys(EMULATOR_KEY))
    table = {
        **routes(
            UserOperations(Authenticator(keys, Limits())),
            AccountOperations(HostNames("127.0.0.1")),
            direct=True,
        ),
        **AdminOperations(keys, True, lambda: 0, _nobody, _nobody).routes(),
    }
    return {(path, method) for path, methods in table.items() for method in methods}


def test_no_route_of_the_server_is_left_out_of_the_probes() -> None:
    def shape(segments: list[str]) -> str:
        return "/".join(part if place % 2 == 0 else "*" for place, part in enumerate(segments))

    probed = {(shape(probe.segments), probe.method) for probe in probes.probes("x")}
    # What everybody may ask is not a question of rights.
    assert _routes() - probed <= {("_pleiad/*", "GET"), ("metrics", "GET"), ("probe", "GET")}
