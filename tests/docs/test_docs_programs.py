"""Programs that the pages show run as they stand."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs_pages import PAGES, blocks, page_id

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.api.tokens import create_token
from facho.onus.models import OnuReading

SHOWN = [page for page in PAGES if any("FACHO_URL" in block for block in blocks(page, "python"))]


@pytest.mark.parametrize("page", SHOWN, ids=page_id)
def test_a_program_of_a_page_runs_against_the_product(page: Path, live_server: Any) -> None:
    onu = make_onu(make_olt("centro-1"), (0, 1, 3, 7), run_state="offline")
    outage = make_outage(onu.olt)
    OnuReading.objects.update(outage_id=outage.id)
    environ = {**os.environ, "FACHO_URL": live_server.url, "FACHO_TOKEN": create_token(make_user())}

    for block in blocks(page, "python"):
        ended = subprocess.run(
            [sys.executable, "-c", block], env=environ, check=False, capture_output=True, text=True, timeout=60
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.split() == ["centro-1", "0/1/3", "fibre", onu.serial]
