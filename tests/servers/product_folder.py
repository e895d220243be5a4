"""Products whose database is made already: to make one takes as long as three commands."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

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


def give_database(folder: Path) -> None:
    """Put an empty database into the folder, as the first command does; its keys are still to be made."""
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(_made(MIGRATE) / DATABASE, folder)


def give_demo(folder: Path) -> None:
    """Make the folder that of a demo which has stopped before it knew an OLT."""
    shutil.copytree(_made(PREPARE_DEMO), folder)


def create_database(server_url: str, name: str) -> str:
    """Create an empty database of the product on a PostgreSQL server, and return its URL."""
    with psycopg.connect(_url(server_url, "postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {_made_on(server_url)}".encode())
    return _url(server_url, name)


@cache
def _made_on(server_url: str) -> str:
    """Nobody is ever connected to it again, so it can be copied at any time."""
    name = "made_once"
    with psycopg.connect(_url(server_url, "postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
    subprocess.run(
        [sys.executable, "-c", MIGRATE], env={**os.environ, "DATABASE_URL": _url(server_url, name)}, check=True
    )
    return name


def _url(server_url: str, name: str) -> str:
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


@cache
def _made(program: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="facho-product-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data = folder / "data"
    if program != MIGRATE:
        give_database(data)
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    subprocess.run([sys.executable, "-c", program], env={**environ, "FACHO_DATA_DIR": str(data)}, check=True)
    return data
