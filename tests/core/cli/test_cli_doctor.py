"""`facho doctor`: what it prints, and how it ends."""

import json
import os
from pathlib import Path

import pytest
from cli_runner import Command, run_process


@pytest.mark.django_db
def test_each_finding_is_a_line_and_warnings_are_no_failure(facho: Command) -> None:
    done = facho("doctor")

    verdicts = [line.split()[0] for line in done.out.splitlines()]
    assert (done.status, done.err) == (0, "")
    assert set(verdicts) <= {"ok", "warning"}
    assert len(verdicts) >= 7


@pytest.mark.django_db
def test_findings_can_be_read_by_a_program(facho: Command) -> None:
    findings = json.loads(facho("doctor", "--json").out)

    assert {"verdict", "name", "text"} == set(findings[0])
    assert "database" in {finding["name"] for finding in findings}


def test_errors_make_it_fail_and_nothing_is_created(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}

    done = run_process({**environ, "FACHO_MODE": "cluster", "FACHO_DATA_DIR": str(tmp_path / "data")}, "doctor")

    assert (done.status, done.err) == (1, "")
    assert "FACHO_MODE" in done.out
    assert not (tmp_path / "data").exists()


def test_a_database_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    environ = {"DATABASE_URL": "postgresql://facho:canary-7f3a@127.0.0.1:1/facho", "FACHO_DATA_DIR": str(tmp_path)}

    done = run_process({**os.environ, **environ}, "doctor")

    assert done.status == 1
    assert "error    database" in done.out
    assert "canary" not in done.out


def test_a_database_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "gone"
    environ = {"DATABASE_URL": f"sqlite:///{missing}/facho.sqlite3", "FACHO_DATA_DIR": str(tmp_path / "data")}

    done = run_process({**os.environ, **environ, "FACHO_LANGUAGE": "en"}, "doctor")

    assert done.status == 1
    assert f"error    database     There is no folder {missing}" in done.out
