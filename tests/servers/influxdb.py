"""A private InfluxDB on a free loopback port, which is asked and written to over HTTP."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from servers.child import end_with_parent, free_port

START_SECONDS = 60
STOP_SECONDS = 10
DATABASE = "facho"
CONFIGURATION = """\
reporting-disabled = true
bind-address = "127.0.0.1:{own_port}"
[meta]
dir = "{folder}/meta"
[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
[http]
bind-address = "127.0.0.1:{port}"
"""


class InfluxDbDidNotStart(Exception):
    """It stayed silent; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class InfluxDb:
    port: int

    def write(self, lines: bytes) -> tuple[int, str]:
        """Write line protocol; returns the status and what was refused."""
        return self._post("/write", {"db": DATABASE}, lines)

    def points(self, measurement: str) -> list[dict[str, Any]]:
        """Return the points of a measurement, without what they do not have."""
        question = f'SELECT * FROM "{measurement}"'  # noqa: S608 a test's own name
        _status, answer = self._post("/query", {"db": DATABASE, "q": question}, b"")
        series = json.loads(answer)["results"][0].get("series", [])
        return [
            {name: value for name, value in zip(each["columns"], row, strict=True) if value is not None}
            for each in series
            for row in each["values"]
        ]

    def _post(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, str]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("POST", f"{path}?{urlencode(query)}", body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@contextmanager
def private_influxdb(folder: Path) -> Iterator[InfluxDb]:
    """Run a server below `folder`, with an empty database."""
    program = shutil.which("influxd")
    if program is None:
        raise FileNotFoundError("InfluxDB is not installed: run `make test-all`, or apt-get install influxdb")
    port, own_port = free_port(), free_port()
    (folder / "influxdb.conf").write_text(CONFIGURATION.format(folder=folder, port=port, own_port=own_port))
    with (folder / "log").open("ab") as output:
        process = subprocess.Popen(
            [program, "-config", folder / "influxdb.conf"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
            preexec_fn=end_with_parent,
        )
    server = InfluxDb(port)
    try:
        _wait(process, server, folder / "log")
        yield server
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _wait(process: "subprocess.Popen[bytes]", server: InfluxDb, log: Path) -> None:
    for _ in range(START_SECONDS * 10):
        try:
            server._post("/query", {"q": f"CREATE DATABASE {DATABASE}"}, b"")
        except ConnectionRefusedError:
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        return
    raise InfluxDbDidNotStart(log.read_text()[-2000:])
