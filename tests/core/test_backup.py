"""Backup and restore: one consistent file, proven before use, and never half a restore."""

import gzip
import io
import json
import os
import random
import sqlite3
import tarfile
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db.migrations.loader import MigrationLoader
from stranger import closed_to_us

from facho.core.cli.backup import (
    DATABASE,
    ENCRYPTION_KEYS,
    MANIFEST,
    SECRET_KEY,
    BackupError,
    restore_backup,
    write_backup,
)
from facho.core.data_folder import STAGE_PREFIX, DataFolder, prepare
from facho.core.database import known_migrations
from facho.core.env import Mode, read_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Members = dict[str, bytes]


def folder_at(path: Path) -> DataFolder:
    return DataFolder.of(read_environment({"FACHO_DATA_DIR": str(path)}))


def database_of(folder: DataFolder) -> Path:
    return folder.path / "facho.sqlite3"


def make_database(
    path: Path,
    *,
    notes: int = 3,
    migrations: Iterable[tuple[str, str]] = known_migrations(),
    extra_migrations: tuple[tuple[str, str], ...] = (),
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, app TEXT, name TEXT)")
        rows = [*sorted(migrations), *extra_migrations]
        connection.executemany("INSERT INTO django_migrations (app, name) VALUES (?, ?)", rows)
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.executemany("INSERT INTO notes VALUES (?)", [(f"note {number}",) for number in range(notes)])


def count_notes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM notes").fetchone()
        return int(count)


@pytest.fixture
def product(tmp_path: Path) -> DataFolder:
    """A data folder with keys and a database."""
    folder = folder_at(tmp_path / "product")
    prepare(folder, mode=Mode.EMBEDDED)
    make_database(database_of(folder))
    return folder


@pytest.fixture
def archive(product: DataFolder, tmp_path: Path) -> Path:
    """A backup of the product."""
    target = tmp_path / "facho.backup"
    write_backup(target, database=database_of(product), folder=product, now=NOW)
    return target


@pytest.fixture
def empty(tmp_path: Path) -> DataFolder:
    """A data folder that does not exist yet."""
    return folder_at(tmp_path / "restored")


def restore(archive: Path, folder: DataFolder) -> None:
    restore_backup(archive, database=database_of(folder), folder=folder)


def read_members(archive: Path) -> Members:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def write_members(path: Path, members: Members) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def files_in(folder: DataFolder) -> list[str]:
    return sorted(os.listdir(folder.path)) if folder.path.exists() else []


def test_a_backup_is_one_private_file_and_nothing_else(archive: Path) -> None:
    assert archive.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(archive.parent)) == ["facho.backup", "product"]


def test_the_manifest_comes_first_and_describes_the_rest(archive: Path) -> None:
    members = read_members(archive)
    manifest = json.loads(members[MANIFEST])

    assert list(members) == [MANIFEST, DATABASE, SECRET_KEY, ENCRYPTION_KEYS]
    assert (manifest["format"], manifest["created_at"]) == (1, NOW.isoformat())
    assert "alerts.0003_squashed_0004_monthly_reports" in manifest["migrations"]
    assert {name: facts["size"] for name, facts in manifest["files"].items()} == {
        name: len(content) for name, content in members.items() if name != MANIFEST
    }


def test_a_restored_product_is_the_one_that_was_backed_up(
    archive: Path, product: DataFolder, empty: DataFolder
) -> None:
    restore(archive, empty)

    assert count_notes(database_of(empty)) == 3
    assert empty.read_secret_key() == product.read_secret_key()
    assert empty.read_encryption_keys() == product.read_encryption_keys()


@pytest.mark.parametrize("act", ["backup", "restore"])
def test_the_next_one_removes_what_a_killed_one_left(
    archive: Path, product: DataFolder, empty: DataFolder, act: str
) -> None:
    place = archive.parent if act == "backup" else empty.path
    left = place / f"{STAGE_PREFIX}1"
    left.mkdir(parents=True)
    (left / SECRET_KEY).write_text("canary")
    os.utime(left, times=(0, 0))

    if act == "backup":
        write_backup(place / "next", database=database_of(product), folder=product, now=NOW)
    else:
        restore(archive, empty)

    assert not left.exists()


def test_a_restored_product_is_private(archive: Path, empty: DataFolder) -> None:
    restore(archive, empty)

    assert files_in(empty) == [ENCRYPTION_KEYS, DATABASE, SECRET_KEY]
    assert empty.path.stat().st_mode & 0o777 == 0o700
    assert {(empty.path / name).stat().st_mode & 0o777 for name in files_in(empty)} == {0o600}


def test_a_backup_holds_what_was_committed_while_others_write(product: DataFolder, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database_of(product))) as writer:
        writer.execute("INSERT INTO notes VALUES ('committed, and still in the write-ahead log')")
        writer.commit()
        writer.execute("INSERT INTO notes VALUES ('not committed')")
        write_backup(tmp_path / "b", database=database_of(product), folder=product, now=NOW)

    (tmp_path / "copy").write_bytes(read_members(tmp_path / "b")[DATABASE])
    assert count_notes(tmp_path / "copy") == 4


def test_a_backup_never_replaces_a_file(archive: Path, product: DataFolder) -> None:
    before = archive.read_bytes()

    with pytest.raises(BackupError, match="exists already"):
        write_backup(archive, database=database_of(product), folder=product, now=NOW)

    assert archive.read_bytes() == before


@pytest.mark.parametrize("missing", [SECRET_KEY, ENCRYPTION_KEYS, DATABASE])
def test_a_backup_without_all_its_parts_is_not_written(product: DataFolder, tmp_path: Path, missing: str) -> None:
    (product.path / missing).unlink()

    with pytest.raises(BackupError, match=missing):
        write_backup(tmp_path / "b", database=database_of(product), folder=product, now=NOW)

    assert os.listdir(tmp_path) == ["product"]


def test_a_backup_into_a_folder_that_is_not_there_is_refused(product: DataFolder, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="no folder"):
        write_backup(tmp_path / "no" / "b", database=database_of(product), folder=product, now=NOW)


def test_a_backup_of_another_users_folder_says_who_may_do_it(product: DataFolder) -> None:
    target = Path(tempfile.gettempdir()) / "facho-backup-of-another-user"

    with closed_to_us(product.path), pytest.raises(BackupError, match="run it as the owner of the folder"):
        write_backup(target, database=database_of(product), folder=product, now=NOW)

    assert not target.exists()


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_folder_with_a_database_is_not_touched(archive: Path, empty: DataFolder, end: str) -> None:
    empty.path.mkdir()
    (empty.path / f"facho.sqlite3{end}").write_text("mine")

    with pytest.raises(BackupError, match="FACHO_DATA_DIR"):
        restore(archive, empty)

    assert files_in(empty) == [f"facho.sqlite3{end}"]


def test_other_keys_are_not_replaced_and_nothing_is_left_behind(archive: Path, empty: DataFolder) -> None:
    prepare(empty, mode=Mode.EMBEDDED)
    keys = empty.read_encryption_keys()
    empty.secret_key.unlink()

    with pytest.raises(BackupError, match="encryption-keys exists already and differs"):
        restore(archive, empty)

    assert files_in(empty) == [ENCRYPTION_KEYS]
    assert empty.read_encryption_keys() == keys


def test_a_restore_that_was_killed_between_two_names_can_be_repeated(archive: Path, empty: DataFolder) -> None:
    empty.path.mkdir()
    empty.secret_key.write_bytes(read_members(archive)[SECRET_KEY])

    restore(archive, empty)

    assert count_notes(database_of(empty)) == 3


def changed(member: str, change: Callable[[bytes], bytes]) -> Callable[[Members], Members]:
    return lambda members: {**members, member: change(members[member])}


def without(name: str) -> Callable[[Members], Members]:
    return lambda members: {key: content for key, content in members.items() if key != name}


def edit_manifest(**values: object) -> Callable[[Members], Members]:
    return changed(MANIFEST, lambda content: json.dumps({**json.loads(content), **values}).encode())


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (changed(DATABASE, lambda content: content[:-1] + b"x"), "damaged: facho.sqlite3"),
        (changed(SECRET_KEY, lambda content: content + b"x"), "damaged: secret-key"),
        (changed(ENCRYPTION_KEYS, lambda _: b""), "damaged: encryption-keys"),
        (changed(MANIFEST, lambda _: b"{"), "not a backup"),
        (changed(MANIFEST, lambda _: b"[]"), "not a backup"),
        (edit_manifest(files={}), "not a backup"),
        (edit_manifest(files={DATABASE: 3}), "not a backup"),
        (edit_manifest(format="x"), "not a backup"),
        (edit_manifest(format=2), "newer version"),
        (without(MANIFEST), "not a backup"),
        (without(SECRET_KEY), "not a backup"),
        (lambda members: dict(reversed(members.items())), "not a backup"),
        (lambda members: {**members, "extra": b""}, "not a backup"),
        (lambda members: {**members, "../evil": b""}, "not a backup"),
        (lambda members: {**members, "/tmp/evil": b""}, "not a backup"),  # noqa: S108 - refused
        (lambda members: {}, "not a backup"),
    ],
)
def test_a_changed_backup_is_refused_and_leaves_nothing(
    archive: Path, empty: DataFolder, tmp_path: Path, tamper: Callable[[Members], Members], reason: str
) -> None:
    evil = write_members(tmp_path / "evil.backup", tamper(read_members(archive)))

    with pytest.raises(BackupError, match=reason):
        restore(evil, empty)

    assert files_in(empty) == []


def links() -> Iterator[tarfile.TarInfo]:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        member = tarfile.TarInfo(SECRET_KEY)
        member.type, member.linkname = kind, "/etc/passwd"
        yield member


@pytest.mark.parametrize("link", list(links()), ids=lambda member: repr(member.type))
def test_only_plain_files_are_restored(archive: Path, empty: DataFolder, tmp_path: Path, link: tarfile.TarInfo) -> None:
    evil = tmp_path / "evil.backup"
    content = read_members(archive)[MANIFEST]
    with tarfile.open(evil, "w:gz") as tar:
        manifest = tarfile.TarInfo(MANIFEST)
        manifest.size = len(content)
        tar.addfile(manifest, io.BytesIO(content))
        tar.addfile(link)

    with pytest.raises(BackupError, match="not a backup"):
        restore(evil, empty)

    assert files_in(empty) == []


def test_a_member_that_comes_twice_is_refused(archive: Path, empty: DataFolder, tmp_path: Path) -> None:
    evil = tmp_path / "evil.backup"
    with tarfile.open(evil, "w:gz") as tar:
        for name, content in [*read_members(archive).items(), (SECRET_KEY, b"other")]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))

    with pytest.raises(BackupError, match="not a backup"):
        restore(evil, empty)


def test_a_backup_of_a_newer_version_is_refused(product: DataFolder, empty: DataFolder, tmp_path: Path) -> None:
    database = tmp_path / "newer.sqlite3"
    make_database(database, extra_migrations=(("hosts", "0999_from_the_future"),))
    write_backup(tmp_path / "b", database=database, folder=product, now=NOW)

    with pytest.raises(BackupError, match=r"newer version of Facho \(hosts.0999_from_the_future\)"):
        restore(tmp_path / "b", empty)

    assert files_in(empty) == []


def test_a_backup_from_before_the_squash_is_no_newer_one(
    product: DataFolder, empty: DataFolder, tmp_path: Path
) -> None:
    database, brought = tmp_path / "older.sqlite3", MigrationLoader(None).disk_migrations
    replaced = {former for migration in brought.values() for former in migration.replaces}
    make_database(database, migrations=replaced)
    write_backup(tmp_path / "b", database=database, folder=product, now=NOW)

    restore(tmp_path / "b", empty)

    assert count_notes(database_of(empty)) == 3


@pytest.mark.parametrize("content", [b"", b"not a tar file", b"\x1f\x8b\x08" + b"\x00" * 40])
def test_a_file_that_is_no_backup_is_named(empty: DataFolder, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)

    with pytest.raises(BackupError, match=r"notes\.txt is not a backup"):
        restore(file, empty)


def test_a_missing_file_is_named(empty: DataFolder, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"missing\.backup: No such file"):
        restore(tmp_path / "missing.backup", empty)


HOSTILE_MANIFESTS = {
    "deep": b'{"format": 1, "files": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "large": b" " * 2_000_000 + b"{}",
    "endless size": b'{"format": 1, "files": {"secret-key": {"size": 1e999, "sha256": ""}}}',
    "many digits": b'{"format": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("manifest", HOSTILE_MANIFESTS.values(), ids=HOSTILE_MANIFESTS)
def test_a_manifest_that_was_made_to_hurt_is_refused(
    archive: Path, empty: DataFolder, tmp_path: Path, manifest: bytes
) -> None:
    evil = write_members(tmp_path / "evil.backup", {**read_members(archive), MANIFEST: manifest})

    with pytest.raises(BackupError, match="not a backup"):
        restore(evil, empty)

    assert files_in(empty) == []


def header(kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo(MANIFEST)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def names(keyword: str) -> bytes:
    record = f"{len(keyword) + 6} {keyword}=1\n".encode()
    return header(tarfile.XHDTYPE, len(record)) + record.ljust(tarfile.BLOCKSIZE, b"\0")


HOSTILE_HEADERS = {
    "long names": lambda: header(tarfile.XHDTYPE, 64_000_000) + b"\0" * 64_000_000,
    "long name of GNU": lambda: header(tarfile.GNUTYPE_LONGNAME, 64_000_000) + b"\0" * 64_000_000,
    "many in a row": lambda: names("a" * 10) * 5_000,
    "list of holes": lambda: header(tarfile.GNUTYPE_SPARSE, 0) * 5_000,
}


@pytest.mark.parametrize("make", HOSTILE_HEADERS.values(), ids=HOSTILE_HEADERS)
def test_headers_of_an_archive_take_no_memory(make: Callable[[], bytes], empty: DataFolder, tmp_path: Path) -> None:
    evil = tmp_path / "evil.backup"
    evil.write_bytes(gzip.compress(make(), 1))
    tracemalloc.start()

    try:
        with pytest.raises(BackupError, match="not a backup"):
            restore(evil, empty)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16_000_000
    assert files_in(empty) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_backup_that_was_cut_or_scratched_restores_whole_or_not_at_all(
    archive: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable damage, no secret
    content = bytearray(archive.read_bytes())
    if seed % 2:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    else:
        del content[chance.randrange(len(content)) :]
    (tmp_path / "damaged").write_bytes(content)
    folder = folder_at(tmp_path / "restored")

    try:
        restore(tmp_path / "damaged", folder)
    except BackupError:
        assert files_in(folder) == []
    else:
        assert count_notes(database_of(folder)) == 3
