"""The groups, the reasons and the report of the conformance run, on small made-up findings."""

import json
from pathlib import Path

import pytest

from conformance import reasons, report, results
from conformance.results import Outcome, RunResults, TestResult
from conformance.selection import groups_of


def result(test_id: str, outcome: Outcome = Outcome.PASSED, message: str = "") -> TestResult:
    return TestResult(test_id, ("foundation",), outcome, message, 0.1)


def table(tmp_path: Path, text: str, omitted: str = "") -> reasons.Reasons:
    path, left_out = tmp_path / "reasons.toml", tmp_path / "left_out.toml"
    left_out.write_text(omitted, encoding="utf-8")
    kinds = '[kinds."needs batch"]\nmeaning = "m"\n[kinds."defect"]\nmeaning = "d"\n'
    path.write_text(kinds + text, encoding="utf-8")
    return reasons.load(path, left_out)


def test_a_test_is_in_every_group_that_its_marker_or_its_file_names() -> None:
    assert groups_of("test_read_items.py", "test_x", ["cosmosEmulator"]) == ("foundation", "query")
    assert groups_of("test_crud.py", "test_sproc_crud", ["cosmosLong"]) == ("foundation", "scripts")
    assert groups_of("test_partition_split_query.py", "test_x", ["cosmosSplit"]) == ("split",)
    assert groups_of("routing/test_range.py", "test_x", []) == ("client",)


def test_no_marker_leaves_a_test_out() -> None:
    assert groups_of("test_crud.py", "test_x", ["cosmosCircuitBreaker"]) == ("foundation",)
    assert groups_of("test_other.py", "test_x", ["cosmosMultiRegion"]) == ("client",)


def test_a_test_is_left_out_by_its_own_name_only(tmp_path: Path) -> None:
    entry = '[[left_out]]\ntests = ["a.py::T::t1"]\nkind = "defect"\nreason = "A second region."\n'
    known = table(tmp_path, "", entry)
    assert known.left_out("a.py::T::t1") is not None
    assert known.left_out("a.py::T::t10") is None
    with pytest.raises(reasons.ReasonsInvalidError, match="by its own name"):
        table(tmp_path, "", entry.replace("t1", "t*"))


def test_a_reason_matches_by_id_and_by_error_and_takes_brackets_literally(tmp_path: Path) -> None:
    entry = (
        '[[known]]\ntests = ["test_a.py::T::test_*[x]"]\nerror = "405"\nkind = "needs batch"\nreason = "r"\n'
    )
    known = table(tmp_path, entry)
    assert known.of(result("test_a.py::T::test_b[x]", Outcome.FAILED, "status 405")) is not None
    assert known.of(result("test_a.py::T::test_b[x]", Outcome.FAILED, "status 404")) is None
    assert known.of(result("test_a.py::T::test_b[y]", Outcome.FAILED, "status 405")) is None


def test_a_reason_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(reasons.ReasonsInvalidError, match="unknown kind"):
        table(tmp_path, '[[known]]\ntests = ["*"]\nkind = "whatever"\nreason = "r"\n')


def test_the_reasons_of_the_project_are_valid() -> None:
    assert reasons.load().kinds


def test_a_failure_without_a_reason_is_loud_and_one_left_out_is_a_failure_in_the_second_share(
    tmp_path: Path,
) -> None:
    omitted = '[[left_out]]\ntests = ["c.py::t5"]\nkind = "defect"\nreason = "A second region."\n'
    entry = '[[known]]\ntests = ["b.py::*"]\nkind = "needs batch"\nreason = "No batch."\n'
    known = table(tmp_path, entry, omitted)
    tests = (
        result("a.py::t1"),
        result("a.py::t2", Outcome.FAILED, "boom"),
        result("b.py::t3", Outcome.FAILED, "405"),
        result("b.py::t4", Outcome.SKIPPED),
        result("c.py::t5", Outcome.LEFT_OUT),
    )
    run = report.Run("1.0", report.Store.SQLITE, "command", RunResults(tests), known)
    text = report.summary(run)
    counts = "foundation: 1 passed, 2 failed, 1 skipped, 1 left out (33.3 % of those run, 25.0 % of all)"
    assert counts in text
    assert "NO REASON GIVEN for 1 failed tests" in text
    assert [test.id for test in report.unexplained(run)] == ["a.py::t2"]
    page = report.page(run, "# Head")
    assert page.startswith("# Head\n")
    assert "#### needs batch (1)" in page
    assert "A second region. (defect)\n\n- `c.py::t5`" in page


def test_a_reason_whose_tests_all_pass_is_reported_as_outlived(tmp_path: Path) -> None:
    known = table(tmp_path, '[[known]]\ntests = ["a.py::*"]\nkind = "defect"\nreason = "r"\n')
    assert known.outlived([result("a.py::t1"), result("b.py::t2", Outcome.FAILED)]) == list(known.entries)
    assert known.outlived([result("a.py::t1", Outcome.FAILED)]) == []


def test_results_of_a_killed_run_are_read_up_to_the_line_that_was_cut(tmp_path: Path) -> None:
    line = {
        "id": "a.py::t",
        "groups": [],
        "outcome": "passed",
        "message": "",
        "duration_s": 1,
    }
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(line) + '\n{"event": "te', encoding="utf-8")
    assert [test.id for test in results.read(path).tests] == ["a.py::t"]


def test_the_page_keeps_the_other_stores_record_and_names_what_differs(tmp_path: Path) -> None:
    known = table(tmp_path, '[[known]]\ntests = ["a.py::*"]\nkind = "defect"\nreason = "It is so."\n')

    def run(store: report.Store, *tests: TestResult) -> report.Run:
        return report.Run("1.0", store, f"command of {store.value}", RunResults(tests), known)

    failed = result("a.py::t1", Outcome.FAILED, "boom"), result("a.py::t2", Outcome.FAILED, "boom")
    first = report.page(
        run(report.Store.SQLITE, *failed, result("a.py::t3")), "# Head\n\n## By hand\n\nKept.\n"
    )
    other = run(report.Store.POSTGRES, failed[0], result("a.py::t2"), result("a.py::t3", Outcome.FAILED))
    both = report.page(other, first)
    assert both.startswith(first.rstrip())
    assert "`a.py::t2` fails on SQLite only." in both
    assert "`a.py::t3` fails on PostgreSQL only: It is so." in both
    assert "`a.py::t1`" not in both.split("on PostgreSQL\n")[1]
    again = report.page(run(report.Store.SQLITE, *failed), both)
    assert again.startswith("# Head\n\n## By hand\n\nKept.\n\n## The official")
    assert again.count("command of sqlite") == 1
    assert "command of postgres" in again
    same = run(report.Store.POSTGRES, *failed)
    assert "same result on both stores" in report.page(same, again)
