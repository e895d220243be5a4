"""Blocks of commands run as they stand, in a shell, against what their page speaks of; none fails or complains."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from docs_pages import ROOT, blocks

from api.rows import make_olt, make_onu, make_user
from facho.accounts.models import SecondFactor
from facho.accounts.roles import Role
from facho.infrastructure.secrets import Secret
from facho.onus.models import OnuCustomer
from history_world import make_onus, make_ports
from month_world import START, day, down, steady, write_history
from neighbours.webhook_rows import make_webhook
from plant.plant_world import make_plant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database, pytest.mark.slow]
# Where the examples of the pages have their files.
SHOWN_FOLDER = "/tmp/"  # noqa: S108


def world_of_onus(folder: Path) -> None:
    olt = make_olt("centro-1")
    fields = {"run_state": "offline", "last_down_cause": "los", "state_since": timezone.now()}
    onu = make_onu(olt, (0, 1, 3, 7), serial="HWTC12345678", **fields)
    make_onu(olt, (0, 1, 3, 8), serial="HWTC00000008", run_state="online", rx_power_cdbm=-2801)
    OnuCustomer.objects.create(onu=onu, label="Ana", address="5 Mill Lane")
    (folder / "customers.csv").write_text("serial,label\nHWTC12345678,Ana\n")


def world_of_boxes(folder: Path) -> None:
    make_plant()
    (folder / "boxes.csv").write_text(blocks(ROOT / "docs/plant.md", "csv")[0])


def world_of_october(_folder: Path) -> None:
    [port] = make_ports(1)
    onus = make_onus(port, 1, now=START)
    write_history(onus, [down(steady(-20.0), day(3), day(4))])


def world_of_ana(_folder: Path) -> None:
    ana = make_user(Role.ADMIN, "ana")
    SecondFactor.objects.create(user=ana, key=Secret("A" * 32), confirmed_at=timezone.now())


def world_of_a_webhook(_folder: Path) -> None:
    make_webhook("https://crm.example.net/", name="crm")


def empty_world(_folder: Path) -> None:
    """The commands need nothing."""


# By page: what is there before, and words of what the commands print.
SHOWN: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "docs/configuration.md": (empty_world, []),
    "docs/onus.md": (world_of_onus, ["HWTC12345678", '"serial": "HWTC00000008"', "1 unchanged"]),
    "docs/plant.md": (world_of_boxes, ["CTO 91", "nothing was written", "2 written", "FeatureCollection"]),
    "docs/reports.md": (world_of_october, ["2026-10"]),
    "docs/sign-on.md": (world_of_ana, ["ana"]),
    "docs/webhooks.md": (world_of_a_webhook, ["crm", "Sent again: 0 events"]),
}
FILES = {"docs/configuration.md": ["encryption-keys", "secret-key"], "docs/reports.md": ["october.pdf"]}


@pytest.mark.parametrize("page", SHOWN)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    prepare, words = SHOWN[page]
    prepare(tmp_path)
    before = set(tmp_path.iterdir())

    printed = "".join(run(block, tmp_path) for block in blocks(ROOT / page, "sh"))

    assert [word for word in words if word not in printed] == []
    assert sorted(file.name for file in set(tmp_path.iterdir()) - before) == FILES.get(page, [])


def run(block: str, folder: Path) -> str:
    """Run a block in a folder of its own with this command line and the database of the test; return what it prints."""
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.replace(SHOWN_FOLDER, f"{folder}/")],
        cwd=folder,
        env={
            **os.environ,
            "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), block
    return ended.stdout
