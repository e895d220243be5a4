"""A new file is there whole or not at all, and takes no other's place."""

import errno
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stranger import closed_to_us

from facho.core.data_folder import (
    ABANDONED_SECONDS,
    STAGE_PREFIX,
    DataFolder,
    DataFolderError,
    find_abandoned,
    prepare,
    publish,
    stage_in,
    write_private,
)
from facho.core.env import Mode, read_environment


@contextmanager
def no_room() -> Iterator[None]:
    """Let no byte be written to any file, as on a full disk; names can still be made."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_first_start_that_broke_off_leaves_no_empty_key(tmp_path: Path) -> None:
    folder = DataFolder.of(read_environment({"FACHO_DATA_DIR": str(tmp_path / "data")}))
    with no_room(), pytest.raises(DataFolderError):
        prepare(folder, mode=Mode.EMBEDDED)
    assert os.listdir(folder.path) == []

    prepare(folder, mode=Mode.EMBEDDED)

    assert folder.read_secret_key()
    assert folder.read_encryption_keys()


def test_a_private_file_is_its_owners_alone_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "key"

    write_private(path, "one")
    write_private(path, "two")

    assert path.read_text() == "one\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["key"]


def test_a_name_that_was_taken_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    finished, target = tmp_path / "finished", tmp_path / "target"
    finished.write_text("new")
    target.write_text("old")

    with pytest.raises(FileExistsError):
        publish(finished, target)

    assert target.read_text() == "old"


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_filesystem_without_links_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int) -> None:
    def link(_source: Path, _target: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)

    write_private(tmp_path / "key", "one")

    assert (tmp_path / "key").read_text() == "one\n"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_private(tmp_path / "no" / "key", "one")

    assert caught.value.filename == str(tmp_path / "no")


def test_what_a_killed_process_left_goes_and_what_another_is_at_stays(tmp_path: Path) -> None:
    killed, busy = tmp_path / f"{STAGE_PREFIX}1", tmp_path / f"{STAGE_PREFIX}2"
    for stage, age_seconds in ((killed, ABANDONED_SECONDS + 1), (busy, 0)):
        stage.mkdir()
        (stage / "secret").write_text("canary")
        os.utime(stage, times=(time.time() - age_seconds,) * 2)

    with stage_in(tmp_path):
        pass

    assert list(tmp_path.iterdir()) == [busy]


def test_nothing_is_found_where_we_may_not_look(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()

    with closed_to_us(tmp_path):
        assert find_abandoned(tmp_path / "keys") == []
