"""The data folder: where it is, what lies in it, and the secrets that the first embedded run generates."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from facho.core.env import Environment, Mode
from facho.core.new_file import write_private


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
    def demo_mark(self) -> Path:
        """Present when the folder belongs to the demo, so that it never touches real data."""
        return self.path / "demo"

    def read_secret_key(self) -> str:
        """Return the key for sessions and links, or nothing when there is none to read."""
        return next(iter(_read_lines(self.secret_key)), "")

    def read_encryption_keys(self) -> tuple[str, ...]:
        """Return the Fernet keys: the first encrypts, all of them decrypt."""
        return _read_lines(self.encryption_keys)


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


def _read_lines(path: Path) -> tuple[str, ...]:
    """Read what can be read; settings may not fail to load, a system check names the missing key instead."""
    try:
        return tuple(path.read_text().split())
    except (OSError, UnicodeDecodeError):
        return ()
