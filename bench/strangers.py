"""What strangers do to a running product: each attack for a while, and how long `/livez` takes meanwhile.

`python -m bench.strangers` starts `facho run` in a folder of its own and prints the table. The attacker is a process of
its own, so that its work is not taken for the product's.
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from statistics import quantiles

from bench.processes import cpu_seconds, own_module, running
from bench.report import Section, Target, save

USER, PASSWORD = "ana", "correct horse battery"
MARKS = "\u0315\u0300"
LOOK_SECONDS = 0.05
SAMPLE_SECONDS = 0.5
PATIENCE_SECONDS = 120.0
# What the issue promises on a machine that does nothing else.
LONGEST_P99_MS = 200.0
MOST_MB, MOST_TEMPORARY_MB = 400.0, 0.0
# A connection that reads nothing does not hear that it was closed, so it is opened again after this time.
UNREAD_SECONDS = 25.0
IDLE = "nothing"
BEGUN = "begun\n"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def cookies(self) -> str:
        return "; ".join(line.partition(";")[0] for line in self.headers.get_all("Set-Cookie", []))


def read_answer(connection: socket.socket) -> Answer:
    """Read one answer and close the connection."""
    with connection, http.client.HTTPResponse(connection) as answer:
        answer.begin()
        return Answer(answer.status, answer.headers, answer.read())


@dataclass(frozen=True, slots=True)
class Web:
    """A product that runs: where it answers, which process does, and what opens it."""

    port: int
    pid: int
    token: str
    log: Path

    def send(self, request: bytes, *, timeout: float = PATIENCE_SECONDS) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        with suppress(ConnectionError):  # an answer may have come before everything was sent
            connection.sendall(request)
        return connection

    def get(self, path: str, *lines: str, timeout: float = PATIENCE_SECONDS) -> Answer:
        return read_answer(self.send(request_head("GET", path, *lines, "Connection: close"), timeout=timeout))

    def post(self, path: str, fields: Mapping[str, str], cookie: str) -> Answer:
        return read_answer(self.send(form_request(path, fields, cookie)))

    def open_form(self, path: str = "/login/", cookie: str = "") -> tuple[str, str]:
        """Return the cookie and the token that a form needs to be read at all."""
        answer = self.get(path, f"Cookie: {cookie}")
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.body.decode()))
        return "; ".join(filter(None, [answer.cookies, cookie])), token

    def log_in(self) -> str:
        """Return the cookie of somebody who is signed in."""
        cookie, token = self.open_form()
        fields = {"csrfmiddlewaretoken": token, "username": USER, "password": PASSWORD}
        return self.post("/login/", fields, cookie).cookies


def request_head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def form_request(path: str, fields: Mapping[str, str], cookie: str) -> bytes:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()]
    body = ("".join(parts) + "--b--\r\n").encode()
    lines = ("Content-Type: multipart/form-data; boundary=b", f"Content-Length: {len(body)}", "Connection: close")
    return request_head("POST", path, f"Cookie: {cookie}", *lines) + body


@dataclass(frozen=True, slots=True)
class Figures:
    """How long `/livez` took, and the most that the process held meanwhile."""

    milliseconds: tuple[float, ...]
    memory_mb: float
    temporary_mb: float
    descriptors: int
    threads: int
    cpu_seconds: float

    @property
    def p50(self) -> float:
        return quantiles(self.milliseconds, n=100, method="inclusive")[49]

    @property
    def p99(self) -> float:
        """What one in a hundred takes longer than."""
        return quantiles(self.milliseconds, n=100, method="inclusive")[98]


@contextmanager
def running_web(folder: Path, *, soft_descriptors: int = 1024) -> Iterator[Web]:
    """Run the embedded product with one administrator, under the usual limit of descriptors."""
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    (folder / "temporary").mkdir()
    environ |= {"FACHO_DATA_DIR": str(folder / "data"), "FACHO_LANGUAGE": "en", "TMPDIR": str(folder / "temporary")}
    facho = own_module("facho.core.cli.main")

    def tell(*arguments: str, words: str = "") -> str:
        return subprocess.run(
            [*facho, *arguments], env=environ, input=words, check=True, capture_output=True, text=True
        ).stdout

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    tell("migrate")
    tell("user", "create", USER, "--role", "admin", "--password-stdin", words=PASSWORD + "\n")
    token = tell("token", "create", USER).split()[-1]
    log = folder / "log"
    run = [*facho, "run", "--bind", "127.0.0.1:0"]
    with (
        log.open("w") as stderr,
        running(run, env=environ, stdout=subprocess.PIPE, stderr=stderr, preexec_fn=limit) as process,
    ):
        port = int(next(line for line in process.stdout or () if line.startswith("url:")).rpartition(":")[2])
        web = Web(port, _web_child(process.pid), token, log)
        web.get("/livez")
        yield web


def _web_child(parent: int) -> int:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return next(int(pid) for pid in children if "processes.web" in Path(f"/proc/{pid}/cmdline").read_text())


def measure(web: Web, attack: str, seconds: float) -> Figures:
    """Ask `/livez` over and over, each time over a new connection, while the attack runs."""
    target = json.dumps({"port": web.port, "pid": web.pid, "token": web.token, "log": str(web.log)})
    command = own_module("bench.strangers", "--attacker", attack, "--target", target)
    if attack == IDLE:
        return _look(web, seconds)
    with running(command, stdout=subprocess.PIPE) as attacker:
        if next(iter(attacker.stdout or ()), "") != BEGUN:
            raise RuntimeError(f"{attack} did not begin")
        figures = _look(web, seconds)
        if attacker.poll() is not None:
            raise RuntimeError(f"{attack} ended before its time")
        return figures


def _look(web: Web, seconds: float) -> Figures:
    times: list[float] = []
    samples = [_sample(web.pid)]
    before, sampled_at, end = cpu_seconds(web.pid), time.monotonic(), time.monotonic() + seconds
    while (begun := time.monotonic()) < end or len(times) < 2:
        with suppress(OSError, http.client.HTTPException):
            web.get("/livez", timeout=30)
        times.append((time.monotonic() - begun) * 1000)
        if time.monotonic() - sampled_at > SAMPLE_SECONDS:
            samples.append(_sample(web.pid))
            sampled_at = time.monotonic()
        time.sleep(LOOK_SECONDS)
    memory, temporary, descriptors, threads = (max(column) for column in zip(*samples, strict=True))
    return Figures(tuple(times), memory, temporary, int(descriptors), int(threads), cpu_seconds(web.pid) - before)


def _sample(pid: int) -> tuple[float, float, int, int]:
    """Return memory and temporary files in MB, descriptors and threads; a temporary file has no name but a size."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    temporary, descriptors = 0, 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        descriptors += 1
        with suppress(OSError):
            name = os.readlink(entry)
            if name.endswith("(deleted)") or "/temporary/" in name:
                temporary += entry.stat().st_size
    return int(status["VmRSS"].split()[0]) / 1024, temporary / 2**20, descriptors, int(status["Threads"])


# The attacks. Each one runs until it is ended.

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _over_and_over(web: Web, connections: int, act: Act, *, pause: float = 0.0) -> None:
    """Do it over so many connections at once; one that is closed is opened again, at most once a second if idle."""

    async def one() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                streams = await asyncio.open_connection("127.0.0.1", web.port)
                try:
                    await act(*streams)
                finally:
                    streams[1].transport.abort()
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for _connection in range(connections):
            group.create_task(one())


def _asking(request: bytes) -> Act:
    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request)
        with suppress(ConnectionError):
            await writer.drain()
        await _read_answer(reader)

    return ask


async def _read_answer(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


def login_request(web: Web, letters: int) -> bytes:
    """Make the form of a login with a name of so many combining marks."""
    cookie, token = web.open_form()
    fields = {"csrfmiddlewaretoken": token, "username": MARKS * (letters // 2), "password": "x"}
    return form_request("/login/", fields, cookie)


async def login_names(web: Web) -> None:
    """Log in with names of 60 kB and of 120 kB of combining marks."""
    async with asyncio.TaskGroup() as group:
        for letters in (30_000, 60_000):
            group.create_task(_over_and_over(web, 4, _asking(login_request(web, letters))))


async def searches(web: Web) -> None:
    """Search for combining marks, in an address of 60 kB and in one that is just short enough."""
    async with asyncio.TaskGroup() as group:
        for letters in (1_200, 10_000):
            text = urllib.parse.quote(MARKS * (letters // 2))
            lines = (f"Authorization: Bearer {web.token}", "Connection: close")
            request = request_head("GET", f"/api/v1/olts/?search={text}", *lines)
            group.create_task(_over_and_over(web, 4, _asking(request)))


async def large_bodies(web: Web) -> None:
    """Send 30 MB to the login, over twenty connections."""
    await _over_and_over(
        web, 20, _asking(request_head("POST", "/login/", f"Content-Length: {30 * 2**20}") + bytes(30 * 2**20))
    )


async def endless_bodies(web: Web) -> None:
    """Send a body without an end in large pieces, over twenty connections."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request_head("POST", "/login/", "Transfer-Encoding: chunked"))
        while True:
            writer.write(b"10000\r\n" + bytes(2**16) + b"\r\n")
            await writer.drain()

    await _over_and_over(web, 20, act)


async def tiny_chunks(web: Web) -> None:
    """Send bodies a byte a chunk: each costs the server as much as a large one."""
    body = b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n"
    await _over_and_over(web, 10, _asking(request_head("POST", "/login/", "Transfer-Encoding: chunked") + body))


async def idle_connections(web: Web) -> None:
    """Hold 1,100 connections and say nothing."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    await _over_and_over(web, 1_100, act, pause=1.0)


def _dripping(head: bytes) -> Act:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not reader.at_eof():
            writer.write(b"x")
            await writer.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(2**16), timeout=1.0)

    return act


async def slow_heads(web: Web) -> None:
    """Send a head a byte a second."""
    await _over_and_over(web, 600, _dripping(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "), pause=1.0)


async def slow_bodies(web: Web) -> None:
    """Announce a body and send a byte of it a second, or none."""
    await _over_and_over(web, 600, _dripping(request_head("POST", "/login/", "Content-Length: 60000")), pause=1.0)


async def slow_readers(web: Web) -> None:
    """Ask for what is large and read none of it."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        path = "/static/admin/js/vendor/xregexp/xregexp.js"
        writer.write(request_head("GET", path) + request_head("GET", "/api/v1/schema/"))
        await asyncio.sleep(UNREAD_SECONDS)

    await _over_and_over(web, 300, act, pause=1.0)


async def many_at_once(web: Web) -> None:
    """Ask for a page over two hundred connections at once."""
    await _over_and_over(web, 200, _asking(request_head("GET", "/login/", "Connection: close")))


async def schema_reads(web: Web) -> None:
    """Ask for the description of the API over fifty connections at once."""
    await _over_and_over(web, 50, _asking(request_head("GET", "/api/v1/schema/", "Connection: close")))


ATTACKS: Mapping[str, Callable[[Web], Awaitable[None]]] = {
    act.__name__.replace("_", " "): act
    for act in (
        login_names,
        searches,
        large_bodies,
        endless_bodies,
        tiny_chunks,
        idle_connections,
        slow_heads,
        slow_bodies,
        slow_readers,
        many_at_once,
        schema_reads,
    )
}


def measure_section(seconds: float, attacks: list[str]) -> Section:
    """Run every attack on one product; the first row is what `/livez` takes when nobody attacks."""
    with tempfile.TemporaryDirectory(prefix="facho-strangers-") as folder, running_web(Path(folder)) as web:
        figures = {}
        for name in [IDLE, *attacks]:
            figures[name] = measure(web, name, seconds)
            print(f"{name}: p99 {figures[name].p99:.0f} ms", file=sys.stderr, flush=True)
        lines = len(web.log.read_text().splitlines())
    head = ("Attack", "livez p50, ms", "p99, ms", "slowest, ms", "p99 : nothing's", "Memory, MB", "Temporary, MB")
    rows = [
        [
            name,
            each.p50,
            each.p99,
            max(each.milliseconds),
            each.p99 / figures[IDLE].p99,
            each.memory_mb,
            each.temporary_mb,
            float(each.descriptors),
            float(each.threads),
            each.cpu_seconds / seconds,
        ]
        for name, each in figures.items()
    ]
    targets = [Target(f"livez p99, ms: {name}", each.p99, LONGEST_P99_MS) for name, each in figures.items()]
    targets.append(Target("Memory of the web process, MB", max(f.memory_mb for f in figures.values()), MOST_MB))
    targets.append(Target("Temporary files, MB", max(f.temporary_mb for f in figures.values()), MOST_TEMPORARY_MB))
    targets.append(Target("Lines in the log", lines, 60 * len(figures) * max(seconds, 60) / 60))
    return Section(
        f"Strangers: each attack for {seconds:.0f} s", (*head, "Descriptors", "Threads", "Cores"), rows, targets
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.strangers", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"one of: {', '.join(ATTACKS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each attack runs (default: 60)")
    parser.add_argument("--attacker", choices=ATTACKS, help=argparse.SUPPRESS)
    parser.add_argument("--target", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attacker:
        return _attack(arguments.attacker, Web(**{**arguments.target, "log": Path(arguments.target["log"])}))
    section = measure_section(arguments.seconds, arguments.attacks or list(ATTACKS))
    print(section.markdown)
    save("strangers", [section])
    return 0 if all(target.is_met for target in section.targets) else 1


def _attack(name: str, web: Web) -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    attack = ATTACKS[name](web)
    print(BEGUN, end="", flush=True)
    with suppress(KeyboardInterrupt):
        asyncio.run(attack)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
