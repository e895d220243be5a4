"""The page about SmartOLT's API: its examples answer what it shows, and its tables are what there is."""

import json
import os
import re
import subprocess
from typing import Any

import pytest

from api.rows import make_user
from docs.docs_pages import ROOT, rows
from facho.api.tokens import create_token
from facho.neighbours.smartolt_views import smartolt_calls
from neighbours.smartolt_world import make_centro, make_lit_onu

PAGE = ROOT / "docs/smartolt-api.md"
EXAMPLE = re.compile(r"```sh\n(curl .+?)\n```\n\n```json\n(.+?)\n```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_answers_what_the_page_shows(command: str, shown: str, live_server: Any) -> None:
    make_lit_onu(make_centro())
    environ = {**os.environ, "FACHO_URL": live_server.url, "FACHO_TOKEN": create_token(make_user())}

    ended = subprocess.run(
        ["sh", "-c", f"{command} --noproxy '*'"], env=environ, check=False, capture_output=True, text=True, timeout=60
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == json.loads(shown)


def test_the_page_shows_examples_and_nothing_beside_them() -> None:
    assert len(EXAMPLES) == PAGE.read_text().count("```sh") >= 4


def test_every_call_has_its_row() -> None:
    answered = [re.sub(r"<\w+:(\w+)>", r"{\1}", str(call.pattern)) for call in smartolt_calls]

    assert [row[0].strip("`") for row in rows(PAGE, heading="## Calls")] == answered[:-1]
    assert answered[-1] == "{call}"
