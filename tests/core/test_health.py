"""What a supervisor asks: is the process alive, and can it serve pages."""

import io
import logging

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client


def test_a_process_is_alive_whatever_its_database_does() -> None:
    assert Client().get("/livez").json() == {"status": "alive"}


@pytest.mark.django_db
def test_a_process_whose_database_fits_is_ready_although_no_engine_runs() -> None:
    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


@pytest.mark.django_db
def test_a_missing_migration_is_named() -> None:
    MigrationRecorder(connection).record_unapplied("hosts", "0001_initial")

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["reason"]) == (503, "migration hosts.0001_initial is not applied")


@pytest.mark.django_db
def test_a_newer_database_is_named() -> None:
    MigrationRecorder(connection).record_applied("hosts", "9999_future")

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["reason"]) == (
        503,
        "the database is from a newer version (hosts.9999_future)",
    )


@pytest.mark.django_db
def test_a_silent_database_is_said_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DatabaseError("connection to 10.0.0.9 as facho failed")

    monkeypatch.setattr("facho.core.health.read_database_version", fail)

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()["reason"]) == (503, "the database does not answer")


@pytest.mark.parametrize("path", ["/livez", "/login/", "/api/v1/olts/", "/nothing"])
@pytest.mark.django_db
def test_every_answer_lets_only_our_own_scripts_run(path: str) -> None:
    assert "script-src 'self';" in Client().get(path).headers["Content-Security-Policy"]


def test_a_name_that_nobody_allowed_is_one_line_of_the_log() -> None:
    handler = next(each for each in logging.getLogger("django.security").handlers if each.name == "strangers")
    assert isinstance(handler, logging.StreamHandler)
    log = io.StringIO()
    usual = handler.setStream(log)

    answer = Client().get("/livez", headers={"host": "elsewhere.example"})
    handler.setStream(usual)

    assert answer.status_code == 400
    assert log.getvalue().count("\n") == 1
    assert "Invalid HTTP_HOST header: 'elsewhere.example'" in log.getvalue()
