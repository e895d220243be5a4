"""A configuration that cannot work is refused at the start, with an id and a hint."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.utils.translation import override
from pytest_django import Settings

from facho.core.checks import check_definitions, startup_errors
from facho.core.data_folder import DataFolder, prepare
from facho.core.env import Mode, Problem, read_environment
from facho.polling.vendors import loader
from facho.polling.vendors.loader import load_definitions, use_own_definitions

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> DataFolder:
    """A prepared data folder of the test's own, in place of the run's."""
    fresh = DataFolder(tmp_path, tmp_path / "secret-key", tmp_path / "encryption-keys")
    prepare(fresh, mode=Mode.EMBEDDED)
    settings.DATA_FOLDER = fresh
    return fresh


@pytest.fixture
def distributed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The distributed mode with everything that it needs; no test here opens the database."""
    settings.FACHO_MODE, settings.REDIS_URL = Mode.DISTRIBUTED, "redis://127.0.0.1:6379/0"
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    return settings


def ids() -> list[str | None]:
    return [message.id for message in startup_errors()]


def hint_of_the_only_error() -> str:
    with override("en"):
        (error,) = startup_errors()
    return str(error.hint)


def test_a_first_embedded_run_has_nothing_to_complain_about() -> None:
    assert run_checks(tags=["facho"]) == []


def test_several_engines_on_sqlite_are_refused_with_the_reason(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ENVIRONMENT = read_environment({"FACHO_ENGINES": "3"})
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")

    with override("en"):
        (error,) = startup_errors()

    assert (error.id, "one process write" in str(error.msg)) == ("facho.E008", True)
    assert "Unset FACHO_ENGINES" in str(error.hint)


def test_more_engines_than_pollers_are_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ENVIRONMENT, settings.FACHO_POLLERS = read_environment({"FACHO_ENGINES": "3"}), 2
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")

    assert ids() == ["facho.E009"]


def test_a_value_that_cannot_be_read_is_named_with_what_it_should_be(settings: Settings) -> None:
    settings.ENVIRONMENT_PROBLEMS = [Problem("FACHO_POLLERS", "a whole number from 1")]

    with override("en"):
        (error,) = startup_errors()

    assert error.id == "facho.E001"
    assert "FACHO_POLLERS" in error.msg
    assert "a whole number from 1" in str(error.hint)


def test_days_of_the_history_last_at_least_as_long_as_its_hours(settings: Settings) -> None:
    settings.FACHO_HISTORY_HOURLY_DAYS = settings.FACHO_HISTORY_DAILY_DAYS = 400
    assert ids() == []

    settings.FACHO_HISTORY_DAILY_DAYS = 399
    assert ids() == ["facho.E007"]


def test_distributed_mode_with_all_it_needs_may_start(distributed: Settings) -> None:
    assert ids() == []


def test_distributed_mode_needs_postgresql(distributed: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(distributed.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")

    assert ids() == ["facho.E002"]


def test_distributed_mode_needs_redis(distributed: Settings) -> None:
    distributed.REDIS_URL = ""

    assert ids() == ["facho.E003"]


def test_a_missing_secret_key_is_an_error(folder: DataFolder) -> None:
    folder.secret_key.unlink()

    assert ids() == ["facho.E004"]


@pytest.mark.parametrize("content", [b"", b"\n", b"not-a-fernet-key\n", b"\xff\xfe"])
def test_an_encryption_key_that_is_none_is_an_error(folder: DataFolder, content: bytes) -> None:
    folder.encryption_keys.write_bytes(content)

    assert ids() == ["facho.E005"]


def test_one_bad_key_among_good_ones_is_an_error(folder: DataFolder) -> None:
    with folder.encryption_keys.open("a") as file:
        file.write("short\n")

    assert ids() == ["facho.E005"]


def test_no_message_repeats_a_key(folder: DataFolder) -> None:
    folder.encryption_keys.write_text("canary-7f3a\n")

    assert "canary-7f3a" not in str(startup_errors())


def test_a_key_is_copied_from_another_machine_in_distributed_mode(folder: DataFolder, distributed: Settings) -> None:
    folder.secret_key.unlink()

    assert "every machine" in hint_of_the_only_error()


def test_a_damaged_key_is_restored_and_not_replaced(folder: DataFolder) -> None:
    folder.encryption_keys.write_text("")

    assert "backup" in hint_of_the_only_error()


def test_a_key_that_never_was_is_generated_by_the_first_run(folder: DataFolder) -> None:
    folder.encryption_keys.unlink()

    assert "facho run" in hint_of_the_only_error()


def test_a_misspelt_name_is_a_warning_that_knows_the_right_one(settings: Settings) -> None:
    settings.ENVIRONMENT = replace(read_environment({}), unknown_names=("FACHO_POLERS", "FACHO_XYZZY_QUUX"))

    similar, other = run_checks(tags=["facho"])

    assert similar.id == other.id == "facho.W001"
    assert "FACHO_POLLERS" in str(similar.hint)
    assert "docs/configuration.md" in str(other.hint)
    assert startup_errors() == []


def test_a_key_that_others_may_read_is_a_warning(folder: DataFolder) -> None:
    folder.encryption_keys.chmod(0o640)

    (warning,) = run_checks(tags=["facho"])

    assert warning.id == "facho.W002"
    assert f"chmod 600 {folder.encryption_keys}" in str(warning.hint)


def test_a_key_that_root_gives_to_the_group_of_the_process_alone_is_well_kept(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kubernetes mounts a secret; when anybody else may read it too, it is a warning."""
    root_gives = folder.encryption_keys.stat
    monkeypatch.setattr("os.getegid", lambda: 10001)
    given = os.stat_result((0o100440, 1, 1, 1, 0, 10001, *root_gives()[6:10]))
    stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **o: given if path == folder.encryption_keys else stat(path, **o))

    assert run_checks(tags=["facho"]) == []
    given = os.stat_result((0o100444, *given[1:10]))
    assert [warning.id for warning in run_checks(tags=["facho"])] == ["facho.W002"]


@pytest.mark.parametrize(
    "broken",
    [
        {"FACHO_TIME_ZONE": "Mars/Olympus"},
        {"DATABASE_URL": "postgresql://me:hunter2@db:port/facho"},
        {"FACHO_MODE": "cluster"},
    ],
)
def test_a_broken_environment_ends_in_a_sentence_and_no_traceback(broken: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **broken}, capture_output=True, text=True, check=False)

    (name,) = broken
    assert done.returncode == 1
    assert "facho.E001" in done.stderr
    assert name in done.stderr
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_a_definition_of_the_operators_own_takes_the_place_of_ours(folder: DataFolder) -> None:
    own = copy_of_ours(folder)
    own.write_text(own.read_text().replace("title: ", "title: Own "))

    with own_definitions(folder):
        assert load_definitions()["generic"].title.startswith("Own ")
        assert not [message for message in check_definitions() if message.is_serious()]


def test_a_broken_definition_is_named_with_file_and_key(folder: DataFolder) -> None:
    own = copy_of_ours(folder)
    own.write_text(own.read_text().replace("brand: ", "brnad: "))

    with own_definitions(folder):
        [error] = check_definitions()

    assert error.id == "facho.E006"
    assert "generic.yaml" in error.msg
    assert "brand" in error.msg


@pytest.mark.parametrize("content", [b"\xff\xfe", b"# " + b"x" * 600_000, b"brand: " + b"[" * 100_000])
def test_a_definition_that_was_made_to_hurt_hinders_the_start_with_a_sentence(
    folder: DataFolder, content: bytes
) -> None:
    copy_of_ours(folder).write_bytes(content)

    with own_definitions(folder):
        [error] = check_definitions()

    assert error.id == "facho.E006"
    assert "generic.yaml" in error.msg


def copy_of_ours(folder: DataFolder) -> Path:
    folder.definitions.mkdir(parents=True)
    own = folder.definitions / "generic.yaml"
    own.write_text((files("facho.polling.vendors") / "definitions" / "generic.yaml").read_text())
    return own


@contextmanager
def own_definitions(folder: DataFolder) -> Iterator[None]:
    use_own_definitions(folder.definitions)
    try:
        yield
    finally:
        loader._own_folders.remove(folder.definitions)
        load_definitions.cache_clear()
