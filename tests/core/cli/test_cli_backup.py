"""`facho backup` and `facho restore` as processes: a product moves with its keys."""

import fcntl
import os
from pathlib import Path

import pytest
from cli_runner import CANARY, run_process

from servers.product_folder import give_database

pytestmark = pytest.mark.slow


@pytest.fixture
def embedded(tmp_path: Path) -> dict[str, str]:
    """The environment of an embedded product on SQLite, whatever the test run uses."""
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**environ, "FACHO_DATA_DIR": str(tmp_path / "product")}


def test_a_product_moves_with_its_keys(embedded: dict[str, str], tmp_path: Path) -> None:
    elsewhere = {**embedded, "FACHO_DATA_DIR": str(tmp_path / "elsewhere")}
    give_database(tmp_path / "product")
    run_process(embedded, "olt", "add", "centro", "127.0.0.1", "--community-stdin", stdin=CANARY.encode())

    written = run_process(embedded, "backup", str(tmp_path / "b"))
    restored = run_process(elsewhere, "restore", str(tmp_path / "b"))

    assert (written.status, written.err, restored.status, restored.err) == (0, "", 0, "")
    assert "centro" in run_process(elsewhere, "olt", "list").out
    assert "of 1 OLTs, all readable" in run_process(elsewhere, "doctor").out


def test_a_restore_waits_for_no_engine(embedded: dict[str, str], tmp_path: Path) -> None:
    folder = Path(embedded["FACHO_DATA_DIR"])
    folder.mkdir()
    with (folder / "engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        done = run_process(embedded, "restore", str(tmp_path / "b"))

    assert (done.status, done.err) == (1, f"facho: Facho runs on {folder}: stop it first.\n")
    assert os.listdir(folder) == ["engine.lock"]


def test_a_restore_into_a_folder_that_cannot_be_made_is_one_line(embedded: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = run_process({**embedded, "FACHO_DATA_DIR": str(tmp_path / "file" / "data")}, "restore", "b")

    assert (done.status, done.err) == (1, f"facho: {tmp_path}/file/data: Not a directory\n")


def test_nothing_to_back_up_makes_no_folder(embedded: dict[str, str], tmp_path: Path) -> None:
    done = run_process(embedded, "backup", str(tmp_path / "b"))

    assert done.status == 1
    assert "There is no database" in done.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("command", "tool"), [("backup", "pg_dump"), ("restore", "pg_restore")])
def test_postgresql_is_left_to_its_own_tools(embedded: dict[str, str], tmp_path: Path, command: str, tool: str) -> None:
    environ = {**embedded, "DATABASE_URL": "postgresql://facho:canary-7f3a@127.0.0.1:1/inventory"}

    done = run_process(environ, command, str(tmp_path / "b"))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert tool in done.err
    assert "inventory" in done.err
    assert CANARY not in done.err
