"""The file for supervisor as a real one reads it: every part starts with the settings, and no value is carried out."""

import re
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deploy_files import DEPLOY, PARTS, compose_command

pytestmark = [pytest.mark.thorough("sqlite"), pytest.mark.slow, pytest.mark.any_database]

PATIENCE_SECONDS = 60
# Stands for each program of the product: it notes what it was given, and stays.
PROGRAM = """\
#!/bin/sh
printf '%s\\n' "$DATABASE_URL" "$FACHO_MODE" "${{0##*/}}" "$@" >{folder}/noted.$SUPERVISOR_PROCESS_NAME
mv {folder}/noted.$SUPERVISOR_PROCESS_NAME {folder}/started/$SUPERVISOR_PROCESS_NAME
exec sleep 600
"""
MAIN = """\
[supervisord]
nodaemon=true
logfile={folder}/supervisord.log
pidfile={folder}/pid
[include]
files={folder}/facho.conf
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with what the file names: the script of the product, its programs, and places for data and logs."""
    for name in ("etc", "programs", "bin", "data", "log", "started"):
        (tmp_path / name).mkdir()
    for name in ("facho", "celery"):
        (tmp_path / "programs" / name).write_text(PROGRAM.format(folder=tmp_path))
        (tmp_path / "programs" / name).chmod(0o755)
    script = (DEPLOY / "facho").read_text()
    places = {"/etc/facho": f"{tmp_path}/etc", "/opt/facho/bin": f"{tmp_path}/programs"}
    for usual, here in places.items():
        script = script.replace(usual, here)
    (tmp_path / "bin/facho").write_text(script)
    (tmp_path / "bin/facho").chmod(0o755)
    text = re.sub(r"^user=facho\n", "", (DEPLOY / "supervisor/facho.conf").read_text(), flags=re.MULTILINE)
    text = text.replace("/var/lib/facho", f"{tmp_path}/data").replace("/var/log/facho", f"{tmp_path}/log")
    (tmp_path / "facho.conf").write_text(text)
    (tmp_path / "supervisord.conf").write_text(MAIN.format(folder=tmp_path))
    return tmp_path


def wait_until(is_true: Callable[[], bool], folder: Path) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < give_up_at, (folder / "supervisord.log").read_text()
        select.select([], [], [], 0.05)


def test_every_part_starts_with_the_settings_and_no_value_is_carried_out(supervisord: str, machine: Path) -> None:
    url = f"postgresql://facho:a$HOME;touch {machine}/x&$(touch {machine}/x)`touch {machine}/x`@db/facho"
    (machine / "etc/facho.env").write_text(f"DATABASE_URL={url}\n")
    command = [supervisord, "--configuration", machine / "supervisord.conf"]
    environ = {"PATH": f"{machine}/bin:/usr/bin:/bin"}
    running = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(list((machine / "started").iterdir())) == len(PARTS), machine)
    finally:
        running.terminate()
        running.wait(PATIENCE_SECONDS)

    host = subprocess.run(["hostname"], check=True, capture_output=True, text=True).stdout.strip()
    for part in PARTS:
        noted = (machine / "started" / f"facho-{part}").read_text().splitlines()
        assert noted[:2] == [url, "distributed"]
        assert [word.replace(host, "%h") for word in noted[2:]] == compose_command(part)
    assert not (machine / "x").exists()
