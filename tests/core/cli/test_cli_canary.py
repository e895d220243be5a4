"""A community that was given to the product shows up nowhere again."""

import traceback
from pathlib import Path

import pytest
from cli_runner import CANARY, Command

from facho.hosts.inventory import InventoryError, import_olts, stored_olts
from facho.hosts.models import Olt
from facho.hosts.olt_entry import OltEntry
from facho.infrastructure.secrets import Secret

HEADER = "name,host,port,vendor,version,community\n"


@pytest.mark.usefixtures("made_database")
def test_no_file_of_the_product_shows_it(facho_process: Command, product_environ: dict[str, str]) -> None:
    """S3-24: the raw bytes of the database hold no plain community."""
    added = facho_process("olt", "add", "uno", "127.0.0.1", "--community-stdin", stdin=CANARY.encode())

    files = [path for path in Path(product_environ["FACHO_DATA_DIR"]).rglob("*") if path.is_file()]
    assert added.status == 0
    assert len(files) >= 2
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


@pytest.mark.django_db
def test_no_output_nor_export_shows_it(facho: Command, tmp_path: Path) -> None:
    """S3-26: what was typed, imported or refused is not repeated."""
    good, bad, exported = tmp_path / "good.csv", tmp_path / "bad.csv", tmp_path / "export.csv"
    good.write_text(f"{HEADER}dos,127.0.0.2,,,,{CANARY}\n")
    bad.write_text(f"{HEADER}tres,127.0.0.3,x,,,{CANARY}\ncuatro,127.0.0.4,,,,{CANARY},extra\n")

    outcomes = [
        facho("olt", "add", "uno", "127.0.0.1", "--community-stdin", stdin=CANARY.encode()),
        facho("olt", "add", "uno", "127.0.0.1", "--community-stdin", stdin=CANARY.encode()),
        facho("olt", "import", str(good)),
        facho("olt", "import", str(bad)),
        facho("olt", "list"),
        facho("olt", "list", "--json"),
        facho("olt", "export"),
        facho("olt", "export", str(exported)),
    ]

    assert [outcome.status for outcome in outcomes] == [0, 1, 0, 1, 0, 0, 0, 0]
    assert not any(CANARY in outcome.out + outcome.err for outcome in outcomes)
    assert CANARY not in exported.read_text()


@pytest.mark.django_db
def test_no_text_form_of_entry_row_or_error_shows_it() -> None:
    entry = OltEntry("centro", "127.0.0.1", community=Secret(CANARY))
    import_olts([entry])
    olt = Olt.objects.get()

    forms = [repr(entry), repr(olt), str(olt), repr(vars(olt)), repr(olt.community), f"{olt.community}"]
    forms += [repr(vars(row)) for row in stored_olts()]

    assert olt.community.reveal() == CANARY
    assert not any(CANARY in form for form in forms)


@pytest.mark.django_db
def test_no_traceback_shows_it() -> None:
    entry = OltEntry("centro", "no-such-host.invalid", community=Secret(CANARY))

    with pytest.raises(InventoryError) as refused:
        import_olts([entry])

    trace = traceback.TracebackException.from_exception(refused.value, capture_locals=True)
    text = "".join(trace.format())
    assert "no-such-host" in text
    assert CANARY not in text
