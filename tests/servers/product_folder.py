"""Databases that are made already: to migrate one takes as long as three commands; all lanes of a run share it."""

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from servers.postgresql import find_client

DATABASE = "facho.sqlite3"
MIGRATE = """
from facho.core.product import open_product
open_product()
from django.core.management import call_command
call_command("migrate", interactive=False, verbosity=0)
"""
# What the demo does with a folder before it starts anything.
PREPARE_DEMO = """
from facho.core.product import open_product
open_product()
from django.conf import settings
from facho.core.cli.demo_data import provide_access
provide_access(settings.DATA_FOLDER)
"""


_shared: list[Path] = []


def share(folder: Path) -> None:
    """Keep what is migrated in this folder: other runs, even at the same time, find it there."""
    folder.mkdir(parents=True, exist_ok=True)
    _shared[:] = [folder]


def migrated_file() -> Path:
    """Return an empty SQLite database of the product, to be copied."""
    return _once("migrated.sqlite3", _migrate_file)


def give_database(folder: Path) -> None:
    """Put an empty database into the folder, as the first command does; its keys are still to be made."""
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(migrated_file(), folder / DATABASE)


def give_demo(folder: Path) -> None:
    """Make the folder that of a demo which has stopped before it knew an OLT."""
    shutil.copytree(_prepared_demo(), folder)


def create_database(server_url: str, name: str) -> str:
    """Create an empty database of the product on a PostgreSQL server, and return its URL."""
    with psycopg.connect(_url(server_url, "postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {_made_on(server_url)}".encode())
    return _url(server_url, name)


@cache
def _made_on(server_url: str) -> str:
    """Nobody is ever connected to it again, so it can be copied at any time."""
    name = "made_once"
    url = _url(server_url, name)
    with psycopg.connect(_url(server_url, "postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
    dump = _once("migrated.sql", partial(_migrate_and_dump, url))
    with psycopg.connect(url) as connection:
        is_migrated = connection.execute("SELECT to_regclass('django_migrations') IS NOT NULL").fetchone() == (True,)
    if not is_migrated:
        psql = [find_client("psql"), "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--file", dump, url]
        subprocess.run(psql, stdout=subprocess.DEVNULL, check=True)
    return name


def _migrate_and_dump(url: str, dump: Path) -> None:
    subprocess.run([sys.executable, "-c", MIGRATE], env={**os.environ, "DATABASE_URL": url}, check=True)
    subprocess.run([find_client("pg_dump"), "--file", dump, url], check=True)


def _migrate_file(file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="facho-migrated-") as folder:
        _run(MIGRATE, Path(folder) / "data")
        shutil.copyfile(Path(folder) / "data" / DATABASE, file)


@cache
def _prepared_demo() -> Path:
    data = _temporary() / "data"
    give_database(data)
    _run(PREPARE_DEMO, data)
    return data


def _run(program: str, data: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    subprocess.run([sys.executable, "-c", program], env={**environ, "FACHO_DATA_DIR": str(data)}, check=True)


def _once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a file that whoever comes first makes, while the others wait."""
    folder = _shared[0] if _shared else _temporary()
    file = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            part = folder / f"{name}.part"
            make(part)
            part.rename(file)
    return file


@cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="facho-product-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _url(server_url: str, name: str) -> str:
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()
