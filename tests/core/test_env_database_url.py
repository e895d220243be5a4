"""DATABASE_URL becomes Django's entry, or is refused without repeating its password."""

from pathlib import Path

import pytest

from facho.core.database import BadDatabaseUrl, database_entry


def test_without_a_url_the_database_lies_in_the_data_folder() -> None:
    entry = database_entry("", data_dir=Path("/data"))

    assert entry["NAME"] == "/data/facho.sqlite3"
    assert entry["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_sqlite_url_names_a_file() -> None:
    assert database_entry("sqlite:////var/my%20data.db", data_dir=Path("/data"))["NAME"] == "/var/my data.db"


def test_a_postgresql_url_is_taken_apart() -> None:
    entry = database_entry("postgresql://me:p%40ss@db.example:5433/facho?sslmode=require", data_dir=Path("/data"))

    assert entry["ENGINE"].endswith("postgresql")
    assert (entry["USER"], entry["PASSWORD"], entry["HOST"], entry["PORT"]) == ("me", "p@ss", "db.example", "5433")
    assert (entry["NAME"], entry["OPTIONS"]) == ("facho", {"sslmode": "require"})


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hunter2@db/facho",
        "postgresql://me:hunter2@db:port/facho",
        "postgresql://me:hunter2@db:99999/facho",
        "postgresql://me:hunter2@[db/facho",
        "postgresql://me:hunter2@db",
        "sqlite:///",
        "hunter2",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(BadDatabaseUrl) as refusal:
        database_entry(url, data_dir=Path("/data"))

    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
