"""Puts a backup into an empty data folder: everything is proven first, and a failure leaves the folder as it was."""

import json
import sqlite3
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from django.utils.translation import gettext as _

from facho.core.backup import (
    DATABASE,
    ENCRYPTION_KEYS,
    FORMAT,
    MANIFEST,
    SECRET_KEY,
    BackupError,
    FileFacts,
    applied_migrations,
    failure_of,
    file_facts,
)
from facho.core.data_folder import DataFolder
from facho.core.database_version import compare, named
from facho.core.new_file import open_new, publish, stage_in

# A real one is some kilobytes.
MAX_MANIFEST_BYTES = 1024 * 1024
COPY_BYTES = 1024 * 1024
SIDE_FILES = ("", "-wal", "-shm", "-journal")

Facts = dict[str, FileFacts]


def restore_backup(source: Path, *, database: Path, folder: DataFolder) -> None:
    """Restore into a folder without a database. The caller makes sure that no engine runs."""
    # The database comes last: while it is missing, the restore has not happened and can be repeated.
    places = {SECRET_KEY: folder.secret_key, ENCRYPTION_KEYS: folder.encryption_keys, DATABASE: database}
    _refuse_existing_database(database)
    try:
        with _staged(places) as staged:
            _check(staged, _unpack(source, staged))
            _put_in_place(staged, places)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _not_a_backup(source) from error
    except OSError as error:
        raise failure_of(error) from error


def _refuse_existing_database(database: Path) -> None:
    if any(database.with_name(database.name + end).exists() for end in SIDE_FILES):
        raise BackupError(
            _("%s exists already: set FACHO_DATA_DIR to an empty folder, or move the old one away.") % database
        )


@contextmanager
def _staged(places: Mapping[str, Path]) -> Iterator[dict[str, Path]]:
    """Give each file a temporary name beside its place, and remove what is left there in the end."""
    with ExitStack() as stages:
        staged = {}
        for name, place in places.items():
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged[name] = stages.enter_context(stage_in(place.parent)) / place.name
        yield staged


def _unpack(source: Path, staged: Mapping[str, Path]) -> Facts:
    """Write the members that a backup has to their temporary names; any other member ends it."""
    promised: Facts = {}
    waiting = {MANIFEST, *staged}
    # As a stream: nothing is looked up by a name that the archive chose.
    with tarfile.open(source, mode="r|gz") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() and member.name in waiting else None
            if content is None or not (promised or member.name == MANIFEST):
                raise _not_a_backup(source)
            waiting.remove(member.name)
            if member.name == MANIFEST:
                promised = _read_manifest(content.read(MAX_MANIFEST_BYTES), source)
            else:
                _write(staged[member.name], content, promised[member.name].size)
    if waiting:
        raise _not_a_backup(source)
    return promised


def _read_manifest(content: bytes, source: Path) -> Facts:
    try:
        manifest: Any = json.loads(content)
        if manifest["format"] > FORMAT:
            raise _newer(source)
        return {name: FileFacts(int(facts["size"]), str(facts["sha256"])) for name, facts in _files(manifest)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_a_backup(source) from error


def _files(manifest: Any) -> list[tuple[str, Any]]:
    files = manifest["files"]
    return [(name, files[name]) for name in (SECRET_KEY, ENCRYPTION_KEYS, DATABASE)]


def _write(path: Path, content: IO[bytes], size: int) -> None:
    """Write at most one byte more than promised: that is enough to be refused."""
    left = size + 1
    with open_new(path) as file:
        while left > 0 and (block := content.read(min(COPY_BYTES, left))):
            file.write(block)
            left -= len(block)


def _check(staged: Mapping[str, Path], promised: Facts) -> None:
    for name, path in staged.items():
        if file_facts(path) != promised[name]:
            raise BackupError(_("The backup is damaged: %s is not what its manifest says.") % name)
    try:
        with closing(sqlite3.connect(f"file:{quote(str(staged[DATABASE]))}?mode=ro&immutable=1", uri=True)) as reader:
            is_sound = reader.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        applied = applied_migrations(staged[DATABASE])
    except sqlite3.Error as error:
        raise BackupError(_("The backup is damaged: its database cannot be read.")) from error
    if not is_sound:
        raise BackupError(_("The backup is damaged: its database cannot be read."))
    unknown = compare(applied).unknown
    if unknown:
        raise _newer(named(unknown))


def _put_in_place(staged: Mapping[str, Path], places: Mapping[str, Path]) -> None:
    """Give every file its name; take back what was given when one cannot have it."""
    given: list[Path] = []
    try:
        for name, place in places.items():
            if name != DATABASE and place.exists() and file_facts(place) == file_facts(staged[name]):
                continue
            publish(staged[name], place)
            given.append(place)
    except FileExistsError as error:
        _take_back(given)
        raise BackupError(
            _("%s exists already and differs: move it away first, other data may need it.") % place
        ) from error
    except OSError:
        _take_back(given)
        raise


def _take_back(given: Iterable[Path]) -> None:
    for path in given:
        path.unlink()


def _not_a_backup(source: Path) -> BackupError:
    return BackupError(_("%s is not a backup of Facho, or it is damaged.") % source)


def _newer(what: object) -> BackupError:
    return BackupError(_("The backup was made by a newer version of Facho (%s): install that version first.") % what)
