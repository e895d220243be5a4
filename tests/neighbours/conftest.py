"""A NetBox of its own for each test, which the settings name."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from servers.netbox import TOKEN, NetBox, netbox_server


@pytest.fixture
def netbox(settings: Settings, tmp_path: Path) -> Iterator[NetBox]:
    """A NetBox without devices."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with netbox_server() as server:
        settings.FACHO_NETBOX_URL = server.url
        settings.FACHO_NETBOX_TOKEN_FILE = tmp_path / "token"
        yield server
