"""Runs the command line: in this process on the test database, or as a process of its own."""

import io
import logging
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from cli_runner import CANARY, Command, Outcome, run_process
from django.utils import translation
from pytest_django import Settings

from facho.core.cli.main import main
from servers.netbox import TOKEN, NetBox, netbox_server
from servers.product_folder import give_database

NETBOX_CREDENTIALS = f"""network,version,community,v3_user,v3_auth_protocol,v3_auth_key,group,vendor
10.20.0.0/16,2c,{CANARY},,,,North,huawei
10.20.9.0/24,3,,poller,SHA-256,{CANARY}-key,,
2001:db8::/32,2c,{CANARY},,,,,
"""


@pytest.fixture
def unchanged_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take back what a command does to its process, which normally ends with it."""
    monkeypatch.setenv("LANGUAGE", "en")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    level = logging.getLogger("facho").level
    yield
    logging.getLogger("facho").setLevel(level)
    translation.deactivate()


@pytest.fixture
def facho(unchanged_process: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process."""

    def run(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            status = main(arguments)
        except SystemExit as wrong_use:
            status = int(str(wrong_use.code))
        out, err = capsys.readouterr()
        return Outcome(status, out, err)

    return run


@pytest.fixture
def made_database(product_environ: dict[str, str]) -> None:
    """Make the database of `facho_process` where it is a file: commands other than the first start want one."""
    if "DATABASE_URL" not in product_environ:
        give_database(Path(product_environ["FACHO_DATA_DIR"]))


@pytest.fixture
def facho_process(product_environ: dict[str, str], made_database: None) -> Command:
    """The command line as a process with a data folder and a database of its own."""

    return partial(run_process, product_environ)


@pytest.fixture
def netbox(settings: Settings, tmp_path: Path) -> Iterator[NetBox]:
    """A NetBox without devices, and credentials for its networks."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "credentials.csv").write_text(NETBOX_CREDENTIALS)
    with netbox_server() as server:
        settings.FACHO_NETBOX_URL = server.url
        settings.FACHO_NETBOX_TOKEN_FILE = tmp_path / "token"
        settings.FACHO_NETBOX_CREDENTIALS_FILE = tmp_path / "credentials.csv"
        yield server
