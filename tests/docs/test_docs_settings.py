"""Settings that the pages show are taken as they stand: read, and found without a fault by the checks of the start."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from docs_pages import PAGES, ROOT, all_blocks, blocks, page_id

from facho.core.env import SETTINGS

# Lines of a settings file and nothing else, whatever the block is marked as.
LINES = re.compile(r"(?:[A-Z_]+=.*\n)+")
SHOWN = [
    pytest.param(text, id=f"{page_id(page)}-{number}")
    for page in PAGES
    for number, text in enumerate(text for _language, text in all_blocks(page) if LINES.fullmatch(text))
]


@pytest.mark.parametrize("text", SHOWN)
def test_settings_of_a_page_start_the_product(text: str, tmp_path: Path) -> None:
    assert check(settings_of(text, tmp_path)) == (0, "")


def settings_of(text: str, folder: Path) -> dict[str, str]:
    """Read the lines; the files that they name are in a folder, and hold a key."""
    values = dict(line.split("=", 1) for line in text.splitlines())
    for name, value in values.items():
        if name.endswith("_FILE"):
            values[name] = str(folder / Path(value).name)
            Path(values[name]).write_bytes(Fernet.generate_key())
            Path(values[name]).chmod(0o600)
    return values


def test_keys_made_as_the_page_says_are_keys(tmp_path: Path) -> None:
    [made] = blocks(ROOT / "docs/configuration.md", "sh")
    subprocess.run(["bash", "-euc", made], cwd=tmp_path, check=True)
    named = {"FACHO_SECRET_KEY_FILE": "secret-key", "FACHO_ENCRYPTION_KEYS_FILE": "encryption-keys"}

    # The checks would name a key that is none, and a file that others may read.
    assert check({name: str(tmp_path / file) for name, file in named.items()}) == (0, "")


def test_names_in_blocks_are_settings() -> None:
    known = {setting.name for setting in SETTINGS}
    named = {
        name
        for page in PAGES
        for _language, text in all_blocks(page)
        for name in re.findall(r"^(FACHO_\w+)=", text, re.M)
    }

    assert named
    assert sorted(named - known) == []


def check(values: dict[str, str]) -> tuple[int, str]:
    """Have the checks of the start look at these settings; return status and complaints."""
    ended = subprocess.run(
        [sys.executable, "manage.py", "check", "--tag", "facho", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**os.environ, **values},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stderr
