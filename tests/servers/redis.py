"""A private Redis server: a free loopback port, a throw-away folder, nothing kept on disk."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

from servers.child import end_with_parent, free_port

START_SECONDS = 30
STOP_SECONDS = 10
PORT_ATTEMPTS = 5


class ServerDidNotStart(Exception):
    """The server ended or stayed silent; the message holds the end of its log."""


@dataclass(slots=True)
class RedisServer:
    """A running server, which can be killed and started again at the same place."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    clients: list["redis.Redis"] = field(default_factory=list)

    @property
    def url(self) -> str:
        """What REDIS_URL would hold."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> "redis.Redis":
        """Return a connection for looking into it."""
        client = redis.Redis(port=self.port)
        self.clients.append(client)
        return client

    def start(self) -> None:
        """Start on the port that it had, or on a free one."""
        for _ in range(PORT_ATTEMPTS):
            port = self.port or free_port()
            self.process = self._launch(port)
            if _answers(self.process, port):
                self.port = port
                return
        raise ServerDidNotStart((self.folder / "redis.log").read_text()[-2000:])

    def kill(self) -> None:
        """End it without a word, as a power cut does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        program = shutil.which("redis-server")
        if program is None:
            raise FileNotFoundError("Redis is not installed: run `make test`, or apt-get install redis-server")
        options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
        with (self.folder / "redis.log").open("ab") as output:
            return subprocess.Popen(
                [program, *options, "--dir", self.folder],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Out of the terminal's group: Ctrl-C reaches us, and we end the server after our connections.
                process_group=0,
                preexec_fn=end_with_parent,
            )


@contextmanager
def private_redis(folder: Path) -> Iterator[RedisServer]:
    """Run a server with its log below `folder`."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        for client in server.clients:
            client.close()
        server.kill()


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    for _ in range(START_SECONDS * 20):
        try:
            with redis.Redis(port=port) as client:
                client.ping()
        except redis.ConnectionError:
            try:
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            return False
        return True
    process.kill()
    process.wait()
    return False
