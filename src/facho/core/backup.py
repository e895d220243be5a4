"""Writes the embedded product with its keys into one file, while it runs. Whoever has the file has everything."""

import hashlib
import io
import json
import sqlite3
import tarfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from django.utils.translation import gettext as _

from facho.core.data_folder import DataFolder
from facho.core.new_file import OWNER_ONLY, open_new, publish, stage_in

# Raised when a reader of the older format would restore something wrong.
FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "facho.sqlite3"
SECRET_KEY = "secret-key"  # noqa: S105 the name of a file
ENCRYPTION_KEYS = "encryption-keys"


class BackupError(Exception):
    """The backup was not written or not restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a member must be like to be believed."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first member of a backup: what follows, and what made it."""

    format: int
    version: str
    created_at: str
    migrations: tuple[str, ...]
    files: Mapping[str, FileFacts]

    def to_json(self) -> bytes:
        """Write it for people and programs."""
        return json.dumps(asdict(self), indent=2).encode()


def write_backup(target: Path, *, database: Path, folder: DataFolder, now: datetime) -> None:
    """Write a consistent copy to a file that does not exist yet; on failure there is no file."""
    try:
        _refuse_places(target, database)
    except PermissionError as error:
        text = _("%s is not accessible for this user: run it as the owner of the folder.")
        raise BackupError(text % Path(error.filename).parent) from error
    try:
        with stage_in(target.parent) as stage:
            _write_staged(stage, target, database=database, folder=folder, now=now)
    except sqlite3.Error as error:
        raise BackupError(_("The database could not be copied: %s.") % error) from error
    except OSError as error:
        raise failure_of(error) from error


def _refuse_places(target: Path, database: Path) -> None:
    if target.exists():
        raise BackupError(_("%s exists already: choose another name.") % target)
    if not target.parent.is_dir():
        raise BackupError(_("There is no folder %s.") % target.parent)
    if not database.exists():
        raise BackupError(_("There is no database at %s: nothing to back up.") % database)


def failure_of(error: OSError) -> BackupError:
    """Say which file made it fail, and why."""
    return BackupError(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))


def file_facts(path: Path) -> FileFacts:
    """Measure a file."""
    with path.open("rb") as file:
        return FileFacts(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def applied_migrations(database: Path) -> list[tuple[str, str]]:
    """Read the migrations of a database file that nobody writes to."""
    with closing(sqlite3.connect(f"{_uri(database)}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()


def _write_staged(stage: Path, target: Path, *, database: Path, folder: DataFolder, now: datetime) -> None:
    snapshot, archive = stage / DATABASE, stage / "archive"
    _copy_database(database, snapshot)
    files = {DATABASE: snapshot, SECRET_KEY: folder.secret_key, ENCRYPTION_KEYS: folder.encryption_keys}
    manifest = Manifest(
        format=FORMAT,
        version=version("facho"),
        created_at=now.isoformat(),
        migrations=tuple(".".join(migration) for migration in applied_migrations(snapshot)),
        files={name: file_facts(path) for name, path in files.items()},
    )
    _write_archive(archive, manifest, files)
    publish(archive, target)


def _copy_database(source: Path, target: Path) -> None:
    """Copy in one read transaction: consistent, while others go on writing."""
    with (
        closing(sqlite3.connect(f"{_uri(source)}?mode=ro", uri=True)) as reader,
        closing(sqlite3.connect(target)) as writer,
    ):
        reader.backup(writer)


def _write_archive(path: Path, manifest: Manifest, files: Mapping[str, Path]) -> None:
    with open_new(path) as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        content = manifest.to_json()
        archive.addfile(_member(MANIFEST, len(content)), io.BytesIO(content))
        for name, source in files.items():
            with source.open("rb") as file:
                archive.addfile(_member(name, manifest.files[name].size), file)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, OWNER_ONLY
    return member


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"
