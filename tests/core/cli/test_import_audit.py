"""Every CSV import leaves an entry for each row that it changed, in its transaction and in few statements."""

from pathlib import Path
from time import monotonic

import pytest
from cli_runner import Command
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from api.rows import make_olt, make_onu
from facho.accounts.roles import CONSOLE
from facho.hosts.csv import import_file
from facho.hosts.inventory import Saved
from facho.hosts.models import Olt
from facho.onus.customers import import_customers
from facho.onus.models import Onu, OnuCustomer

pytestmark = pytest.mark.django_db

HEADER = "name,host,port,vendor,version,community\n"
CANARY = "canary-7f3a"


def trail() -> list[tuple[str, int, str]]:
    return list(LogEntry.objects.order_by("id").values_list("user__username", "action_flag", "change_message"))


def write(folder: Path, text: str) -> str:
    file = folder / "file.csv"
    file.write_text(text)
    return str(file)


def test_an_import_of_olts_says_of_each_what_it_changed(facho: Command, tmp_path: Path) -> None:
    make_olt("same", host="192.0.2.1", address="192.0.2.1")
    make_olt("moved", host="192.0.2.2", address="192.0.2.2")
    file = write(tmp_path, f"{HEADER}same,192.0.2.1,,,,\nmoved,192.0.2.2,1161,,,{CANARY}\nnew,192.0.2.4,,,,{CANARY}\n")

    done = facho("olt", "import", file)

    assert done.status == 0
    (moved, new) = trail()
    assert moved == (CONSOLE, CHANGE, f"{file} · UDP port: 161 → 1161, Community: changed")
    assert new[:2] == (CONSOLE, ADDITION)
    assert "Host: - → 192.0.2.4" in new[2]
    assert "Community: changed" in new[2]
    assert CANARY not in str(trail())


def test_an_import_of_customers_says_of_each_what_it_changed(facho: Command, tmp_path: Path) -> None:
    olt = make_olt()
    first, second, same = (make_onu(olt, (0, 1, 0, at), serial=f"HWTC0000000{at}") for at in (1, 2, 3))
    OnuCustomer.objects.create(onu=second, label="Luz")
    OnuCustomer.objects.create(onu=same, label="Sol")
    rows = f"{first.serial},Ana\n{second.serial},Lucía\n{same.serial},Sol\n"
    file = write(tmp_path, f"serial,label\n{rows}")

    facho("onu", "import", file)

    assert trail() == [
        (CONSOLE, ADDITION, f"{file} · {first.serial} · label: — → Ana"),
        (CONSOLE, CHANGE, f"{file} · {second.serial} · label: Luz → Lucía"),
    ]
    assert LogEntry.objects.filter(object_id=str(second.pk), object_repr="Lucía").exists()


def test_what_is_not_imported_leaves_no_trail(facho: Command, tmp_path: Path) -> None:
    onu = make_onu(make_olt())
    facho("onu", "import", "--dry-run", write(tmp_path, f"serial,label\n{onu.serial},Ana\n"))

    def fail(saved: Saved) -> None:
        raise DatabaseError

    with pytest.raises(DatabaseError):
        import_file(f"{HEADER}new,192.0.2.4,,,,x\n".encode(), finish=fail)

    assert trail() == []
    assert not Olt.objects.filter(name="new").exists()


def test_ten_thousand_customers_are_written_down_in_few_statements() -> None:
    olt, count = make_olt(), 10_000
    sample = make_onu(olt)
    serials = [f"ZTEG{at:08X}" for at in range(count)]
    Onu.objects.bulk_create(
        [
            Onu(olt=olt, pon_port=sample.pon_port, onu_id=at + 1, serial=serial, first_seen_at=timezone.now())
            for at, serial in enumerate(serials)
        ]
    )
    content = "serial,label,phone\n" + "".join(f"{serial},Ana {serial},555\n" for serial in serials)
    began = monotonic()

    with CaptureQueriesContext(connection) as asked:
        imported = import_customers(content.encode(), now=timezone.now())

    assert (imported.written, LogEntry.objects.count()) == (count, count)
    # Twenty batches of 500, each with a handful of statements.
    assert len(asked) < 250
    assert monotonic() - began < 60
