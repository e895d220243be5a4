"""Databases for scenes: each works on a copy of the one that the theatre got, on SQLite as on PostgreSQL."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, connections

# Notes each state that an execution ever had, whoever wrote it.
SQLITE_AUDIT = """
CREATE TABLE status_audit (number integer PRIMARY KEY, execution_id bigint, status text);
CREATE TRIGGER audit_insert AFTER INSERT ON snmp_executions
BEGIN INSERT INTO status_audit (execution_id, status) VALUES (NEW.id, NEW.status); END;
CREATE TRIGGER audit_update AFTER UPDATE OF status ON snmp_executions
BEGIN INSERT INTO status_audit (execution_id, status) VALUES (NEW.id, NEW.status); END;
"""
POSTGRESQL_AUDIT = """
CREATE TABLE status_audit (number bigserial PRIMARY KEY, execution_id bigint, status text);
CREATE FUNCTION audit_status() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO status_audit (execution_id, status) VALUES (NEW.id, NEW.status); RETURN NEW; END $$;
CREATE TRIGGER audit_insert AFTER INSERT ON snmp_executions FOR EACH ROW EXECUTE FUNCTION audit_status();
CREATE TRIGGER audit_update AFTER UPDATE OF status ON snmp_executions FOR EACH ROW EXECUTE FUNCTION audit_status();
"""


class Template:
    """A migrated database that nobody is connected to."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self._entry = entry
        self._name = str(entry["NAME"])
        self._is_sqlite = "sqlite" in entry["ENGINE"]

    @classmethod
    @contextmanager
    def open(cls) -> Iterator["Template"]:
        """Use the database that the environment names, and remove it in the end."""
        template = cls(settings.DATABASES["default"])
        try:
            _install_audit()
            connections.close_all()
            yield template
        finally:
            connections.close_all()
            template._execute_beside(f"DROP DATABASE {template._name} WITH (FORCE)")

    def enter_copy(self, number: int) -> None:
        """Let this process, and those it forks, work on a copy."""
        name = self._copy_name(number)
        if self._is_sqlite:
            shutil.copyfile(self._name, name)
        else:
            self._execute_beside(f"CREATE DATABASE {name} TEMPLATE {self._name}")
        self._entry["NAME"] = name

    def drop_copy(self, number: int) -> None:
        """Remove a copy and every connection to it."""
        name = self._copy_name(number)
        self._execute_beside(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        if self._is_sqlite:
            for path in Path(name).parent.glob(f"{Path(name).name}*"):
                path.unlink()

    def _copy_name(self, number: int) -> str:
        return f"{self._name.removesuffix('.sqlite3')}_{number}{'.sqlite3' if self._is_sqlite else ''}"

    def _execute_beside(self, statement: str) -> None:
        """Execute what is said to a server about its databases; a file needs none of it."""
        if self._is_sqlite:
            return
        entry = self._entry
        where = {"host": entry["HOST"], "port": entry["PORT"], "user": entry["USER"], "password": entry["PASSWORD"]}
        with psycopg.connect(**where, dbname="postgres", autocommit=True) as server:
            server.execute(statement.encode())


def load_states() -> dict[int, list[str]]:
    """Return every state that each execution had, in order."""
    states: dict[int, list[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT execution_id, status FROM status_audit ORDER BY number")
        for execution_id, status in cursor.fetchall():
            states.setdefault(execution_id, []).append(status)
    return states


def _install_audit() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executescript(SQLITE_AUDIT)
        else:
            cursor.execute(POSTGRESQL_AUDIT)
