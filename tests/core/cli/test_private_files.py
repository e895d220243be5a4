"""What the product writes is its owner's alone, whatever the umask, and whatever folder was there before."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_runner import Outcome

from facho.core.data_folder import DataFolder, close_to_others
from servers.child import end_with_parent

pytestmark = pytest.mark.any_database

ADD = ("olt", "add", "centro", "127.0.0.1", "--community-stdin", "--no-jobs")


def in_the_open() -> None:
    """Begin the process as a careless shell would."""
    os.umask(0)
    end_with_parent()


def facho(environ: dict[str, str], *arguments: str, stdin: bytes = b"") -> Outcome:
    command = [sys.executable, "-m", "facho.core.cli.main", *arguments]
    done = subprocess.run(
        command, env=environ, input=stdin, capture_output=True, check=False, timeout=120, preexec_fn=in_the_open
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def running(environ: dict[str, str]) -> Iterator[list[str]]:
    """Run the product until it tells its address; what it had to say is complete when the block is left."""
    command = [sys.executable, "-m", "facho.core.cli.main", "run", "--bind", "127.0.0.1:0"]
    product = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=in_the_open
    )
    reported: list[str] = []
    try:
        assert product.stdout is not None
        assert product.stdout.readline().startswith("url: ")
        yield reported
    finally:
        product.terminate()
        reported.append(product.communicate(timeout=60)[1])


def open_to_others(*places: Path) -> list[str]:
    """List everything at and below these places that anybody but the owner has a right on."""
    below = [path for place in places for path in [place, *place.rglob("*")]]
    return [f"{path} {path.stat().st_mode:o}" for path in below if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]


@pytest.mark.parametrize("was_there", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_everything_is_private_without_a_umask(
    product_environ: dict[str, str], tmp_path: Path, *, was_there: bool
) -> None:
    data, out = Path(product_environ["FACHO_DATA_DIR"]), tmp_path / "out"
    out.mkdir(mode=0o700)
    if was_there:
        data.mkdir()
        data.chmod(0o755)

    with running(product_environ) as reported:
        assert facho(product_environ, *ADD, stdin=b"canary").status == 0
        assert facho(product_environ, "backup", str(out / "backup")).status == 0
        assert facho(product_environ, "olt", "export", str(out / "olts.csv")).status == 0
        found = {path.name for path in data.iterdir()}
        exposed = open_to_others(data, out)

    assert {"facho.sqlite3", "facho.sqlite3-wal", "facho.sqlite3-shm", "engine.lock", "migrate.lock"} <= found
    assert exposed == []
    assert ("could read" in reported[0]) is was_there


@pytest.mark.usefixtures("made_database")
def test_what_an_older_version_left_open_is_closed_and_reported(product_environ: dict[str, str]) -> None:
    data = Path(product_environ["FACHO_DATA_DIR"])
    assert facho(product_environ, *ADD, stdin=b"canary").status == 0
    (data / "logs").mkdir()
    for path in [data, *data.rglob("*")]:
        path.chmod(0o755)

    done = facho(product_environ, "olt", "list")
    again = facho(product_environ, "olt", "list")

    assert done.err == f"facho: Other users of this machine could read {data} until now; it is closed to them.\n"
    assert again.err == ""
    assert open_to_others(data) == []


@pytest.mark.usefixtures("made_database")
def test_a_restored_folder_is_closed(product_environ: dict[str, str], tmp_path: Path) -> None:
    assert facho(product_environ, *ADD, stdin=b"canary").status == 0
    assert facho(product_environ, "backup", str(tmp_path / "backup")).status == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o755)

    done = facho({**product_environ, "FACHO_DATA_DIR": str(elsewhere)}, "restore", str(tmp_path / "backup"))

    assert done.status == 0
    assert open_to_others(elsewhere) == []


@pytest.mark.usefixtures("made_database")
def test_an_export_over_an_open_file_closes_it(product_environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "olts.csv").write_text("before")
    (tmp_path / "olts.csv").chmod(0o644)

    assert facho(product_environ, "olt", "export", str(tmp_path / "olts.csv")).status == 0

    assert stat.S_IMODE((tmp_path / "olts.csv").stat().st_mode) == 0o600


@pytest.mark.usefixtures("made_database")
def test_a_shared_folder_is_not_closed_and_reported_at_every_start(product_environ: dict[str, str]) -> None:
    """Somebody wrote /srv: what we put there is private, but what others keep there stays in their reach."""
    data = Path(product_environ["FACHO_DATA_DIR"])
    (data / "of-somebody-else").write_text("")
    (data / "of-somebody-else").chmod(0o644)
    data.chmod(0o755)

    for _ in range(2):
        with running(product_environ) as reported:
            mode, exposed = stat.S_IMODE(data.stat().st_mode), open_to_others(data)
        assert mode == 0o755
        assert {line.split()[0] for line in exposed} == {str(data), str(data / "of-somebody-else")}
        assert f"Other users of this machine may enter {data}. Run: chmod 700 {data}" in reported[0]


def test_a_sticky_folder_is_everybodys(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    folder = DataFolder(tmp_path, tmp_path / "secret-key", tmp_path / "encryption-keys")

    assert close_to_others(folder, tmp_path / "facho.sqlite3") == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
