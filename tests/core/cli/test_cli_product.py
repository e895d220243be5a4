"""What stands between a command and its database: each obstacle is one sentence, and nothing is lost."""

import fcntl
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from cli_runner import Command, run_process
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings

from facho.core.env import Mode
from facho.core.product import BAD_CONFIGURATION
from facho.executions.processes import ProcessReport, save_process
from facho.hosts.models import Olt
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from servers.product_folder import give_database


@pytest.mark.parametrize("command", [("olt", "list"), ("olt", "add", "centro", "127.0.0.1"), ("traps", "on")])
def test_in_the_wrong_folder_a_command_names_what_it_looked_for_and_makes_nothing(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "FACHO_DATA_DIR")}

    done = run_process(environ, *command, folder=tmp_path)

    assert (done.status, done.out) == (BAD_CONFIGURATION, "")
    assert done.err.splitlines() == [
        f"facho: There is no database {tmp_path}/facho-data/facho.sqlite3; the data folder is {tmp_path}/facho-data"
        " (FACHO_DATA_DIR is not set).",
        "facho: Nothing was created. Use the settings of the service; for a new product, run `facho run`.",
    ]
    assert list(tmp_path.iterdir()) == []


def test_first_starts_at_the_same_time_do_not_trip_over_each_other(product_environ: dict[str, str]) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "facho.core.cli.main", "migrate"],
            env=product_environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]

    results = [(*process.communicate(timeout=300), process.returncode) for process in processes]

    folder = Path(product_environ["FACHO_DATA_DIR"])
    assert results == [(f"The database fits this version, {version('facho')}.\n".encode(), b"", 0)] * 3
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "encryption-keys").stat().st_mode & 0o777 == 0o600


def test_a_command_of_a_newer_version_changes_nothing_under_a_running_engine(product_environ: dict[str, str]) -> None:
    folder = Path(product_environ["FACHO_DATA_DIR"])
    folder.mkdir(mode=0o700)
    give_database(folder)
    with closing(sqlite3.connect(folder / "facho.sqlite3")) as database:
        database.execute("DELETE FROM django_migrations WHERE app = 'traps' AND name = '0002_unsettled'")
        database.commit()
    with (folder / "engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        done = [
            run_process({**product_environ, "DATABASE_URL": ""}, *words) for words in (["olt", "list"], ["migrate"])
        ]

    assert [(each.status, each.err.count("\n")) for each in done] == [(1, 1)] * 2
    assert "Facho still runs with an older version" in done[0].err
    with closing(sqlite3.connect(folder / "facho.sqlite3")) as database:
        names = {name for (name,) in database.execute("SELECT name FROM django_migrations WHERE app = 'traps'")}
    assert "0002_unsettled" not in names


def test_a_data_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    obstacle = tmp_path / "file"
    obstacle.write_text("not a folder")

    done = run_process({**os.environ, "FACHO_DATA_DIR": str(obstacle / "data")}, "run")

    assert (done.status, done.out) == (BAD_CONFIGURATION, "")
    assert done.err == (
        f"facho: The data folder cannot be used: {obstacle}/data: Not a directory."
        " Set FACHO_DATA_DIR to a folder that you may write.\n"
    )
    assert obstacle.read_text() == "not a folder"


def test_bad_settings_are_all_named_before_anything_is_made(tmp_path: Path) -> None:
    bad = {"FACHO_MODE": "cluster", "FACHO_POLLERS": "many", "FACHO_DATA_DIR": str(tmp_path / "data")}

    done = run_process({**os.environ, **bad}, "olt", "list")

    assert done.status == BAD_CONFIGURATION
    assert done.err.splitlines() == [
        "facho: FACHO_MODE has an invalid value: set it to embedded or distributed.",
        "facho: FACHO_POLLERS has an invalid value: set it to a whole number from 1.",
    ]
    assert not (tmp_path / "data").exists()


def test_the_distributed_mode_says_all_that_it_misses(tmp_path: Path) -> None:
    environ = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}

    done = run_process({**environ, "FACHO_MODE": "distributed", "FACHO_DATA_DIR": str(tmp_path / "data")}, "scheduler")

    assert done.status == BAD_CONFIGURATION
    assert "DATABASE_URL" in done.err
    assert "REDIS_URL" in done.err


def test_a_password_in_a_bad_database_url_is_not_repeated(tmp_path: Path) -> None:
    environ = {"DATABASE_URL": "mysql://facho:canary-7f3a@db/facho", "FACHO_DATA_DIR": str(tmp_path / "data")}

    done = run_process({**os.environ, **environ}, "olt", "list")

    assert done.status == BAD_CONFIGURATION
    assert "DATABASE_URL" in done.err
    assert "canary" not in done.err


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "notes.sqlite3"
    file.write_text("shopping list " * 100)
    environ = {"DATABASE_URL": f"sqlite:///{file}", "FACHO_DATA_DIR": str(tmp_path / "data")}

    done = run_process({**os.environ, **environ}, "olt", "list")

    assert (done.status, done.out) == (1, "")
    assert done.err == "facho: The database refused: file is not a database. Run `facho doctor` for details.\n"
    assert file.read_text() == "shopping list " * 100


def test_a_database_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    environ = {
        "DATABASE_URL": "postgresql://facho:canary-7f3a@127.0.0.1:1/facho",
        "FACHO_DATA_DIR": str(tmp_path / "data"),
    }

    done = run_process({**os.environ, **environ}, "olt", "list")

    assert done.status == 1
    assert done.err.startswith("facho: The database refused: connection failed")
    assert done.err.count("\n") == 1
    assert "canary" not in done.err


@pytest.mark.django_db
def test_a_database_of_a_newer_version_is_refused(facho: Command) -> None:
    MigrationRecorder(connection).record_applied("hosts", "0999_from_the_future")

    done = facho("olt", "add", "centro", "127.0.0.1", "--community-stdin", stdin=b"public\n")

    assert (done.status, done.out) == (BAD_CONFIGURATION, "")
    assert done.err == (
        "facho: The database was made by a newer version of Facho (hosts.0999_from_the_future),"
        f" this is {version('facho')}: start the newer version, or restore a backup.\n"
    )
    assert not Olt.objects.exists()


@pytest.mark.django_db
def test_the_distributed_mode_never_migrates_by_itself(
    facho: Command, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FACHO_MODE = Mode.DISTRIBUTED
    settings.REDIS_URL = "redis://127.0.0.1:1"
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    MigrationRecorder(connection).record_unapplied("traps", "0002_unsettled")

    done = facho("olt", "list")

    assert done.status == 1
    assert "traps.0002_unsettled" in done.err
    assert "run `facho migrate`" in done.err


@pytest.mark.django_db
def test_nothing_is_migrated_beside_processes_of_another_version(
    facho: Command, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FACHO_MODE = Mode.DISTRIBUTED
    settings.REDIS_URL = "redis://127.0.0.1:1"
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    now = timezone.now()
    save_process(ProcessReport("beat-worker@old", "0.0.9", now, now))
    save_process(ProcessReport("web@new", version("facho"), now, now))

    done = facho("migrate")

    assert (done.status, done.out) == (1, "")
    assert "Processes of another version still run: beat-worker@old 0.0.9. Stop them first" in done.err


@pytest.mark.django_db
def test_a_secret_written_with_a_lost_key_keeps_nobody_from_asking_for_a_run(facho: Command) -> None:
    Olt.objects.create(name="centro", host="127.0.0.1", address="127.0.0.1", port=1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE hosts_olt SET community = 'written with a lost key'")
    workflow = Workflow.objects.create(olt_id=Olt.objects.values_list("id", flat=True).get())
    job = SnmpJob.objects.create(name="job", slug="job", query_type="get")
    node_id = WorkflowNode.objects.create(workflow=workflow, job=job, interval_seconds=60).id

    done = facho("node", "run", str(node_id))

    assert (done.status, done.err) == (0, "")
    assert "centro" in facho("olt", "list").out


@pytest.mark.parametrize("command", ["run", "demo"])
def test_a_setting_that_does_not_exist_is_reported_at_the_start(product_environ: dict[str, str], command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_process({**product_environ, "FACHO_POLLRS": "3"}, command, "--bind", address)

    reported, end = done.err.splitlines()
    assert reported == "facho: There is no setting FACHO_POLLRS. Did you mean FACHO_POLLERS?"
    assert "Cannot listen" in end
