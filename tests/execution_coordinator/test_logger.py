"""The coordinator's log is kept twice, in a table and in a file, and neither needs the other."""

import copy
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.utils import translation
from pytest_django import Settings

from facho.execution_coordinator.log_handlers import LogFile, LogTable
from facho.execution_coordinator.logger import coordinator_logger, describe
from facho.execution_coordinator.models import CoordinatorLog, EventType, Level
from facho.hosts.models import Olt
from factories import make_olt

MEGABYTE = 1024 * 1024
FAILED = "coordinator.log_failed"
# Not those of pytest, which listens too.
PRODUCT: list[Any] = [
    handler for handler in logging.getLogger("coordinator").handlers if isinstance(handler, (LogTable, LogFile))
]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def file_handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogFile]:
    """The product's handlers, as its settings make them, on a folder of the test's own."""
    table, file = map(copy.copy, PRODUCT)
    file.baseFilename, file.stream = str(tmp_path / "logs/coordinator/main.log"), None
    monkeypatch.setattr(logging.getLogger("coordinator"), "handlers", [table, file])
    yield file
    with suppress(OSError):  # what a full disk did not take is lost
        file.close()


def lines(handler: LogFile) -> list[str]:
    return Path(handler.baseFilename).read_text(encoding="utf-8").splitlines()


def reported(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if FAILED in record.getMessage()]


def break_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE coordinator_logs RENAME TO coordinator_logs_lost")


def mend_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE coordinator_logs_lost RENAME TO coordinator_logs")


def test_an_event_is_a_row_and_a_line_and_the_file_rotates(
    file_handler: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-12"""
    assert Path(PRODUCT[1].baseFilename) == django_settings.DATA_FOLDER.path / "logs/coordinator/main.log"
    assert (file_handler.maxBytes, file_handler.backupCount) == (10 * MEGABYTE, 5)
    monkeypatch.setattr(file_handler, "maxBytes", 500)

    for number in range(100):
        coordinator_logger.log_emergency_replan(None, f"reason {number}")

    folder = Path(file_handler.baseFilename).parent
    assert sorted(path.name for path in folder.iterdir()) == ["main.log", *(f"main.log.{n}" for n in range(1, 6))]
    assert all(path.stat().st_size <= 500 for path in folder.iterdir())
    assert lines(file_handler)[-1].endswith("reason 99")
    assert CoordinatorLog.objects.count() == 100


def test_the_file_has_the_lines_of_the_specification(file_handler: LogFile, settings: Settings) -> None:
    """S1-23, D20: and the offset of their times, by which they fit those of other logs."""
    settings.LANGUAGE_CODE = "es"
    settings.TIME_ZONE = "America/Bogota"

    coordinator_logger.log_event(EventType.TASK_REMOVED, level=Level.WARNING, task_type="GET Descripción")
    coordinator_logger.log_quota_violation(None, "discovery", "HIGH")
    coordinator_logger.log_event(EventType.OLT_BACK, name="quota_check")

    rows = list(CoordinatorLog.objects.order_by("id"))
    times = [f"{row.timestamp.astimezone(ZoneInfo('America/Bogota')):%Y-%m-%d %H:%M:%S%z}" for row in rows]
    assert lines(file_handler) == [
        f"{times[0]} [WARNING] coordinator.coordinator_loop: Tarea 'GET Descripción' removida del plan",
        f"{times[1]} [CRITICAL] coordinator.coordinator_loop: Violación de cuota [HIGH]: discovery",
        f"{times[2]} [INFO] coordinator.quota_check: La OLT responde de nuevo",
    ]


def test_a_line_names_its_olt(file_handler: LogFile) -> None:
    olt = make_olt()

    coordinator_logger.log_event(EventType.OLT_BACK, olt_id=olt.pk)

    assert lines(file_handler)[0].endswith(f"coordinator.coordinator_loop: The OLT answers again ({olt.name})")
    assert CoordinatorLog.objects.get().message == "The OLT answers again"


def test_the_specification_s_methods_log_their_events() -> None:
    """S1-10, S1-13"""
    olt = make_olt()

    coordinator_logger.log_task_added("GET Descripción", olt=olt)
    coordinator_logger.log_quota_violation(olt, "discovery", "CRITICAL")
    coordinator_logger.log_emergency_replan(olt, "Múltiples fallos detectados")
    coordinator_logger.log_emergency_replan(None, "everything")

    columns = CoordinatorLog.objects.order_by("id").values_list("olt", "event_type", "level", "message", "details")
    assert list(columns) == [
        (
            olt.pk,
            "TASK_ADDED",
            "INFO",
            "Task 'GET Descripción' added to the plan",
            {"task_type": "GET Descripción", "task": "GET Descripción"},
        ),
        (
            olt.pk,
            "QUOTA_VIOLATION",
            "CRITICAL",
            "Quota violation [CRITICAL]: discovery",
            {"task_type": "discovery", "severity": "CRITICAL"},
        ),
        (
            olt.pk,
            "EMERGENCY_REPLAN",
            "WARNING",
            "Emergency replan: Múltiples fallos detectados",
            {"reason": "Múltiples fallos detectados"},
        ),
        (None, "EMERGENCY_REPLAN", "WARNING", "Emergency replan: everything", {"reason": "everything"}),
    ]


def test_the_file_goes_on_without_the_table_and_the_table_without_the_file(
    file_handler: LogFile, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S1-32"""
    olt = make_olt()
    break_table()
    coordinator_logger.log_task_added("without a table", olt=olt)
    mend_table()
    file_handler.close()
    (tmp_path / "logs").rename(tmp_path / "kept")
    (tmp_path / "logs").write_text("a file where the folder should be")
    coordinator_logger.log_task_added("without a folder", olt=olt)
    file_handler.baseFilename = "/dev/full"
    coordinator_logger.log_task_added("without space", olt=olt)

    (line,) = (tmp_path / "kept/coordinator/main.log").read_text().splitlines()
    assert "without a table" in line
    assert list(CoordinatorLog.objects.order_by("id").values_list("details__task_type", flat=True)) == [
        "without a folder",
        "without space",
    ]
    assert [text.split()[1] for text in reported(caplog)] == ["to=coordinator_table", "to=coordinator_file"]


def test_a_failing_row_leaves_the_caller_s_transaction_alone() -> None:
    with transaction.atomic():
        before = make_olt()
        break_table()
        coordinator_logger.log_task_added("discovery", olt=before)
        after = make_olt()
    mend_table()

    assert set(Olt.objects.all()) == {before, after}


def test_a_failure_is_reported_once_until_it_is_over(file_handler: LogFile, caplog: pytest.LogCaptureFixture) -> None:
    path = file_handler.baseFilename
    for place in ("/dev/full", path, "/dev/full"):
        with suppress(OSError):
            file_handler.close()
        file_handler.baseFilename = place
        for _ in range(3):
            coordinator_logger.log_emergency_replan(None, "test")

    assert reported(caplog) == [f"{FAILED} to=coordinator_file error=[Errno 28] No space left on device"] * 2
    assert len(Path(path).read_text().splitlines()) == 3
    assert CoordinatorLog.objects.count() == 9


def test_a_process_that_logs_nothing_makes_no_folder(product_environ: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", "import django; django.setup()"], env=product_environ, check=True)

    assert not (Path(product_environ["FACHO_DATA_DIR"]) / "logs").exists()


@pytest.mark.django_db(transaction=True)
def test_an_olt_that_was_deleted_meanwhile_has_a_line_and_fails_nobody(file_handler: LogFile) -> None:
    gone = make_olt()
    gone_id = gone.pk
    gone.delete()

    with transaction.atomic():
        kept = make_olt()
        coordinator_logger.log_event(EventType.OLT_DISABLED, olt_id=gone_id)

    assert Olt.objects.get() == kept
    assert not CoordinatorLog.objects.exists()
    assert lines(file_handler)[0].endswith(f"(OLT {gone_id})")


def test_hostile_values_are_one_row_and_one_line(file_handler: LogFile) -> None:
    olt = make_olt()
    Olt.objects.filter(pk=olt.pk).update(name="north\n2030-01-01 00:00:00 [CRITICAL] coordinator.x: forged")
    hostile = "a\r\n2030-01-01 [INFO] b\x1b[31m\x00\u2028\u202e\ud800 %s %(x)s {0} <script>" + "x" * 10_000

    coordinator_logger.log_emergency_replan(olt, hostile)

    (line,) = lines(file_handler)
    row = CoordinatorLog.objects.get()
    assert row.details["reason"].isprintable()
    assert len(row.details["reason"]) == 200
    assert line.isprintable()
    assert row.message == f"Emergency replan: {row.details['reason']}"


def test_the_message_has_the_language_of_the_installation_and_its_reader_another(settings: Settings) -> None:
    settings.LANGUAGE_CODE = "es"

    with translation.override("en"):
        coordinator_logger.log_event(EventType.TASK_ADDED)
        row = CoordinatorLog.objects.get()
        assert describe(row.event_type, row.details) == "Task added"
    assert row.message == "Tarea agregada"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_lost_its_connection_does_not_end_as_if_it_had_not(file_handler: LogFile) -> None:
    @transaction.atomic
    def add_olt_and_log() -> None:
        make_olt()
        coordinator_logger.log_task_added("discovery")

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION die() RETURNS trigger AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid());"
            " RETURN NEW; END $$ LANGUAGE plpgsql"
        )
        cursor.execute("CREATE TRIGGER die BEFORE INSERT ON coordinator_logs FOR EACH ROW EXECUTE FUNCTION die()")

    try:
        with pytest.raises(TransactionManagementError):
            add_olt_and_log()
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION die() CASCADE")

    assert not Olt.objects.exists()
    assert "discovery" in lines(file_handler)[0]
