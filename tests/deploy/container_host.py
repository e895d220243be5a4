"""A Docker of a test's own: in a network of its own, with the images of compose.yaml made of Debian packages."""

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bare_debian import MAKE, PIP, CannotMake

TOOLS = ("mmdebstrap", "unshare", "nsenter", "ip", "dockerd", "docker", "script")
PACKAGES = (
    *("python3", "python3-venv", "python3-dev", "python-is-python3", "gcc", "libc6-dev", "ca-certificates"),
    *("postgresql", "redis-server", "caddy"),
)
START_SECONDS = 60
# No registry can be asked: these take the place of the images that deploy/ names.
IMAGES = {
    "python": "python:3.11-bookworm",
    "slim": "python:3.11-slim-bookworm",
    "postgres": "postgres:15",
    "redis": "redis:7",
    "caddy": "caddy:2",
}
DOCKERFILE = """\
FROM debian-with-all AS python
COPY pip.conf /etc/pip.conf
COPY wheels /srv/wheels
FROM debian-with-all AS slim
FROM debian-with-all AS postgres
COPY start-postgres /usr/local/bin/
RUN mkdir -p /var/lib/postgresql/data && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
STOPSIGNAL SIGINT
CMD ["start-postgres"]
FROM debian-with-all AS redis
FROM debian-with-all AS caddy
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile"]
"""
# What the official image does with the three variables that compose.yaml sets.
START_POSTGRES = """\
#!/bin/sh
set -e
data=/var/lib/postgresql/data
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
install -d -o postgres -g postgres /var/run/postgresql
if [ ! -s "$data/PG_VERSION" ]; then
    chown -R postgres "$data"
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    chown postgres /tmp/password
    as_postgres initdb -D "$data" -U "$POSTGRES_USER" --auth=scram-sha-256 --auth-local=trust --pwfile=/tmp/password
    echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
    echo "create database $POSTGRES_DB" | as_postgres postgres --single -D "$data" postgres
fi
exec setpriv --reuid postgres --regid postgres --clear-groups \\
    postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
"""


class Docker:
    """The client of one Docker, and its network."""

    def __init__(self, folder: Path, daemon: int) -> None:
        own = {"DOCKER_HOST": f"unix://{folder}/docker.sock", "DOCKER_CONFIG": f"{folder}/client"}
        self.environ = {**os.environ, **own}
        self._daemon = daemon

    def run(self, script: str, *, folder: Path, stdin: str = "") -> str:
        """Run lines one after the other; the first that fails is named, with what it printed."""
        done = self.try_to(script, folder=folder, stdin=stdin)
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
        return done.stdout

    def try_to(self, script: str, *, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        # Root needs no sudo, and may have none.
        shell = ["bash", "-exc", f'sudo() {{ "$@"; }}\n{script}']
        return subprocess.run(
            shell, cwd=folder, env=self.environ, input=stdin, capture_output=True, text=True, check=False
        )

    def get(self, url: str, seconds: float) -> str:
        """Return what an address of the network answers with 200, waiting for that."""
        ask = (
            "import ssl, sys, urllib.request as u\n"
            "c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\n"
            "print(u.urlopen(sys.argv[1], timeout=10, context=c).read().decode())"
        )
        give_up_at = time.monotonic() + seconds
        while True:
            done = subprocess.run(
                ["nsenter", "-t", str(self._daemon), "-n", "timeout", "15", "/usr/bin/python3", "-c", ask, url],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                return done.stdout
            assert time.monotonic() < give_up_at, done.stderr[-500:]
            _pause(1)


@contextmanager
def docker_host(folder: Path, wheels: Path) -> Iterator[Docker]:
    """Start a Docker in a folder; its containers, images and volumes go with it."""
    if os.geteuid() != 0:
        raise CannotMake("only root can run containers here")
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        raise CannotMake(f"not installed: {' '.join(missing)}")
    _provide_compose(folder)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    command = [
        *("dockerd", "--data-root", folder / "docker", "--exec-root", folder / "exec", "--pidfile", folder / "pid"),
        *("-H", f"unix://{folder}/docker.sock", "--default-ulimit", f"nofile={limit}:{limit}"),
    ]
    script = "ip link set lo up && exec " + " ".join(map(str, command))
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", script], stdout=log, stderr=log)
    docker = Docker(folder, daemon.pid)
    try:
        _wait(docker, daemon, folder)
        _make_images(docker, folder, wheels)
        yield docker
    finally:
        docker.try_to("docker ps --quiet | xargs --no-run-if-empty docker kill", folder=folder)
        daemon.terminate()
        daemon.wait(60)


def _provide_compose(folder: Path) -> None:
    """Take the compose of Debian 13 where the client has none: Debian 12 has the first generation only."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return
    made = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=extract", "--include=docker-compose", "trixie", folder / "compose"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise CannotMake(f"docker has no compose, and mmdebstrap found none: {made.stderr.strip().splitlines()[-1:]}")
    plugins = folder / "client/cli-plugins"
    plugins.mkdir(parents=True)
    shutil.copy(folder / "compose/usr/libexec/docker/cli-plugins/docker-compose", plugins)


def _wait(docker: Docker, daemon: "subprocess.Popen[bytes]", folder: Path) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while docker.try_to("docker info", folder=folder).returncode:
        if daemon.poll() is not None or time.monotonic() > give_up_at:
            raise CannotMake(f"dockerd: {(folder / 'log').read_text()[-300:]}")
        _pause(1)
    if docker.try_to("docker network create probe && docker network rm probe", folder=folder).returncode:
        raise CannotMake("dockerd cannot make networks here")


def _make_images(docker: Docker, folder: Path, wheels: Path) -> None:
    archive = folder / "debian.tar"
    made = subprocess.run(
        [*MAKE, f"--include={','.join(PACKAGES)}", "bookworm", archive],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise CannotMake(f"mmdebstrap: {made.stderr.strip().splitlines()[-1:]}")
    context = folder / "context"
    shutil.copytree(wheels, context / "wheels")
    (context / "pip.conf").write_text(PIP)
    (context / "start-postgres").write_text(START_POSTGRES)
    (context / "start-postgres").chmod(0o755)
    (context / "Dockerfile").write_text(DOCKERFILE)
    docker.run(f"docker import {archive} debian-with-all", folder=context)
    archive.unlink()
    for target, name in IMAGES.items():
        docker.run(f"DOCKER_BUILDKIT=0 docker build --quiet --target {target} --tag {name} .", folder=context)


def _pause(seconds: float) -> None:
    """Let the others go on."""
    subprocess.run(["sleep", str(seconds)], check=True)
