"""`facho onu`: what an operator types, and what comes of it."""

from pathlib import Path

import pytest
from cli_runner import Command

from facho.onus.models import OnuCustomer
from facho.onus.store import save_inventory
from facho.polling.domain.onu_presence import OnuIdentity, Walk
from facho.polling.vendors.index import Place
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = {Place(0, 1, 0, 1): OnuIdentity("HWTC00000001")}
    save_inventory(make_olt().id, Walk(found, is_complete=True), now=NOW)
    path = tmp_path / "customers.csv"
    path.write_text("serial,label\nHWTC00000001,Ana\nHWTC0000FFFF,Luz\n")
    return path


def test_customers_are_imported_and_strangers_named(facho: Command, file: Path) -> None:
    outcome = facho("onu", "import", str(file))

    assert outcome.status == 0
    assert outcome.out == "1 customers written, 0 unchanged, 1 left out\n"
    assert outcome.err == f"facho: {file} line 3: no ONU has this serial\n"
    assert OnuCustomer.objects.get().label == "Ana"


def test_a_dry_run_writes_nothing(facho: Command, file: Path) -> None:
    outcome = facho("onu", "import", "--dry-run", str(file))

    assert outcome.out == "1 customers would be written, 0 unchanged, 1 left out\n"
    assert not OnuCustomer.objects.exists()


def test_a_bad_file_is_refused_with_its_line(facho: Command, file: Path) -> None:
    file.write_text("serial,label\n,Ana\n")

    outcome = facho("onu", "import", str(file))

    assert outcome.status == 1
    assert outcome.err.splitlines() == [
        f"facho: {file} line 2: the serial is missing",
        "facho: Nothing was imported: correct the file and import it again.",
    ]
