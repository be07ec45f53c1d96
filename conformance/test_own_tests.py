"""The tests inside a client's package: how their output is read, and what the page says of them."""

from pathlib import Path

import pytest

from conformance import own_tests
from conformance.own_tests import Outcome, Verdict
from conformance.rust import suite

OUTCOMES = (
    Outcome("a", Verdict.PASSED),
    Outcome("b", Verdict.FAILED, "boom"),
    Outcome("c", Verdict.SKIPPED),
)

PRINTED = """
running 3 tests
test emulator_tests::items::works ... ok
test emulator_tests::items::fails ... FAILED
test emulator_tests::other::waits ... ignored, requires another

failures:

---- emulator_tests::items::fails stdout ----
Error: it
  broke

failures:
    emulator_tests::items::fails

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
"""


def test_the_verdicts_of_a_rust_target_are_read_with_what_a_failure_said() -> None:
    binary = suite.TestBinary(suite.DRIVER, "emulator", Path("emulator"))
    assert suite.outcomes_of(binary, PRINTED) == [
        Outcome("driver items::works", Verdict.PASSED),
        Outcome("driver items::fails", Verdict.FAILED, "Error: it broke"),
        Outcome("driver other::waits", Verdict.SKIPPED),
    ]


@pytest.mark.parametrize(
    ("reasons", "code", "said"),
    [
        ({"b": "It is so."}, 0, "1 passed, 1 failed, 1 skipped (50.0 % of those run)"),
        ({}, 1, "b: fails without a reason"),
        ({"a": "It was so.", "b": "It is so."}, 1, "a: passes, its reason can go"),
    ],
)
def test_every_failure_needs_a_reason_and_every_reason_a_failure(
    reasons: dict[str, str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert own_tests.told(OUTCOMES, reasons) == code
    assert said in capsys.readouterr().out


def test_a_part_of_the_page_is_replaced_and_the_rest_is_kept() -> None:
    part = own_tests.section("The client's own tests", "A lead.", OUTCOMES, {"b": "It is so."})
    page = own_tests.written("# Page\n\n## The client's own tests\n\nOld.\n\n## Next\n\nKept.\n", part)
    assert page.startswith("# Page\n\n## The client's own tests\n\nA lead.\n\n1 passed, 1 failed")
    assert page.endswith("| `b` | It is so. |\n\n## Next\n\nKept.\n")
    with pytest.raises(ValueError, match="no part"):
        own_tests.written("# Page\n", part)
