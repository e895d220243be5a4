"""Blocks of commands run as they stand, in a shell, against what their page speaks of; none fails or complains."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from django.db import connection
from django.utils import timezone
from docs_pages import ROOT, blocks

from api.rows import make_olt, make_onu, make_user
from distributed.simulated_olts import QUICK, simulated
from facho.accounts.models import SecondFactor
from facho.accounts.roles import Role
from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.onus.models import OnuCustomer
from facho.polling.vendors.anonymise import read_recording
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


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_inventory_file_of_the_operators_page_is_imported(tmp_path: Path, separator: str) -> None:
    [header] = blocks(ROOT / "docs/operations.md", "text")
    rows = f"{header}centro-1,192.0.2.10,161,huawei,2c,public\n"
    (tmp_path / "olts.csv").write_text(rows.replace(",", separator))

    run("facho olt import olts.csv", tmp_path)

    assert [(olt.name, olt.host, olt.vendor) for olt in Olt.objects.all()] == [
        ("centro-1", "192.0.2.10", "huawei_smartax")
    ]


def test_the_timer_of_the_operators_page_writes_a_backup_and_deletes_old_ones(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for unit in blocks(ROOT / "docs/operations.md", "ini"):
        text = unit.replace("/var/backups/facho", folder.name)
        (tmp_path / unit.splitlines()[0].rpartition("/")[2]).write_text(text)
    old, kept, other = folder / "2025-05-01-0310.facho", folder / "2025-06-01-0310.facho", folder / "mine"
    for file, days in ((old, 40), (kept, 2), (other, 40)):
        file.write_text("")
        os.utime(file, (time.time() - days * 86_400,) * 2)

    judged = ended("systemd-analyze verify --man=no ./backup-facho.service ./backup-facho.timer", tmp_path)
    for line in (tmp_path / "backup-facho.service").read_text().splitlines():
        name, _equals, command = line.partition("=")
        if name.startswith("ExecStart"):
            # As systemd hands it over: each word as it is, without a shell.
            run(shlex.join(shlex.split(command.replace("%%", "%").replace("$$", "$"))), tmp_path)

    assert (judged.returncode, judged.stderr) == (0, "")
    (written,) = set(folder.iterdir()) - {kept, other}
    assert written.name.startswith(f"{datetime.now().astimezone():%Y-}")
    assert written.stat().st_size > 0


def test_a_new_vendor_is_recorded_checked_and_tried_as_its_page_says(tmp_path: Path) -> None:
    record, check, try_it, _of_the_checkout = blocks(ROOT / "docs/vendors.md", "sh")
    definition = yaml.safe_load((files("facho.polling.vendors") / "definitions/huawei_smartax.yaml").read_text())
    (tmp_path / "acme_one.yaml").write_text(yaml.safe_dump({**definition, "key": "acme_one"}, sort_keys=False))
    with simulated(QUICK) as [device]:
        at = {"host": "127.0.0.1", "address": "127.0.0.1", "port": device.port, "vendor": device.vendor}
        make_olt("nueva", community=Secret("public"), **at)

        recorded = ended(record, tmp_path)
        checked = run(check, tmp_path)
        on_recording, on_device = (ended(f"{line}\n", tmp_path) for line in try_it.splitlines())

    assert (recorded.returncode, "lines recorded" in recorded.stderr) == (0, True)
    assert len(read_recording((tmp_path / "olt.snmprec").read_text())) > 100
    assert "acme_one" in checked
    for tried in (on_recording, on_device):
        assert (tried.returncode, "onu.rx_power" in tried.stdout, "Traceback" in tried.stderr) == (0, True, False)


def run(block: str, folder: Path) -> str:
    """Run a block that has nothing to complain of; return what it prints."""
    done = ended(block, folder)
    assert (done.returncode, done.stderr) == (0, ""), block
    return done.stdout


def ended(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block in a folder of its own with this command line and the database of the test."""
    return subprocess.run(
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
