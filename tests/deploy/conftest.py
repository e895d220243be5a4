"""What the tests of installations need of the machine they run on; where it is not there, they say what is missing."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_debian import ROOT, CannotMake, Machine, booted, connect, later_migration, make_base, usual_umask
from container_host import Docker, docker_host

from servers.previous_release import is_in_checkout, show


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked packages as files, also those of the previous release."""
    if not is_in_checkout():
        pytest.skip("the previous release is not in this checkout: git fetch --unshallow")
    folder = tmp_path_factory.mktemp("wheels")
    previous = tmp_path_factory.mktemp("previous") / "run.txt"
    previous.write_text(show("requirements/run.txt"))
    with usual_umask():
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "-d", folder]
        for locked in (ROOT / "requirements/run.txt", previous):
            subprocess.run([*download, "-r", locked], check=True)
    return folder


@pytest.fixture(scope="session")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Debian to copy."""
    try:
        with usual_umask():
            return make_base(tmp_path_factory.mktemp("debian"))
    except CannotMake as error:
        pytest.skip(str(error))


@pytest.fixture
def machine(debian: Path, wheels: Path) -> Iterator[Machine]:
    """A machine that has just booted, with the checkout and nothing of Facho."""
    with usual_umask(), booted(debian, wheels) as machine:
        yield machine


@pytest.fixture
def machines(debian: Path, wheels: Path) -> Iterator[list[Machine]]:
    """Two machines that reach each other as 192.0.2.1 and 192.0.2.2, and nobody else."""
    with usual_umask(), booted(debian, wheels, "one") as first, booted(debian, wheels, "two") as second:
        connect(first, second)
        yield [first, second]


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The Debian package of this checkout as `make deb` writes it, and the same as a later version with a migration."""
    folder = tmp_path_factory.mktemp("packages")
    checkout, tree, second = folder / "checkout", folder / "tree", folder / "second.deb"
    with usual_umask():
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout], check=True)
        (checkout / ".venv").symlink_to(ROOT / ".venv")
        subprocess.run(["make", "--old-file=.venv/run.stamp", "deb"], cwd=checkout, check=True)
        (first,) = (checkout / "dist").glob("facho_*.deb")
        subprocess.run(["dpkg-deb", "-R", first, tree], check=True)
        control = tree / "DEBIAN/control"
        control.write_text(control.read_text().replace("\nArchitecture:", ".1\nArchitecture:"))
        (migrations,) = tree.glob("**/facho/hosts/migrations")
        (migrations / "0999_later.py").write_text(later_migration())
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree, second], check=True)
    return first, second


@pytest.fixture
def caddy() -> str:
    return _installed("caddy", package="caddy")


@pytest.fixture
def supervisord() -> str:
    return _installed("supervisord", package="supervisor")


def _installed(name: str, *, package: str) -> str:
    """Return a program that only the tests of `make test-all` install."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"not installed: {package}")
    return program


@pytest.fixture
def docker(tmp_path: Path, wheels: Path) -> Iterator[Docker]:
    """A Docker of the test's own, with base images made of Debian packages."""
    try:
        with usual_umask(), docker_host(tmp_path, wheels) as host:
            yield host
    except CannotMake as error:
        pytest.skip(str(error))
