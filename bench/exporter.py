"""Debian's prometheus-snmp-exporter as a client: it walks when it is scraped, and tells metrics as text."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.system_packages import Need, how_to_install, install

from bench.clients import Cost, Task
from bench.processes import cpu_seconds, peak_mb, running
from facho.polling.snmp.ber import Tag
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.column import Column

PROGRAM = "prometheus-snmp-exporter"
MODULE = "fleet"
START_SECONDS = 20
SCRAPE_SECONDS = 120


def is_available() -> bool:
    """Bring Debian's package if it is missing and that can be done here; without it one line is missing."""
    need = Need(PROGRAM, (PROGRAM,))
    if not need.is_met and os.geteuid() == 0 and shutil.which("apt-get"):
        install(list(need.packages))
    if not need.is_met:
        print(how_to_install(list(need.packages)), file=sys.stderr)
    return need.is_met


@contextmanager
def running_exporter(task: Task, folder: Path) -> Iterator["Exporter"]:
    """Run the exporter on a free loopback port, with one module that walks the columns of the task."""
    config = folder / "snmp.yml"
    # JSON is YAML, and the exporter reads YAML.
    config.write_text(json.dumps({MODULE: _module(task)}))
    port = _free_port()
    command = [PROGRAM, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        exporter = Exporter(process.pid, port)
        exporter.wait_until_ready()
        yield exporter


class Exporter:
    """A running exporter. Only its own CPU is counted, not that of the scraper."""

    def __init__(self, pid: int, port: int) -> None:
        self._pid = pid
        self._url = f"http://127.0.0.1:{port}"

    def wait_until_ready(self) -> None:
        for _ in range(START_SECONDS * 20):
            try:
                with urllib.request.urlopen(self._url, timeout=SCRAPE_SECONDS):  # noqa: S310 - our own loopback
                    return
            except urllib.error.URLError:
                time.sleep(0.05)
        raise TimeoutError(f"{PROGRAM} does not answer")

    def walk(self, task: Task) -> Cost:
        """Scrape all OLTs at once."""
        wall, cpu = time.perf_counter(), cpu_seconds(self._pid)
        with ThreadPoolExecutor(len(task.ports)) as pool:
            rows = sum(pool.map(self._scrape, task.ports))
        cpu, wall = cpu_seconds(self._pid) - cpu, time.perf_counter() - wall
        return Cost(rows, cpu, wall, peak_mb(self._pid))

    def _scrape(self, port: int) -> int:
        query = urllib.parse.urlencode({"target": f"127.0.0.1:{port}", "module": MODULE})
        with urllib.request.urlopen(f"{self._url}/snmp?{query}", timeout=SCRAPE_SECONDS) as reply:  # noqa: S310
            return len(re.findall(rb"^column_\d+\{", reply.read(), re.MULTILINE))


def _module(task: Task) -> dict[str, object]:
    columns = task.columns
    return {
        "walk": [format_oid(column.oid) for column in columns],
        "version": 2,
        "max_repetitions": task.repetitions,
        "timeout": "30s",
        "auth": {"community": task.community},
        "metrics": [_metric(number, column) for number, column in enumerate(columns)],
    }


def _metric(number: int, column: Column) -> dict[str, object]:
    labels = [{"labelname": f"index_{part}", "type": "gauge"} for part in range(column.index.length)]
    return {
        "name": f"column_{number}",
        "oid": format_oid(column.oid),
        "help": column.key,
        "type": "OctetString" if column.rule.tag is Tag.OCTET_STRING else "gauge",
        "indexes": labels,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
