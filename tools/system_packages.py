"""Installs the programs that the tests need: with apt-get when root, else it names the one command to run.

Packages are installed without starting their services; the tests start servers of their own.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
# The answer by which Debian's packages leave their services alone.
FORBID_STARTING = "#!/bin/sh\nexit 101\n"
APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0")


@dataclass(frozen=True, slots=True)
class Need:
    """A program that tests start, and the packages that bring it."""

    program: str
    packages: tuple[str, ...]
    # Places off the PATH where Debian may keep the program.
    pattern: str = ""

    @property
    def is_met(self) -> bool:
        return bool(shutil.which(self.program) or (self.pattern and any(Path("/").glob(self.pattern))))


NEEDS = (
    Need("cc", ("gcc", "libc6-dev")),
    Need("python3-config", ("python3-dev",)),
    Need("initdb", ("postgresql",), pattern="usr/lib/postgresql/*/bin/initdb"),
    Need("redis-server", ("redis-server",)),
    Need("systemd-analyze", ("systemd",)),
    Need("chromium", ("chromium", "fonts-liberation")),
    Need("snmpbulkwalk", ("snmp",)),
    Need("promtool", ("prometheus",)),
    Need("snmpd", ("snmpd",), pattern="usr/sbin/snmpd"),
    Need("zabbix_server", ("zabbix-server-pgsql",), pattern="usr/sbin/zabbix_server"),
    Need("nginx", ("nginx-light",), pattern="usr/sbin/nginx"),
    Need("openssl", ("openssl",)),
    Need("slapd", ("slapd",), pattern="usr/sbin/slapd"),
)
# Of the tests that `make test-all` alone runs, such as those that boot a Debian or start containers.
NEEDS_OF_REST = (
    Need("caddy", ("caddy",)),
    Need("influxd", ("influxdb",)),
    Need("supervisord", ("supervisor",)),
    Need("mmdebstrap", ("mmdebstrap",)),
    Need("systemd-nspawn", ("systemd-container",)),
    Need("ip", ("iproute2",)),
    Need("dockerd", ("docker.io",), pattern="usr/sbin/dockerd"),
    Need("docker", ("docker.io",)),
)


def main(tier: str = "push") -> int:
    needs = [*NEEDS, *(NEEDS_OF_REST if tier == "rest" else ())]
    missing = packages_for(need for need in needs if not need.is_met)
    if not missing:
        return 0
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(how_to_install(missing), file=sys.stderr)
        return 1
    print(f"-- installing {' '.join(missing)}", flush=True)
    try:
        install(missing)
    except subprocess.CalledProcessError as error:
        print(f"{error.stdout}\n{' '.join(error.cmd)} failed; its output stands above", file=sys.stderr)
        return 1
    left = [need.program for need in needs if not need.is_met]
    if left:
        print(f"Installed, and still not found: {' '.join(left)}", file=sys.stderr)
    return 1 if left else 0


def packages_for(needs: Iterable[Need]) -> list[str]:
    return list(dict.fromkeys(package for need in needs for package in need.packages))


def how_to_install(packages: list[str]) -> str:
    names = " ".join(packages)
    return f"The tests need {names}. Run:\n  sudo apt-get install --no-install-recommends {names}"


def install(packages: list[str]) -> None:
    """Run apt-get without questions, and without starting a service."""
    with services_left_alone(POLICY):
        _run([*APT_GET, "update"])
        _run([*APT_GET, "install", "--yes", "--no-install-recommends", *packages])


@contextmanager
def services_left_alone(policy: Path) -> Iterator[None]:
    """Forbid the start of services meanwhile; a policy that the machine already has stays as it is."""
    try:
        with policy.open("x") as file:
            file.write(FORBID_STARTING)
    except FileExistsError:
        yield
        return
    try:
        policy.chmod(0o755)
        yield
    finally:
        policy.unlink()


def _run(command: list[str]) -> None:
    """Keep the long output for the case that it is needed."""
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
