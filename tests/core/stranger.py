"""Looks at a folder as a user who may not enter it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def closed_to_us(folder: Path) -> Iterator[None]:
    """Close the folder to everyone, and give up the rights of root, who may enter all the same."""
    was_root = os.getuid() == 0
    folder.chmod(0o000)
    if was_root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if was_root:
            os.setresuid(0, 0, 0)
        folder.chmod(0o700)
