"""A private Zabbix server with a host of our own: Debian's package on a private PostgreSQL, without its frontend."""

import gzip
import random
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from servers.child import end_with_parent
from servers.postgresql import private_server

PROGRAM = Path("/usr/sbin/zabbix_server")
SQL_FOLDER = Path("/usr/share/zabbix-server-pgsql")
START_SECONDS = 120
# It refuses to listen on higher ports.
PORTS = range(20_000, 32_768)
# In the words of its database: what the package brings has smaller ids.
FIRST_ID, TRAPPER = 1_000_000, 2
VALUE_TYPES = {"FLOAT": 0, "UNSIGNED": 3}
TABLES = {"FLOAT": "history", "UNSIGNED": "history_uint"}


@dataclass(frozen=True, slots=True)
class ZabbixServer:
    """A running server that takes values on a port."""

    port: int
    version: str
    _connection: "psycopg.Connection[Any]"
    _process: "subprocess.Popen[bytes]"

    def stored(self, count: int) -> dict[str, float]:
        """Return by key what it has stored, once there are so many values."""
        joined = " UNION ALL ".join(
            f"SELECT items.key_, value::float FROM {table} JOIN items USING (itemid) WHERE itemid >= {FIRST_ID}"  # noqa: S608 our own names
            for table in TABLES.values()
        )
        found: dict[str, float] = {}

        def has_all() -> bool:
            found.update(self._connection.execute(joined).fetchall())
            return len(found) >= count

        wait_until(has_all, self._process)
        return found


@contextmanager
def private_zabbix(host: str, items: Mapping[str, str]) -> Iterator[ZabbixServer]:
    """Run a server that knows one host with trapper items, named by key with their value types."""
    # Its account and that of its database enter no folder of the test's.
    with TemporaryDirectory() as name, private_server(Path(name)) as database:
        folder = Path(name)
        place = {"host": "127.0.0.1", "port": database.port, "user": "facho", "password": database.password}
        with psycopg.connect(**place, dbname="postgres", autocommit=True) as connection:
            # No checks of references, since the images are left out, and no notes of changes for a server that runs.
            connection.execute("SET session_replication_role = replica")
            for script in ("schema", "data"):
                connection.execute(gzip.decompress((SQL_FOLDER / f"{script}.sql.gz").read_bytes()))
            _configure(connection, host, list(items.items()))
            own, port = folder / "zabbix", _free_port()
            own.mkdir(mode=0o777)
            own.chmod(0o777)
            settings = {
                "ListenIP": "127.0.0.1",
                "ListenPort": port,
                "LogFile": own / "log",
                "PidFile": own / "pid",
                "SocketDir": own,
                "DBHost": "127.0.0.1",
                "DBPort": database.port,
                "DBName": "postgres",
                "DBUser": "facho",
                "DBPassword": database.password,
            }
            file = own / "conf"
            file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            file.chmod(0o644)
            reported = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=True).stdout
            process = subprocess.Popen(
                [PROGRAM, "-f", "-c", file],
                user=database.account,
                cwd=own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                preexec_fn=partial(end_with_parent),
            )
            try:
                wait_until(lambda: _is_ready(own / "log"), process)
                yield ZabbixServer(port, reported.splitlines()[0], connection, process)
            finally:
                process.terminate()
                process.wait(timeout=60)


def wait_until(is_so: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    for _look in range(START_SECONDS * 5):
        if is_so():
            return
        with suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"{PROGRAM} ended with {process.wait(timeout=0.2)}")
    raise TimeoutError(f"{PROGRAM} is too slow")


def _is_ready(log: Path) -> bool:
    return log.exists() and "started [trapper #1]" in log.read_text()


def _configure(connection: "psycopg.Connection[Any]", host: str, items: Sequence[tuple[str, str]]) -> None:
    connection.execute("UPDATE hosts SET status = 1 WHERE status = 0")
    connection.execute("INSERT INTO hosts (hostid, host, name) VALUES (%s, %s, %s)", [FIRST_ID, host, host])
    # Zabbix 6.0 keeps this in the row of the host.
    if connection.execute("SELECT to_regclass('host_rtdata')").fetchone() != (None,):
        connection.execute("INSERT INTO host_rtdata (hostid) VALUES (%s)", [FIRST_ID])
    for number, (key, value_type) in enumerate(items, FIRST_ID):
        connection.execute(
            "INSERT INTO items (itemid, type, hostid, name, key_, delay, history, value_type)"
            " VALUES (%s, %s, %s, %s, %s, '0', '31d', %s)",
            [number, TRAPPER, FIRST_ID, key, key, VALUE_TYPES[value_type]],
        )
        connection.execute("INSERT INTO item_rtdata (itemid) VALUES (%s)", [number])


def _free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")
