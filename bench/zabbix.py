"""Zabbix as a peer: Debian's server on a private PostgreSQL, one bulk walk an OLT and an item for each value.

It is configured in its database, as its own frontend would. `walk[]` came with Zabbix 6.4, so Debian 12 needs
backports, which are read for this one installation and do not stay in the machine's sources. Two triggers an ONU note
what is offline and what has weak light, as an operator's template does; without discovery, flapping, outages of ports
and housekeeping this is still less than the product does.
"""

import gzip
import json
import os
import platform
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from tools.system_packages import APT_GET, POLICY, services_left_alone

from bench.bare import BareColumn
from bench.both_databases import empty_database
from bench.processes import running

PROGRAM, PACKAGE = "/usr/sbin/zabbix_server", "zabbix-server-pgsql"
SQL_FOLDER = Path("/usr/share/zabbix-server-pgsql")
FIRST_VERSION = (6, 4)
# It refuses to listen on higher ports.
PORTS = range(20_000, 32_768)
START_SECONDS = 300
ROUND_SECONDS = 900
LOOK_SECONDS = 0.5
# Nothing is due by itself: a round is asked for, as by the frontend's "Execute now".
NEVER = "1d"
# In the words of its database.
SNMP_AGENT, DEPENDENT, SNMP_INTERFACE = 20, 18, 2
FLOAT, TEXT = 0, 4
SNMP_WALK_VALUE, MULTIPLIER = 28, 1
CHECK_NOW, NEW_TASK = 6, 1
# Items get ids from here on; what the package brings has smaller ones.
FIRST_ID, IDS_PER_ROUND = 1_000_000, 1_000_000_000
# The condition of a problem, by the column whose last value it looks at.
TRIGGERS: Mapping[str, str] = {"onu.run_state": "<>1", "onu.rx_power": "<-27"}
STARTED = "started [snmp poller #1]"
BYTES_PER_ITEM, INDEX_BYTES_PER_ITEM = 2_500, 400
# The last value of each item with a trigger, with its hashes; what did not fit would be read from the database.
CACHED_BYTES_PER_TRIGGER = 600
# What its log says when a cache was too small: it works differently then, and its figures mean something else.
FULL_CACHE = re.compile(r"cache is full|please increase|cache is fully used", re.IGNORECASE)
# A walk waits for an answer for up to a minute; where nothing came for longer, what brought nothing is asked again.
SNMP_TIMEOUT_SECONDS = 60
STALLED_SECONDS = 75
# "ZBXD", flags, the length of what follows and a reserved field, 13 bytes together.
HEADER_BYTES = 13


class NoZabbix(Exception):
    """There is none here; the text says why."""


@dataclass(frozen=True, slots=True)
class ZabbixTask:
    """What to walk: OLTs by port, with the encoded indexes of their ONUs as text."""

    indexes: Mapping[int, Sequence[str]]
    columns: Sequence[BareColumn]
    repetitions: int
    at_once: int


def find_version() -> str:
    """Return the version of the server, installed before if that can be done here."""
    if not Path(PROGRAM).exists() or _read_version() < FIRST_VERSION:
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise NoZabbix(f"{PACKAGE} is not installed, and only root can install it")
        try:
            _install()
        except subprocess.CalledProcessError as error:
            raise NoZabbix(f"{PACKAGE} cannot be installed: {error.stderr.strip()[-200:]}") from error
    version = _read_version()
    if version < FIRST_VERSION:
        raise NoZabbix(f"version {version} has no walk[] items")
    return ".".join(map(str, version))


def _read_version() -> tuple[int, ...]:
    told = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"(\d+)\.(\d+)\.(\d+)", told)
    return tuple(map(int, version.groups())) if version else ()


def _install() -> None:
    """Install from the distribution's backports, without adding them to the machine's sources."""
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    with tempfile.TemporaryDirectory() as name, services_left_alone(POLICY):
        folder = Path(name)
        (folder / "lists" / "partial").mkdir(parents=True)
        suites = (codename, f"{codename}-updates", f"{codename}-backports")
        lines = [f"deb {_archive(codename)} {suite} main" for suite in suites]
        (folder / "sources.list").write_text("\n".join(lines) + "\n")
        places = {
            "Etc::SourceList": folder / "sources.list",
            "Etc::SourceParts": "/dev/null",
            "State::Lists": folder / "lists",
        }
        options = [word for place, path in places.items() for word in ("-o", f"Dir::{place}={path}")]
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ("install", "--yes", "--no-install-recommends", "--target-release", suites[-1], PACKAGE)
        for command in (("update",), install):
            subprocess.run([*APT_GET, *options, *command], env=environ, check=True, capture_output=True, text=True)


def _archive(codename: str) -> str:
    """Return where this machine gets its packages from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", f"Codename: {codename}", "Component: main"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    if not found:
        raise NoZabbix(f"apt-get knows no archive of {codename}")
    return found[0]


@contextmanager
def running_zabbix(task: ZabbixTask, folder: Path) -> Iterator["Zabbix"]:
    """Run a server on a private PostgreSQL below the folder."""
    from servers.postgresql import private_server

    with (
        private_server(folder) as database,
        psycopg.connect(empty_database(database.url), autocommit=True) as connection,
    ):
        for script in ("schema", "images", "data"):
            connection.execute(gzip.decompress((SQL_FOLDER / f"{script}.sql.gz").read_bytes()))
        _configure(connection, task)
        port, own = _free_port(), folder / "zabbix"
        own.mkdir(mode=0o700)
        if database.account:
            shutil.chown(own, database.account)
        items = len(task.columns) * sum(map(len, task.indexes.values()))
        settings = {
            "ListenIP": "127.0.0.1",
            "ListenPort": port,
            "StatsAllowedIP": "127.0.0.1",
            "LogFile": own / "log",
            "PidFile": own / "pid",
            "SocketDir": own,
            "DBHost": "127.0.0.1",
            "DBPort": database.port,
            "DBName": "postgres",
            "DBUser": "facho",
            "DBPassword": database.password,
            "MaxConcurrentChecksPerPoller": task.at_once,
            "CacheSize": max(64 << 20, items * BYTES_PER_ITEM),
            "HistoryCacheSize": 256 << 20,
            "HistoryIndexCacheSize": max(16 << 20, items * INDEX_BYTES_PER_ITEM),
            "TrendCacheSize": max(16 << 20, items * INDEX_BYTES_PER_ITEM),
            "ValueCacheSize": max(16 << 20, _count_triggers(task) * CACHED_BYTES_PER_TRIGGER),
            "HousekeepingFrequency": 0,
            "Timeout": 30,
        }
        file = own / "conf"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        file.chmod(0o644)
        with running([PROGRAM, "-f", "-c", str(file)], user=database.account, stdout=subprocess.DEVNULL) as process:
            if database.process is None:
                raise RuntimeError("the database does not run")
            server = Zabbix(connection, own, port, (process.pid, database.process.pid), items)
            _wait(START_SECONDS, lambda: process.poll() is not None or server.is_ready(), own / "log")
            if process.returncode is not None:
                raise RuntimeError(f"{PROGRAM} ended with {process.returncode}")
            server.wait_until_idle()
            yield server
            server.verify()


class Zabbix:
    def __init__(
        self, connection: "psycopg.Connection[Any]", folder: Path, port: int, pids: tuple[int, int], items: int
    ) -> None:
        self.own, self.server = pids[:1], pids[1:]
        self._connection = connection
        self._folder = folder
        self._port = port
        self._items = items
        self._rounds = self._askings = self._idle_bytes = 0
        # A value of each walk, by which is seen whether the walk was stored.
        self._walks = dict(
            connection.execute(
                "SELECT master_itemid, min(itemid) FROM items WHERE type = %s AND itemid >= %s GROUP BY 1",
                [DEPENDENT, FIRST_ID],
            ).fetchall()
        )

    def is_ready(self) -> bool:
        """Tell whether it has read its configuration and polls."""
        log = self._folder / "log"
        return log.exists() and STARTED in log.read_text()

    def wait_until_idle(self) -> None:
        """Note how much memory it uses when nothing waits to be stored."""
        self._idle_bytes = self._read()[1]

    def poll(self) -> dict[str, Any]:
        """Have every OLT walked once; tell how many values were stored, and how many walks had to be asked again.

        A walk that timed out would not come by itself before its next day.
        """
        self._rounds += 1
        began_at, asked_again = time.time(), 0
        wanted = self._read()[0] + self._items
        self._ask(self._load_unread(began_at))
        give_up_at = began_at + ROUND_SECONDS
        read, moved_at = 0, began_at
        while (state := self._read())[0] < wanted or state[1] > self._idle_bytes or self._load_unread(began_at):
            now = time.time()
            if state[0] != read:
                read, moved_at = state[0], now
            elif now - moved_at > STALLED_SECONDS:
                unread = self._load_unread(began_at)
                self._ask(unread)
                asked_again, moved_at = asked_again + len(unread), now
            if now > give_up_at:
                raise TimeoutError((self._folder / "log").read_text()[-2000:])
            time.sleep(LOOK_SECONDS)
        return {"values": self._items, "asked_again": asked_again}

    def _ask(self, walks: Sequence[int]) -> None:
        """Have these walked, as by the frontend's "Execute now"."""
        # A task that is done stays for a while, so each asking has ids of its own.
        self._askings += 1
        first, now = self._askings * IDS_PER_ROUND, int(time.time())
        self._connection.execute(
            "INSERT INTO task (taskid, type, status, clock, ttl) SELECT %s + id, %s, %s, %s, 0 FROM unnest(%s) AS id",
            [first, CHECK_NOW, NEW_TASK, now, list(walks)],
        )
        self._connection.execute(
            "INSERT INTO task_check_now (taskid, itemid) SELECT %s + id, id FROM unnest(%s) AS id",
            [first, list(walks)],
        )

    def _load_unread(self, since: float) -> list[int]:
        """Return the walks of which no value was stored since then; a walk brings all of its values or none."""
        found = self._connection.execute(
            "SELECT walk FROM unnest(%s, %s) AS pair (walk, item) WHERE NOT EXISTS"
            " (SELECT FROM history WHERE itemid = item AND clock + ns / 1e9 >= %s AND clock >= %s)",
            [list(self._walks), list(self._walks.values()), since, int(since)],
        )
        return [walk for (walk,) in found]

    def count_stored(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM history").fetchone()[0])  # type: ignore[index]

    def verify(self) -> None:
        """Check by its history that every round brought what it counted, and by its log that no cache was too small."""
        if full := [line for line in (self._folder / "log").read_text().splitlines() if FULL_CACHE.search(line)]:
            raise RuntimeError(f"a cache of {PROGRAM} was too small: {full[0]}")
        if self.count_stored() < self._rounds * self._items:
            raise RuntimeError(f"{self.count_stored()} values of {self._rounds} rounds with {self._items} each")

    def schedule(self, interval_seconds: int) -> None:
        """Walk every OLT at an interval; 0: no more."""
        self._connection.execute(
            "UPDATE items SET delay = %s WHERE type = %s AND itemid >= %s",
            [f"{interval_seconds}s" if interval_seconds else NEVER, SNMP_AGENT, FIRST_ID],
        )
        command = [PROGRAM, "-c", str(self._folder / "conf"), "-R", "config_cache_reload"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def _read(self) -> tuple[int, int]:
        """Return by its own statistics how many values it has read, and the bytes of those that wait to be stored."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=START_SECONDS) as connection:
            request = b'{"request":"zabbix.stats"}'
            connection.sendall(b"ZBXD\x01" + struct.pack("<Q", len(request)) + request)
            with connection.makefile("rb") as reply:
                header = reply.read(HEADER_BYTES)
                if len(header) < HEADER_BYTES:
                    raise RuntimeError(f"{PROGRAM} does not answer: {(self._folder / 'log').read_text()[-1000:]}")
                (size,) = struct.unpack("<Q", header[-8:])
                cache = json.loads(reply.read(size))["data"]["wcache"]
        return int(cache["values"]["all"]), int(cache["history"]["used"])


def _configure(connection: "psycopg.Connection[Any]", task: ZabbixTask) -> None:
    """Have a host for each OLT, with a walk and an item for each value that depends on it."""
    # The triggers note changes for a server that runs; none does yet.
    connection.execute("SET session_replication_role = replica")
    connection.execute("UPDATE hosts SET status = 1 WHERE status = 0")
    # A busy machine is no silent OLT: one that is given up makes a round of fewer values.
    connection.execute("UPDATE config SET timeout_snmp_agent = %s", [f"{SNMP_TIMEOUT_SECONDS}s"])
    walk = f"walk[{','.join('.'.join(map(str, column.oid)) for column in task.columns)}]"
    hosts, interfaces, snmp, items, steps, functions, triggers = [], [], [], [], [], [], []
    next_id = count(FIRST_ID)
    for port, indexes in task.indexes.items():
        host = next(next_id)
        hosts.append((host, f"olt-{port}", f"olt-{port}"))
        interfaces.append((host, host, 1, SNMP_INTERFACE, str(port)))
        snmp.append((host, 2, 1, "public", task.repetitions))
        items.append((host, SNMP_AGENT, walk, host, "walk", "walk", NEVER, "0", TEXT, host, None))
        for column in task.columns:
            oid = ".".join(map(str, column.oid))
            for index in indexes:
                item, key = next(next_id), f"onu[{column.key},{index}]"
                items.append((item, DEPENDENT, "", host, key, key, "0", "31d", FLOAT, None, host))
                steps.append((2 * item, item, 1, SNMP_WALK_VALUE, f".{oid}.{index}\n0"))
                if column.scale != 1:
                    steps.append((2 * item + 1, item, 2, MULTIPLIER, str(column.scale)))
                if column.key in TRIGGERS:
                    functions.append((item, item, item, "last", "$"))
                    triggers.append((item, f"{{{item}}}{TRIGGERS[column.key]}", key))
    _copy(connection, "hosts (hostid, host, name)", hosts)
    _copy(connection, "host_rtdata (hostid)", [host[:1] for host in hosts])
    _copy(connection, "interface (interfaceid, hostid, main, type, port)", interfaces)
    _copy(connection, "interface_snmp (interfaceid, version, bulk, community, max_repetitions)", snmp)
    columns = "itemid, type, snmp_oid, hostid, name, key_, delay, history, value_type, interfaceid, master_itemid"
    _copy(connection, f"items ({columns})", items)
    _copy(connection, "item_rtdata (itemid)", [item[:1] for item in items])
    _copy(connection, "item_preproc (item_preprocid, itemid, step, type, params)", steps)
    _copy(connection, "triggers (triggerid, expression, description)", triggers)
    _copy(connection, "functions (functionid, itemid, triggerid, name, parameter)", functions)
    connection.execute("SET session_replication_role = origin")
    connection.execute("ANALYZE")


def _count_triggers(task: ZabbixTask) -> int:
    return sum(column.key in TRIGGERS for column in task.columns) * sum(map(len, task.indexes.values()))


def _copy(connection: "psycopg.Connection[Any]", table: str, rows: Iterable[tuple[object, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def _wait(seconds: float, is_so: Callable[[], bool], log: Path) -> None:
    give_up_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up_at:
            raise TimeoutError(log.read_text()[-2000:] if log.exists() else "no log")
        time.sleep(LOOK_SECONDS)
