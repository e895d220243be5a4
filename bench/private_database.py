"""A throw-away database, so that a benchmark can run the product's own collectors."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
from django.core.management import call_command
from django.db import connections

from facho.core import data_folder
from facho.core.env import PREFIX, read_environment

FOREIGN_NAMES = ("DATABASE_URL", "REDIS_URL")


@contextmanager
def private_database(url: str | None = None) -> Iterator[None]:
    """Set Django up on an empty SQLite file, or on the empty database at `url`; once in a process."""
    for name in [name for name in os.environ if name.startswith(PREFIX) or name in FOREIGN_NAMES]:
        del os.environ[name]
    if url:
        os.environ["DATABASE_URL"] = url
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FACHO_DATA_DIR"] = str(Path(folder) / "data")
        os.environ["DJANGO_SETTINGS_MODULE"] = "facho.core.settings"
        # Benchmarks stop their clock while they store.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "yes"
        environment = read_environment(os.environ)
        data_folder.prepare(data_folder.DataFolder.of(environment), mode=environment["FACHO_MODE"])
        django.setup()
        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            connections.close_all()
