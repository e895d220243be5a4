"""What a process knows of its storage: errors by their kind, a reserve that comes and goes, and a short log."""

import errno
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import Error, OperationalError, connection

from facho.infrastructure import storage as infrastructure_storage
from facho.infrastructure.gateway import ThreadGateway
from facho.infrastructure.standstill import Standstill, standstill_of
from facho.infrastructure.storage import BriefStorageErrors, Reserve, Storage, find_damage

MEBIBYTE = 1024**2


class Wall:
    """A clock that a test moves."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


def error_of(act: Callable[[sqlite3.Connection], object], database: str = ":memory:") -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as caught, closing(sqlite3.connect(database, uri=True)) as opened:
        act(opened)
    return caught.value


def fill(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA max_page_count = 2")
    database.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000))")


def wrapped(error: Exception) -> OperationalError:
    """The error as Django raises it."""
    outer = OperationalError(str(error))
    outer.__cause__ = error
    return outer


def table_file(path: Path, *, rows: int = 400) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (x)")
        database.executemany("INSERT INTO t VALUES (randomblob(1000))", [()] * rows)
        database.commit()
    return path


def spoil(path: Path, *, length: int = 200_000) -> None:
    """Write garbage into the middle of a file."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(os.urandom(min(length, path.stat().st_size // 4)))


def noise(folder: Path) -> Path:
    path = folder / "noise"
    path.write_bytes(b"noise" * 2000)
    return path


def test_errors_of_sqlite_are_known_by_their_codes(tmp_path: Path) -> None:
    database = table_file(tmp_path / "db")
    read_only = error_of(lambda opened: opened.execute("DELETE FROM t"), f"file:{database}?mode=ro")
    missing = error_of(lambda opened: opened.execute("SELECT 1 FROM t"), f"file:{tmp_path}/none?mode=ro")
    no_database = error_of(lambda opened: opened.execute("SELECT 1 FROM t"), f"file:{noise(tmp_path)}")
    spoil(database)
    spoiled = error_of(lambda opened: opened.execute("SELECT sum(length(x)) FROM t").fetchall(), f"file:{database}")
    typo = error_of(lambda opened: opened.execute("SELECT nothing FROM nowhere"))

    errors = (error_of(fill), read_only, missing, no_database, spoiled, typo)
    found = [standstill_of(wrapped(error)) for error in errors]

    assert found == ["disk_full", "read_only", "unreachable", "damaged", "damaged", None]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, "disk_full"), (errno.EROFS, "read_only"), (errno.EIO, "io_error"), (errno.ECONNREFUSED, None)],
)
def test_errors_of_the_system_are_known_by_their_numbers(number: int, expected: str | None) -> None:
    assert standstill_of(OSError(number, "")) == expected


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DO $$ BEGIN SET TRANSACTION READ ONLY; CREATE TABLE t (x int); END $$", "read_only"),
        ("DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$", "disk_full"),
        ("DO $$ BEGIN RAISE EXCEPTION 'bad' USING ERRCODE = 'XX001'; END $$", "damaged"),
        ("SELECT pg_terminate_backend(pg_backend_pid())", "unreachable"),
        ("SELECT 1 / 0", None),
    ],
)
def test_errors_of_postgresql_are_reported_alike(statement: str, expected: str | None) -> None:
    with pytest.raises(Error) as caught, connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()

    assert standstill_of(caught.value) == expected


def test_the_reserve_takes_real_space_and_gives_it_back(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "disk-reserve")

    assert reserve.make()

    assert reserve.path.stat().st_blocks * 512 >= infrastructure_storage.RESERVE_BYTES
    assert reserve.path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["disk-reserve"]
    assert reserve.release()
    assert not reserve.release()


def test_a_full_disk_holds_everything_until_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, free = Reserve(tmp_path / "disk-reserve"), 100 * MEBIBYTE
    monkeypatch.setattr(Reserve, "free_bytes", property(lambda _reserve: free))
    storage = Storage(reserve)
    storage.look()
    assert (reserve.is_held, storage.holds, storage.trouble) == (True, False, None)

    free = 0
    storage.look()
    assert (reserve.is_held, storage.holds, storage.trouble) == (False, True, "disk_full")
    free = 20 * MEBIBYTE  # the reserve itself, and a little
    storage.look()
    assert (reserve.is_held, storage.holds) == (False, True)

    free = 100 * MEBIBYTE
    storage.look()
    assert (reserve.is_held, storage.holds, storage.trouble) == (True, False, None)


def test_an_error_is_believed_for_a_while_and_damage_for_ever(tmp_path: Path) -> None:
    clock = Wall()
    storage = Storage(None, clock)
    storage.notice(OSError(errno.EIO, ""))
    assert (storage.trouble, storage.holds) == ("io_error", False)

    clock.at = 31
    assert storage.trouble is None

    storage.notice(wrapped(error_of(lambda opened: opened.execute("SELECT 1 FROM t"), f"file:{noise(tmp_path)}")))
    clock.at = 10_000
    storage.forget()
    assert (storage.trouble, storage.holds) == ("damaged", True)


@pytest.mark.django_db(transaction=True)
async def test_a_call_that_finds_the_disk_full_is_repeated_on_the_reserve(tmp_path: Path) -> None:
    reserve, calls = Reserve(tmp_path / "disk-reserve"), 0
    reserve.path.touch()

    def store() -> str:
        nonlocal calls
        calls += 1
        if reserve.is_held:
            raise wrapped(error_of(fill))
        return "stored"

    database = ThreadGateway(1, Storage(reserve))
    try:
        assert await database.run(store) == "stored"
    finally:
        await database.close()
    assert (calls, reserve.is_held) == (2, False)


def test_damage_in_the_middle_of_a_file_is_found(tmp_path: Path) -> None:
    path = table_file(tmp_path / "db")
    assert find_damage(path, seconds=60) == ""

    spoil(path)

    assert find_damage(path, seconds=60)


def test_a_check_that_takes_too_long_says_nothing(tmp_path: Path) -> None:
    path = table_file(tmp_path / "db", rows=20_000)

    assert find_damage(path, seconds=60, is_wanted=lambda: False) is None


def test_errors_of_the_storage_are_one_line_and_then_one_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, brief, reported = Wall(), BriefStorageErrors(), []
    monkeypatch.setattr(infrastructure_storage.time, "monotonic", clock)

    def log(error: Exception, event: str = "scheduler.tick_failed olt=%s") -> None:
        record = logging.LogRecord("facho.x", logging.ERROR, __file__, 1, event, (7,), (type(error), error, None))
        if brief.filter(record):
            reported.append((record.getMessage(), record.exc_info is None))

    for second in range(121):
        clock.at = float(second)
        for _ in range(5):
            log(wrapped(error_of(fill)))
    log(ValueError("a defect of ours"))

    lines = [line.partition(":")[0] for line, _ in reported]
    assert lines == [
        "storage.failed why=disk_full at=scheduler.tick_failed count=1",
        "storage.failed why=disk_full at=scheduler.tick_failed count=300",
        "storage.failed why=disk_full at=scheduler.tick_failed count=300",
        "scheduler.tick_failed olt=7",
    ]
    assert [is_brief for _, is_brief in reported] == [True, True, True, False]


def test_reasons_have_words(tmp_path: Path) -> None:
    assert all(infrastructure_storage.in_english(reason) for reason in Standstill)
