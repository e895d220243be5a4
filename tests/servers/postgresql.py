"""A private PostgreSQL server: a free loopback port, a throw-away folder, another user when the run is root's."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg

from servers.child import end_with_parent, free_port

USER = "facho"
# PostgreSQL refuses to run as root: Debian's package brings the first user, every system has the second.
ACCOUNTS = ("postgres", "nobody")
START_SECONDS = 60
STOP_SECONDS = 20
PORT_ATTEMPTS = 5
# Nothing here outlives the run, so nothing waits for the disk.
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "120",
    "shared_buffers": "64MB",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}


class ServerDidNotStart(Exception):
    """The server ended or stayed silent; the message holds the end of its log."""


@dataclass(slots=True)
class PostgresqlServer:
    """A server below a folder, which can be stopped and started again at the same place."""

    folder: Path
    binaries: Path = field(default_factory=lambda: find_binaries())
    account: str | None = field(default_factory=lambda: _account())
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the (not yet created) database `facho`."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{USER}"

    def start(self) -> None:
        """Start on the port that it had, or on a free one; another process may take that first, so try a few."""
        data = self.folder / "postgresql"
        if not data.exists():
            _initialise(self.folder, self.binaries, self.account, self.password)
        for _ in range(PORT_ATTEMPTS):
            port = self.port or free_port()
            self.process = self._launch(data, port)
            if _answers(self.process, port, self.password):
                self.port = port
                return
        raise ServerDidNotStart((self.folder / "postgresql.log").read_text()[-2000:])

    def stop(self) -> None:
        """Stop at once: whoever is connected is thrown out."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=STOP_SECONDS)

    def _launch(self, data: Path, port: int) -> subprocess.Popen[bytes]:
        options = [f"-c{name}={value}" for name, value in (OPTIONS | {"port": str(port)}).items()]
        with (self.folder / "postgresql.log").open("ab") as output:
            return subprocess.Popen(
                [self.binaries / "postgres", "-D", data, *options],
                user=self.account,
                cwd=data,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Out of the terminal's group: Ctrl-C reaches us, and we end the server after our connections.
                process_group=0,
                preexec_fn=partial(end_with_parent, signal.SIGINT),
            )


@contextmanager
def private_server(folder: Path) -> Iterator[PostgresqlServer]:
    """Run a server below `folder`."""
    server = PostgresqlServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def private_postgresql(folder: Path) -> Iterator[str]:
    """Run a server below `folder` and yield the URL of its (not yet created) database `facho`."""
    with private_server(folder) as server:
        yield server.url


def find_binaries() -> Path:
    """Locate the newest server: Debian keeps it off the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    candidates = [*(path.parent for path in debian), *([Path(on_path).parent] if on_path else [])]
    if not candidates:
        raise FileNotFoundError("PostgreSQL's server is not installed: run `make test`, or apt-get install postgresql")
    return candidates[-1]


def find_client(name: str) -> Path:
    """Locate a program that speaks to a server; it need not be where the server's are."""
    found = shutil.which(name, path=os.pathsep.join([str(find_binaries()), os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise FileNotFoundError(f"{name} is not installed: run `make test`, or apt-get install postgresql-client")
    return Path(found)


def _account() -> str | None:
    """Name the user to run as, or nothing when this process is no root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ACCOUNTS if name in known)


def _initialise(folder: Path, binaries: Path, account: str | None, password: str) -> None:
    data, password_file = folder / "postgresql", folder / "postgresql-password"
    data.mkdir(mode=0o700)
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    if account:
        folder.chmod(0o711)
        for path in (data, password_file):
            shutil.chown(path, account)
    command: list[str | Path] = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        USER,
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
    ]
    command += ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]
    done = subprocess.run(command, user=account, cwd=data, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerDidNotStart(done.stderr)


def _answers(server: subprocess.Popen[bytes], port: int, password: str) -> bool:
    for _ in range(START_SECONDS * 10):
        try:
            psycopg.connect(f"postgresql://{USER}:{password}@127.0.0.1:{port}/postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            try:
                server.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            return False
        return True
    server.kill()
    server.wait()
    return False
