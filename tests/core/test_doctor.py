"""The doctor: one finding for each part, and nothing changed by looking."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings
from stranger import closed_to_us

from facho.core.cli.doctor import DoctorFinding, Verdict, examine
from facho.core.data_folder import STAGE_PREFIX, DataFolder, EngineRuns, engine_lock, is_engine_alive, prepare
from facho.core.env import Mode, read_environment
from facho.hosts.models import Olt
from facho.polling.domain.lease import all_shards
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.store import renew_leadership

MEBIBYTE = 1024**2


class DiskUsage(NamedTuple):
    """What shutil tells of a disk."""

    total: int
    used: int
    free: int


@pytest.fixture
def folder(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    """A data folder of its own, ready for use; a lease in doubt is looked at once more, at once."""
    monkeypatch.setattr("facho.core.cli.doctor.WATCH_SECONDS", 0.0)
    monkeypatch.setattr("facho.core.cli.doctor.WATCH_PAUSE_SECONDS", 0.0)
    found = DataFolder.of(read_environment({"FACHO_DATA_DIR": str(tmp_path / "data")}))
    prepare(found, mode=Mode.EMBEDDED)
    settings.DATA_FOLDER = found
    return found


@pytest.fixture
def running_engine(folder: DataFolder) -> Iterator[None]:
    """The lock that an engine holds while it lives."""
    with folder.engine_lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def findings(now: datetime | None = None) -> dict[str, DoctorFinding]:
    return {finding.name: finding for finding in examine(now or timezone.now())}


def lead(renewed_at: datetime) -> None:
    LeaderLease.objects.create(name="scheduler", owner="engine/1", counter=1, renewed_at=renewed_at)


@pytest.mark.django_db
def test_a_sound_installation_that_runs_is_all_ok(folder: DataFolder, running_engine: None) -> None:
    lead(timezone.now())

    found = findings()

    assert list(found) == [
        *("settings", "decoder", "data-folder", "disk"),
        *(["integrity"] if connection.vendor == "sqlite" else []),
        *("database", "migrations", "credentials", "engine", "leader", "clock"),
    ]
    assert {finding.verdict for finding in found.values()} == {Verdict.OK}


@pytest.mark.django_db
def test_a_missing_decoder_is_a_warning_with_what_to_install(
    folder: DataFolder, running_engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = findings()["decoder"]
    monkeypatch.setattr("facho.polling.snmp.pages.is_compiled", lambda: False)

    missing = findings()["decoder"]

    assert compiled.verdict is Verdict.OK
    assert (missing.verdict, "install gcc and python3-dev" in missing.text) == (Verdict.WARNING, True)


@pytest.mark.django_db
def test_a_leader_that_starts_nothing_is_an_error_with_its_reason(folder: DataFolder, running_engine: None) -> None:
    lead(timezone.now())
    LeaderLease.objects.update(standstill="disk_full")

    found = findings()["leader"]

    assert found.verdict is Verdict.ERROR
    assert "The disk of the database is full. Free some space" in found.text


@pytest.mark.django_db
def test_an_engine_of_several_that_does_not_lead_is_an_error_with_its_number(
    folder: DataFolder, running_engine: None, settings: Settings
) -> None:
    settings.FACHO_ENGINES = 2
    now = timezone.now()
    for shard, ago in zip(all_shards(2), (timedelta(0), timedelta(minutes=5)), strict=True):
        renew_leadership(f"engine/{shard}", now=now - ago, shard=shard)

    one, two = (finding for finding in examine(now) if finding.name == "leader")

    assert (one.verdict, one.text) == (Verdict.OK, "1/2: engine/1/2")
    assert two.verdict is Verdict.ERROR
    assert two.text.startswith("2/2: No scheduler has led for ")


@pytest.mark.django_db
def test_looking_changes_nothing(folder: DataFolder) -> None:
    before = sorted(os.listdir(folder.path))

    findings()

    assert sorted(os.listdir(folder.path)) == before


@pytest.mark.django_db
def test_an_engine_that_does_not_run_is_a_warning(folder: DataFolder) -> None:
    folder.engine_lock.touch()

    found = findings()

    assert found["engine"].verdict is Verdict.WARNING
    assert "facho run" in found["engine"].text
    assert "leader" not in found


@pytest.fixture
def another_look(folder: DataFolder) -> Iterator[IO[str]]:
    """The lock of a doctor that looks at this very moment."""
    folder.engine_lock.touch()
    with folder.engine_lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


@pytest.mark.django_db
def test_two_who_look_at_once_are_no_engine(another_look: IO[str]) -> None:
    assert findings()["engine"].verdict is Verdict.WARNING


def test_who_looks_keeps_no_engine_from_its_start(
    monkeypatch: pytest.MonkeyPatch, folder: DataFolder, another_look: IO[str]
) -> None:
    pauses = []

    def look_ends_in_the_pause(seconds: float) -> None:
        pauses.append(seconds)
        if seconds:
            another_look.close()

    monkeypatch.setattr("facho.core.data_folder.time.sleep", look_ends_in_the_pause)

    with engine_lock(folder):
        assert is_engine_alive(folder)
    assert len(pauses) == 2


def test_a_second_engine_is_refused(folder: DataFolder, running_engine: None) -> None:
    with pytest.raises(EngineRuns), engine_lock(folder):
        pass


@pytest.mark.django_db
def test_an_engine_that_does_not_lead_is_an_error(folder: DataFolder, running_engine: None) -> None:
    lead(timezone.now() - timedelta(days=2))

    found = findings()["leader"]
    assert found.verdict is Verdict.ERROR
    assert "for 1728" in found.text


@pytest.mark.django_db
@pytest.mark.parametrize("ahead", [timedelta(minutes=-10), timedelta(minutes=10)], ids=["behind", "ahead"])
def test_a_leader_that_renews_leads_whatever_its_clock_shows(
    folder: DataFolder, running_engine: None, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    lead(timezone.now() + ahead)

    def renew(_seconds: float) -> None:
        LeaderLease.objects.update(counter=2)

    monkeypatch.setattr("facho.core.cli.doctor.time.sleep", renew)

    assert findings()["leader"].verdict is Verdict.OK


@pytest.mark.django_db
def test_only_the_clock_of_a_server_judges_ours(folder: DataFolder, running_engine: None) -> None:
    """What another machine wrote with a wrong clock says nothing about ours; in a file, this machine wrote it."""
    lead(timezone.now() + timedelta(minutes=10))

    expected = Verdict.OK if connection.vendor == "postgresql" else Verdict.ERROR
    assert findings()["clock"].verdict is expected


@pytest.mark.django_db
def test_an_engine_that_has_just_started_may_wait_for_its_lead(folder: DataFolder, running_engine: None) -> None:
    assert findings()["leader"].verdict is Verdict.WARNING


def test_a_folder_that_does_not_exist_yet_is_not_created(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "data"
    settings.DATA_FOLDER = DataFolder.of(read_environment({"FACHO_DATA_DIR": str(path)}))

    found = {finding.name: finding for finding in _without_database()}

    assert found["data-folder"].verdict is Verdict.WARNING
    assert found["settings"].verdict is Verdict.ERROR
    assert not path.exists()


def _without_database() -> Iterator[DoctorFinding]:
    """Examine up to the part that needs a database."""
    for finding in examine(timezone.now()):
        yield finding
        if finding.name == "disk":
            return


def test_a_file_in_the_place_of_the_folder_is_an_error(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    settings.DATA_FOLDER = DataFolder.of(read_environment({"FACHO_DATA_DIR": str(tmp_path / "data")}))

    found = {finding.name: finding for finding in _without_database()}

    assert found["data-folder"].verdict is Verdict.ERROR


def test_a_folder_of_another_user_is_one_error(folder: DataFolder) -> None:
    with closed_to_us(folder.path):
        found = list(examine(timezone.now()))

    assert [(finding.verdict, finding.name) for finding in found] == [(Verdict.ERROR, "data-folder")]
    assert "is not accessible for this user: run it as the owner of the folder" in found[0].text


def test_a_folder_that_others_may_enter_is_a_warning(folder: DataFolder) -> None:
    folder.path.chmod(0o755)

    found = {finding.name: finding for finding in _without_database()}

    assert found["data-folder"].verdict is Verdict.WARNING
    assert "chmod 700" in found["data-folder"].text


def test_a_key_that_others_may_read_is_a_warning(folder: DataFolder) -> None:
    folder.secret_key.chmod(0o644)

    (first, *_) = _without_database()

    assert (first.name, first.verdict) == ("settings", Verdict.WARNING)
    assert "chmod 600" in first.text


def test_secrets_that_a_killed_restore_left_are_named(folder: DataFolder) -> None:
    left = folder.path / f"{STAGE_PREFIX}1"
    left.mkdir()
    os.utime(left, times=(0, 0))

    found = {finding.name: finding for finding in _without_database()}

    assert found["unfinished"].verdict is Verdict.WARNING
    assert f"rm -r {left}" in found["unfinished"].text


@pytest.mark.parametrize(("mebibytes", "verdict"), [(50, Verdict.ERROR), (500, Verdict.WARNING), (5000, Verdict.OK)])
def test_a_full_disk_is_reported_in_time(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch, mebibytes: int, verdict: Verdict
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: DiskUsage(0, 0, mebibytes * MEBIBYTE))

    found = {finding.name: finding for finding in _without_database()}

    assert found["disk"].verdict is verdict


@pytest.mark.django_db
def test_a_newer_database_is_an_error_and_is_not_read(folder: DataFolder) -> None:
    MigrationRecorder(connection).record_applied("hosts", "0999_from_the_future")

    found = findings()

    assert found["migrations"].verdict is Verdict.ERROR
    assert "0999_from_the_future" in found["migrations"].text
    assert "credentials" not in found


@pytest.mark.django_db
def test_a_database_from_between_two_releases_is_an_error() -> None:
    for name in ("0003_squashed_0008_passkeys", "0008_passkeys"):
        MigrationRecorder(connection).record_unapplied("accounts", name)

    found = findings()

    assert found["migrations"].verdict is Verdict.ERROR
    assert "0003_squashed_0008_passkeys" in found["migrations"].text


@pytest.mark.django_db
@pytest.mark.parametrize(("mode", "verdict"), [(Mode.EMBEDDED, Verdict.WARNING), (Mode.DISTRIBUTED, Verdict.ERROR)])
def test_missing_migrations_are_reported_with_what_to_do(
    folder: DataFolder, settings: Settings, mode: Mode, verdict: Verdict
) -> None:
    settings.FACHO_MODE = mode
    settings.REDIS_URL = "redis://127.0.0.1:1"
    MigrationRecorder(connection).record_unapplied("traps", "0002_unsettled")

    found = findings()["migrations"]

    assert found.verdict is verdict
    assert "traps.0002_unsettled" in found.text


@pytest.mark.django_db
def test_credentials_of_a_lost_key_are_an_error(folder: DataFolder) -> None:
    Olt.objects.create(name="centro", host="h", address="192.0.2.1", community="public")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE hosts_olt SET community = 'written with a lost key'")

    assert findings()["credentials"].verdict is Verdict.ERROR


@pytest.mark.django_db
def test_a_clock_that_fell_back_is_an_error(folder: DataFolder) -> None:
    lead(timezone.now())

    found = findings(timezone.now() - timedelta(minutes=10))["clock"]

    assert found.verdict is Verdict.ERROR
    seconds = int(re.findall(r"(\d+) s behind", found.text)[0])
    assert 500 < seconds <= 600


@pytest.mark.django_db
def test_slow_checks_are_no_clock_that_is_behind(
    folder: DataFolder, running_engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine goes on while the database is checked for damage: what it writes is later than the beginning."""
    now, elapsed = timezone.now(), [0.0]
    monkeypatch.setattr("facho.core.cli.doctor.time.monotonic", lambda: elapsed[0])

    def check_for_a_minute(_file: Path, *, seconds: float) -> str:
        elapsed[0] += seconds
        lead(now + timedelta(seconds=seconds))
        return ""

    monkeypatch.setattr("facho.core.cli.doctor.find_damage", check_for_a_minute)
    monkeypatch.setattr("facho.core.cli.doctor.sqlite_file", lambda: Path(__file__))

    found = findings(now)

    assert (found["clock"].verdict, found["leader"].verdict) == (Verdict.OK, Verdict.OK), found["clock"].text


@pytest.mark.django_db
def test_a_clock_that_was_never_set_is_an_error(folder: DataFolder) -> None:
    assert findings(datetime(1970, 1, 1, tzinfo=UTC))["clock"].verdict is Verdict.ERROR


@pytest.mark.django_db
def test_a_missing_redis_is_an_error_in_distributed_mode(folder: DataFolder, settings: Settings) -> None:
    settings.FACHO_MODE = Mode.DISTRIBUTED
    settings.REDIS_URL = "redis://:canary-7f3a@127.0.0.1:1"

    found = findings()

    assert found["redis"].verdict is Verdict.ERROR
    assert "canary" not in found["redis"].text
    assert "engine" not in found
