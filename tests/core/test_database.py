"""The database of the run is the kind that the product uses, and real commits meet from several threads."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import connection, connections

from facho.hosts.models import Brand


def test_sqlite_is_a_file_in_wal_mode_or_postgresql_is_itself(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode" if connection.vendor == "sqlite" else "SHOW server_encoding")
        assert cursor.fetchone()[0] in ("wal", "UTF8")


@pytest.mark.django_db(transaction=True)
def test_threads_write_without_losing_a_row() -> None:
    def write(number: int) -> None:
        Brand.objects.create(name=f"brand {number}")
        connections.close_all()

    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(write, range(20)))

    assert Brand.objects.count() == 20


def test_the_run_has_a_folder_of_its_own() -> None:
    assert settings.DATA_FOLDER.path.is_relative_to(tempfile.gettempdir())
    own = {"FACHO_DATA_DIR", "FACHO_LANGUAGE", "FACHO_ENGINES", "FACHO_SMARTOLT_API", "FACHO_ONU_METRICS"}
    assert {name for name in os.environ if name.startswith("FACHO_")} == own
