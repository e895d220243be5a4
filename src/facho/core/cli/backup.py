"""`facho backup` and `facho restore`: the whole embedded product with its keys in one file, and back.

Of PostgreSQL the backup is the dump of its own tool, without the keys, and its own tool restores it.
"""

import hashlib
import io
import json
import os
import sqlite3
import subprocess
import tarfile
import zlib
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any, NoReturn
from urllib.parse import quote

from django.conf import settings
from django.db import Error, ProgrammingError
from django.utils import timezone
from django.utils.translation import gettext as _

from facho.core import data_folder, product
from facho.core.cli.s3 import account_of, split_target, store
from facho.core.database import compare, migrate, named, offer_rules
from facho.core.env import Mode
from facho.executions.processes import VERSION, load_other_versions

# Raised when a reader of the older format would restore something wrong.
FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "facho.sqlite3"
SECRET_KEY = "secret-key"  # noqa: S105 the name of a file
ENCRYPTION_KEYS = "encryption-keys"
# A real one is some kilobytes.
MAX_MANIFEST_BYTES = 1024 * 1024
MAX_HEADER_BYTES = 4096
COPY_BYTES = 1024 * 1024
PG_DUMP = ("pg_dump", "--format=custom", "--no-password", "--dbname=service=facho")


class BackupError(product.OperatorError):
    """The backup was not written or not restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Limits that a member must keep to be accepted."""

    size: int
    sha256: str


Facts = dict[str, FileFacts]


def back_up(arguments: Namespace) -> None:
    """Back up what is there; a database that waits for an upgrade too."""
    environment = product.checked_environment()
    account = account_of(environment) if arguments.to else None
    if arguments.to:
        # Before the work: a name that cannot be is refused at once.
        split_target(arguments.to, name=arguments.file.name)
    entry, folder = settings.DATABASES["default"], settings.DATA_FOLDER
    if "sqlite" in entry["ENGINE"]:
        write_backup(arguments.file, database=Path(entry["NAME"]), folder=folder, now=timezone.now())
        print(_("%s contains everything, including the keys: keep it safe") % arguments.file)
    else:
        write_dump(arguments.file, entry)
        text = _("%(file)s contains the database. Keep copies of %(keys)s with it: without them no secret can be read.")
        print(text % {"file": arguments.file, "keys": _keys(folder)})
    if account is not None:
        print(_("copied to %s") % store(arguments.file, arguments.to, account, now=timezone.now()))


def restore(arguments: Namespace) -> None:
    """Restore while no engine runs on the folder."""
    product.checked_environment()
    entry, folder = settings.DATABASES["default"], settings.DATA_FOLDER
    if "sqlite" not in entry["ENGINE"]:
        text = _("The database is PostgreSQL. Use `pg_restore --dbname=%(database)s %(file)s` and copy %(keys)s.")
        raise product.OperatorError(text % {"database": entry["NAME"], "file": arguments.file, "keys": _keys(folder)})
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with data_folder.engine_lock(folder):
            restore_backup(arguments.file, database=Path(entry["NAME"]), folder=folder)
        product.report_closed()
    except data_folder.EngineRuns as error:
        raise product.OperatorError(_("Facho runs on %s: stop it first.") % folder.path) from error
    except OSError as error:
        raise product.OperatorError(f"{error.filename or folder.path}: {error.strerror}") from error
    print(_("restored into %s; start it with `facho run`") % folder.path)


def _keys(folder: data_folder.DataFolder) -> str:
    return f"{folder.secret_key}, {folder.encryption_keys}"


def write_backup(target: Path, *, database: Path, folder: data_folder.DataFolder, now: datetime) -> None:
    """Write a consistent copy to a file that does not exist yet; on failure there is no file."""
    with _refusing_folders():
        _refuse_taken(target)
        if not database.exists():
            raise BackupError(_("There is no database at %s: nothing to back up.") % database)
    try:
        with data_folder.stage_in(target.parent) as stage:
            _write_staged(stage, target, database=database, folder=folder, now=now)
            # Without the note an operator would look for a missing file; a backup is complete without it.
            with suppress(OSError):
                folder.last_backup.write_text(f"{target.absolute()}\n")
    except sqlite3.Error as error:
        raise BackupError(_("The database could not be copied: %s.") % error) from error
    except OSError as error:
        raise failure_of(error) from error


def write_dump(target: Path, entry: Mapping[str, Any]) -> None:
    """Write PostgreSQL's own dump, in the form that pg_restore reads, to a file that does not exist yet."""
    with _refusing_folders():
        _refuse_taken(target)
    try:
        with data_folder.stage_in(target.parent) as stage:
            dump, service = stage / "dump", stage / "service"
            with data_folder.open_new(service) as file:
                file.write(_service(entry).encode())
            # No argument has a secret: every user of the machine may see those.
            password = {"PGPASSWORD": entry["PASSWORD"]} if entry["PASSWORD"] else {}
            environ = {**os.environ, **password, "PGSERVICEFILE": str(service)}
            with data_folder.open_new(dump) as file:
                subprocess.run(PG_DUMP, env=environ, stdin=DEVNULL, stdout=file, stderr=PIPE, check=True)  # noqa: S603 no shell
            data_folder.publish(dump, target)
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.decode(errors="replace").split()).rstrip(".")
        raise BackupError(_("The database could not be copied: %s.") % said) from error
    except FileNotFoundError as error:
        if error.filename != PG_DUMP[0]:
            raise failure_of(error) from error
        text = _("There is no pg_dump: install PostgreSQL's client, of the version of the server or newer.")
        raise BackupError(text) from error
    except OSError as error:
        raise failure_of(error) from error


def _service(entry: Mapping[str, Any]) -> str:
    """Describe how to connect; what is empty is the server's or its library's choice."""
    names = {"dbname": "NAME", "user": "USER", "host": "HOST", "port": "PORT"}
    values = {**{name: entry[key] for name, key in names.items()}, **entry["OPTIONS"]}
    return "[facho]\n" + "".join(f"{name}={value}\n" for name, value in values.items() if value)


def _refuse_taken(target: Path) -> None:
    if target.exists():
        raise BackupError(_("%s exists already: choose another name.") % target)
    if not target.parent.is_dir():
        raise BackupError(_("There is no folder %s.") % target.parent)


@contextmanager
def _refusing_folders() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        text = _("%s is not accessible for this user: run it as the owner of the folder.")
        raise BackupError(text % Path(error.filename).parent) from error


def find_last_backup(folder: data_folder.DataFolder) -> Path | None:
    """Return the backup that was written last, if it is still where it was."""
    try:
        target = Path(folder.last_backup.read_text().strip())
        return target if target.is_file() else None
    except (OSError, ValueError):
        return None


def failure_of(error: OSError) -> BackupError:
    return BackupError(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))


def file_facts(path: Path) -> FileFacts:
    with path.open("rb") as file:
        return FileFacts(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def applied_migrations(database: Path) -> list[tuple[str, str]]:
    """Read the migrations of a database file that nobody writes to."""
    with closing(sqlite3.connect(f"{_uri(database)}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()


def _write_staged(stage: Path, target: Path, *, database: Path, folder: data_folder.DataFolder, now: datetime) -> None:
    snapshot, keys, archive = stage / DATABASE, stage / ENCRYPTION_KEYS, stage / "archive"
    before = folder.encryption_keys.read_text().split()
    # In one read transaction: consistent, while others keep writing.
    with (
        closing(sqlite3.connect(f"{_uri(database)}?mode=ro", uri=True)) as reader,
        closing(sqlite3.connect(snapshot)) as writer,
    ):
        reader.backup(writer)
    # Of a rotation meanwhile both keys are needed: the old one for rows that were copied before they had the new one.
    after = folder.encryption_keys.read_text().split()
    with data_folder.open_new(keys) as file:
        file.write("".join(f"{key}\n" for key in dict.fromkeys([*after, *before])).encode())
    files = {DATABASE: snapshot, SECRET_KEY: folder.secret_key, ENCRYPTION_KEYS: keys}
    facts = {name: file_facts(path) for name, path in files.items()}
    manifest = {
        "format": FORMAT,
        "version": version("facho"),
        "created_at": now.isoformat(),
        "migrations": [".".join(migration) for migration in applied_migrations(snapshot)],
        "files": {name: asdict(each) for name, each in facts.items()},
    }
    with data_folder.open_new(archive) as raw, tarfile.open(fileobj=raw, mode="w:gz") as members:
        content = json.dumps(manifest, indent=2).encode()
        members.addfile(_member(MANIFEST, len(content)), io.BytesIO(content))
        for name, source in files.items():
            with source.open("rb") as member:
                members.addfile(_member(name, facts[name].size), member)
    data_folder.publish(archive, target)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, data_folder.OWNER_ONLY
    return member


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"


def restore_backup(source: Path, *, database: Path, folder: data_folder.DataFolder) -> None:
    """Restore into a folder without a database. The caller makes sure that no engine runs."""
    # The database comes last: while it is missing, the restore has not happened and can be repeated.
    places = {SECRET_KEY: folder.secret_key, ENCRYPTION_KEYS: folder.encryption_keys, DATABASE: database}
    if any(database.with_name(database.name + end).exists() for end in data_folder.SQLITE_FILES):
        raise BackupError(
            _("%s exists already: set FACHO_DATA_DIR to an empty folder, or move the old one away.") % database
        )
    try:
        with _staged(places) as staged:
            # Write the members that a backup has to their temporary names; any other member ends it.
            promised: Facts = {}
            waiting = {MANIFEST, *staged}
            # As a stream: no path comes from a name in the archive.
            with tarfile.open(source, mode="r|gz", tarinfo=_Member) as archive:
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
            _check(staged, promised)
            _put_in_place(staged, places)
    except (tarfile.TarError, EOFError, zlib.error, RecursionError) as error:
        raise _not_a_backup(source) from error
    except OSError as error:
        raise failure_of(error) from error


class _Member(tarfile.TarInfo):
    """A file of an archive; headers of other kinds, which tarfile would read whole into memory, are refused."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        # A header with further names is what our own writer puts before a database above 8 GB.
        is_names = self.type == tarfile.XHDTYPE and self.size <= MAX_HEADER_BYTES
        if not is_names and self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise tarfile.ReadError
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]

    def _proc_gnusparse_10(self, *_arguments: object) -> NoReturn:
        raise tarfile.ReadError  # a list of holes, as long as its writer likes


@contextmanager
def _staged(places: Mapping[str, Path]) -> Iterator[dict[str, Path]]:
    """Give each file a temporary name in its target folder, and remove leftovers at the end."""
    with ExitStack() as stages:
        staged = {}
        for name, place in places.items():
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged[name] = stages.enter_context(data_folder.stage_in(place.parent)) / place.name
        yield staged


def _read_manifest(content: bytes, source: Path) -> Facts:
    try:
        manifest: Any = json.loads(content)
        if manifest["format"] > FORMAT:
            raise _newer(source)
        files = {name: manifest["files"][name] for name in (SECRET_KEY, ENCRYPTION_KEYS, DATABASE)}
        return {name: FileFacts(int(facts["size"]), str(facts["sha256"])) for name, facts in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _not_a_backup(source) from error


def _write(path: Path, content: IO[bytes], size: int) -> None:
    """Write at most one byte more than promised: that is enough to be refused."""
    left = size + 1
    with data_folder.open_new(path) as file:
        while left > 0 and (block := content.read(min(COPY_BYTES, left))):
            file.write(block)
            left -= len(block)


def _check(staged: Mapping[str, Path], promised: Facts) -> None:
    for name, path in staged.items():
        if file_facts(path) != promised[name]:
            raise BackupError(_("The backup is damaged: %s does not match its manifest.") % name)
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
            data_folder.publish(staged[name], place)
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


def bring_database_up(arguments: Namespace) -> None:
    """Apply what the database lacks: in the distributed mode once, while none of its parts runs an older version."""
    product.open_product()
    if settings.FACHO_MODE is Mode.EMBEDDED:
        product.bring_up_to_date()
    else:
        product.refuse_newer()
        try:
            _refuse_beside_others()
            migrate()
            offer_rules()
        except Error as error:
            raise product.database_failure(error) from error
    print(_("The database fits this version, %s.") % VERSION)


def _refuse_beside_others() -> None:
    # On the first start, the table of processes is one of the things that are missing.
    others = []
    with suppress(ProgrammingError):
        others = load_other_versions()
    if others:
        text = _("Processes of another version still run: %s. Stop them first; a killed one drops out after 30 s.")
        raise product.OperatorError(text % ", ".join(others))
