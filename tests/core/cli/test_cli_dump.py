"""`facho backup` of PostgreSQL: the dump of its own tool, in storage too, which its own tool restores."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from cli_runner import run_process
from django.db import connection

from api.rows import make_olt
from servers.s3 import S3Storage, private_s3

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def storage() -> Iterator[S3Storage]:
    with private_s3() as storage:
        yield storage


def test_a_dump_arrives_in_storage_and_is_restored_by_pg_restore(
    product_environ: dict[str, str], storage: S3Storage, tmp_path: Path
) -> None:
    make_olt("centro")
    dump, empty = tmp_path / "facho.dump", product_environ["DATABASE_URL"]
    (tmp_path / "s3-keys").write_text(f"{storage.access_key}\n{storage.secret_key}\n")
    environ = {
        **product_environ,
        "DATABASE_URL": urlsplit(os.environ["DATABASE_URL"])
        ._replace(path=f"/{connection.settings_dict['NAME']}")
        .geturl(),
        "FACHO_S3_ENDPOINT": storage.url,
        "FACHO_S3_KEYS_FILE": str(tmp_path / "s3-keys"),
    }

    done = run_process(environ, "backup", str(dump), "--to", "s3://backups/facho/")

    assert (done.status, done.err, dump.stat().st_mode & 0o777) == (0, "", 0o600)
    assert "copied to s3://backups/facho/facho.dump" in done.out
    assert storage.kept() == {"facho/facho.dump": dump.read_bytes()}
    # As the page says.
    restore = ["pg_restore", "--no-owner", "--single-transaction", "--exit-on-error", f"--dbname={empty}", str(dump)]
    subprocess.run(restore, check=True, timeout=120)
    with psycopg.connect(empty) as restored:
        assert restored.execute("SELECT name FROM hosts_olt").fetchall() == [("centro",)]
