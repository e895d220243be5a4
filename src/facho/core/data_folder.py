"""The data folder: where it is, its files, and the secrets that the first embedded run generates."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cryptography.fernet import Fernet

from facho.core.env import Environment, Mode

STAGE_PREFIX = ".facho-unfinished-"
OWNER_ONLY = 0o600
# No backup takes longer: the process that made an older stage was killed.
ABANDONED_SECONDS = 3600
# A process that only checks for a running engine releases the lock within a moment.
LOCK_PAUSES_SECONDS = (0.0, 0.05, 0.1, 0.2)
FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
SQLITE_FILES = ("", "-wal", "-shm", "-journal")
# How the names begin that the product, or its operator for it, puts into the folder.
OUR_NAMES = (
    *("facho", ".facho", "secret-key", "encryption-keys", "engine.lock", "migrate.lock", "disk-reserve"),
    *("definitions", "logs", "demo", "celerybeat"),
)


def write_private(path: Path, line: str) -> None:
    """Create a file that its owner alone may read, and never replace one that exists."""
    if path.exists():
        return
    with stage_in(path.parent) as stage:
        with open_new(stage / path.name) as file:
            file.write(f"{line}\n".encode())
        with suppress(FileExistsError):
            publish(stage / path.name, path)


def write_for_owner(path: Path, text: str) -> None:
    """Write text that its owner alone may read, also over a file that others could; a pipe or a device stays."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "wb") as file:
        facts = os.fstat(file.fileno())
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
            os.fchmod(file.fileno(), OWNER_ONLY)
        file.write(text.encode())


def replace_private(path: Path, lines: Iterable[str]) -> None:
    """Replace a file of secrets atomically, and keep its owner and mode."""
    target = path.resolve()
    facts = target.stat()
    with stage_in(target.parent) as stage:
        with open_new(stage / target.name) as file:
            os.fchmod(file.fileno(), stat.S_IMODE(facts.st_mode))
            if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), facts.st_uid, facts.st_gid)
            file.write("".join(f"{line}\n" for line in lines).encode())
        (stage / target.name).replace(target)
    _sync(target.parent)


@contextmanager
def stage_in(folder: Path) -> Iterator[Path]:
    """Make room for unfinished files, which only their owner may enter; what others left there goes."""
    for left in find_abandoned(folder):
        shutil.rmtree(left, ignore_errors=True)
    try:
        made = tempfile.TemporaryDirectory(dir=folder, prefix=STAGE_PREFIX)
    except OSError as error:
        error.filename = str(folder)  # not the random temporary name
        raise
    with made as stage:
        yield Path(stage)


def find_abandoned(folder: Path) -> list[Path]:
    """Return the stages of processes that were killed; their content may be secret."""
    made_before = time.time() - ABANDONED_SECONDS
    try:
        return [path for path in sorted(folder.glob(f"{STAGE_PREFIX}*")) if path.lstat().st_mtime < made_before]
    except OSError:  # not for us to see, or gone while we looked
        return []


@contextmanager
def open_new(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that its owner alone may read from its first byte; it is on the disk when the block ends."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def publish(finished: Path, target: Path) -> None:
    """Give a finished file its name, and never replace another one."""
    if target.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    try:
        os.link(finished, target)  # unlike a change of name, it fails when someone was faster
    except FileExistsError:
        raise
    except OSError:  # a filesystem without links; each kind says so in its own way
        finished.rename(target)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    """Make a new name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class DataFolderError(Exception):
    """The folder or a file in it cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Paths below FACHO_DATA_DIR; the two key files may lie elsewhere."""

    path: Path
    secret_key: Path
    encryption_keys: Path

    @classmethod
    def of(cls, environment: Environment) -> "DataFolder":
        """Locate the folder that the environment names."""
        path: Path = environment["FACHO_DATA_DIR"].absolute()
        return cls(
            path,
            environment["FACHO_SECRET_KEY_FILE"] or path / "secret-key",
            environment["FACHO_ENCRYPTION_KEYS_FILE"] or path / "encryption-keys",
        )

    @property
    def engine_lock(self) -> Path:
        """The file whose lock proves that an engine lives."""
        return self.path / "engine.lock"

    @property
    def definitions(self) -> Path:
        """Vendor definitions of the operator's own; the folder need not exist."""
        return self.path / "definitions"

    @property
    def coordinator_log(self) -> Path:
        """The file of the coordinator's log; it and its folders come with the first line."""
        return self.path / "logs" / "coordinator" / "main.log"

    @property
    def last_backup(self) -> Path:
        """Names the file that the last backup was written to."""
        return self.path / "last-backup"

    @property
    def demo_mark(self) -> Path:
        """Present when the folder belongs to the demo, so that it never touches real data."""
        return self.path / "demo"

    def read_secret_key(self) -> str:
        """Return the key for sessions and links, or nothing when there is none to read."""
        return next(iter(_read_lines(self.secret_key)), "")

    def read_encryption_keys(self) -> tuple[str, ...]:
        """Return the Fernet keys: the first encrypts, all of them decrypt."""
        return _read_lines(self.encryption_keys)


class KeyFile:
    """The keys of a file, read again when it has changed; those read last stay while it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[tuple[int, int, int] | None, tuple[str, ...]] = (None, ())

    def __iter__(self) -> Iterator[str]:
        try:
            facts = self._path.stat()
        except OSError:
            return iter(self._read[1])
        stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if stamp != self._read[0]:
            # One assignment: threads see the old pair or the new one.
            self._read = (stamp, _read_lines(self._path) or self._read[1])
        return iter(self._read[1])


def prepare(folder: DataFolder, *, mode: Mode) -> None:
    """Make the folder usable; generate what is missing, in embedded mode only."""
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if mode is Mode.EMBEDDED:
            write_private(folder.secret_key, os.urandom(48).hex())
            write_private(folder.encryption_keys, Fernet.generate_key().decode())
    except FileExistsError as error:
        raise DataFolderError(f"{folder.path}: {os.strerror(errno.ENOTDIR)}") from error
    except OSError as error:
        raise DataFolderError(f"{error.filename or folder.path}: {error.strerror}") from error
    if not os.access(folder.path, os.W_OK | os.X_OK):
        raise DataFolderError(f"{folder.path}: Permission denied")


def others_may_enter(path: Path) -> bool:
    """Return whether users other than the owner may read or enter a file or folder; False if it does not exist."""
    try:
        facts = path.stat()
    except OSError:
        return False
    # Root gives it to the group of this process alone: so do Kubernetes and `install -m 640 -g facho`.
    is_given = facts.st_uid == 0 and facts.st_gid == os.getegid() != 0
    return bool(facts.st_mode & (stat.S_IRWXO | stat.S_IWGRP if is_given else FOR_OTHERS))


def close_to_others(folder: DataFolder, database: Path) -> list[Path]:
    """Take folder and database from others, and return what they could read; shared places stay as they are."""
    exposed = []
    if _is_ours(folder.path):
        exposed += _close(folder.path)
        for inner, folders, files in os.walk(folder.path):
            for name in (*folders, *files):
                _close(Path(inner) / name)  # not reported: a closed folder protects its files
    sides = [database.with_name(database.name + end) for end in SQLITE_FILES]
    return [*exposed, *(path for side in sides for path in _close(side))]


def _is_ours(path: Path) -> bool:
    """Whether the folder is the product's own; in a shared one, such as /srv, other users' access must stay."""
    try:
        facts, names = path.stat(), os.listdir(path)
    except OSError:
        return False
    is_shared = facts.st_uid != os.geteuid() or facts.st_mode & stat.S_ISVTX
    return not is_shared and all(name.startswith(OUR_NAMES) for name in names)


def _close(path: Path) -> list[Path]:
    """Take one file or folder from others, and return it when they had it; links and what others own stay."""
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.geteuid() or not facts.st_mode & FOR_OTHERS:
            return []
        path.chmod(stat.S_IMODE(facts.st_mode) & ~FOR_OTHERS)
    except OSError:  # gone while we looked, or a filesystem without owners
        return []
    return [path]


def _read_lines(path: Path) -> tuple[str, ...]:
    """Read what can be read; settings may not fail to load, a system check names the missing key instead."""
    try:
        return tuple(path.read_text().split())
    except (OSError, UnicodeDecodeError):
        return ()


class EngineRuns(Exception):
    """Another engine holds the data folder."""


@contextmanager
def engine_lock(folder: DataFolder, *, inherited: int | None = None) -> Iterator[IO[str]]:
    """Hold the lock that proves that no other engine lives here; children that inherit the file hold it too."""
    with folder.engine_lock.open("w") if inherited is None else os.fdopen(inherited, "w") as file:
        for pause_seconds in LOCK_PAUSES_SECONDS:
            time.sleep(pause_seconds)
            if _lock(file, fcntl.LOCK_EX):
                break
        else:
            raise EngineRuns
        yield file


def is_engine_alive(folder: DataFolder) -> bool:
    """Look without writing and without blocking other readers; an engine that starts then tries again."""
    try:
        with folder.engine_lock.open() as file:
            return not _lock(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _lock(file: IO[str], kind: int) -> bool:
    """Return whether the lock was free; it goes with the file."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
