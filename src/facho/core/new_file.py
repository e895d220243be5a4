"""Files that are there whole or not at all, whatever is killed: written beside their place, then given their name."""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

STAGE_PREFIX = ".facho-unfinished-"
OWNER_ONLY = 0o600
# No backup takes so long: whoever made an older stage was killed.
ABANDONED_SECONDS = 3600


def write_private(path: Path, line: str) -> None:
    """Create a file that its owner alone may read, and never replace one that exists."""
    if path.exists():
        return
    with stage_in(path.parent) as stage:
        with open_new(stage / path.name) as file:
            file.write(f"{line}\n".encode())
        with suppress(FileExistsError):
            publish(stage / path.name, path)


@contextmanager
def stage_in(folder: Path) -> Iterator[Path]:
    """Make room for unfinished files, which only their owner may enter; what others left there goes."""
    for left in find_abandoned(folder):
        shutil.rmtree(left, ignore_errors=True)
    try:
        made = tempfile.TemporaryDirectory(dir=folder, prefix=STAGE_PREFIX)
    except OSError as error:
        error.filename = str(folder)  # not a name by chance, of which nobody knows
        raise
    with made as stage:
        yield Path(stage)


def find_abandoned(folder: Path) -> list[Path]:
    """Return the stages of processes that were killed; what lies in them may be secret."""
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
