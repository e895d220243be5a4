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


@pytest.fixture
def on_a_server(embedded: dict[str, str]) -> dict[str, str]:
    """The same on a PostgreSQL that is not there."""
    return {**embedded, "DATABASE_URL": f"postgresql://facho:{CANARY}@127.0.0.1:1/inventory?sslpassword={CANARY}"}


def test_a_restore_of_postgresql_is_left_to_its_own_tool(on_a_server: dict[str, str], tmp_path: Path) -> None:
    done = run_process(on_a_server, "restore", str(tmp_path / "b"))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert f"pg_restore --dbname=inventory {tmp_path}/b" in done.err
    assert CANARY not in done.err


def test_a_server_that_is_away_leaves_no_dump(on_a_server: dict[str, str], tmp_path: Path) -> None:
    done = run_process(on_a_server, "backup", str(tmp_path / "b"))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "Connection refused" in done.err
    assert CANARY not in done.err
    assert os.listdir(tmp_path) == []


def test_a_missing_pg_dump_is_named(on_a_server: dict[str, str], tmp_path: Path) -> None:
    done = run_process({**on_a_server, "PATH": str(tmp_path)}, "backup", str(tmp_path / "b"))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "There is no pg_dump" in done.err


def test_no_argument_of_pg_dump_has_a_secret(on_a_server: dict[str, str], tmp_path: Path) -> None:
    """Every user of the machine may read the arguments of a process."""
    program = tmp_path / "pg_dump"
    program.write_text(
        '#!/bin/sh\necho "$@"\ncat "$PGSERVICEFILE"\nstat --format=%a "$PGSERVICEFILE"\necho "$PGPASSWORD"\n'
    )
    program.chmod(0o755)

    done = run_process({**on_a_server, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, "backup", str(tmp_path / "b"))

    arguments, *service, mode, password = (tmp_path / "b").read_text().splitlines()
    assert (done.status, CANARY in arguments, mode, password) == (0, False, "600", CANARY)
    assert service == [
        "[facho]",
        *("dbname=inventory", "user=facho", "host=127.0.0.1", "port=1", f"sslpassword={CANARY}"),
    ]
    assert CANARY not in done.out
    assert str(Path(on_a_server["FACHO_DATA_DIR"]) / "encryption-keys") in done.out


def test_a_dump_replaces_no_file(on_a_server: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "b").write_text("older")

    done = run_process(on_a_server, "backup", str(tmp_path / "b"))

    assert (done.status, (tmp_path / "b").read_text()) == (1, "older")
    assert "exists already" in done.err
