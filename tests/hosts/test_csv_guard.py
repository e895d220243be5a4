"""Cells of exported files that a spreadsheet would run, however it splits the file, and their way back."""

import csv
import io

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from api.rows import make_olt, make_onu, make_waiting_onu
from facho.hosts.csv import read_entries, write_entries
from facho.hosts.olt_entry import OltEntry
from facho.infrastructure.spreadsheet import guard, unguard
from facho.onus.models import OnuCustomer, OnuReading
from web.every_address import body_of

HOSTILE = st.text(st.sampled_from("=+-@;,\t\r\n'\" a1＝"), max_size=12)  # noqa: RUF001 a wide sign
RUN = ("=", "+", "-", "@", "\t", "\r", "＝")  # noqa: RUF001


def run_cells(text: str, numbers: tuple[str, ...] = ()) -> list[str]:
    """Return the cells that a spreadsheet would run: it splits by the separator of its country, and trims."""
    found = []
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            found += [cell for cell in row if cell.lstrip(" \n").startswith(RUN) and cell not in numbers]
    return found


def written(cells: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_part_of_a_guarded_cell_is_run_whatever_separates(cells: list[str]) -> None:
    assert run_cells(written([guard(cell) for cell in cells])) == []


@given(HOSTILE)
def test_what_was_guarded_is_read_as_it_was(cell: str) -> None:
    assert unguard(guard(cell)) == cell


@pytest.mark.parametrize("cell", ["Ana; luz", "a-b=c", "O'Higgins", "norte, 5-7", "x;'y", ""])
def test_what_no_spreadsheet_would_run_stays_as_it_is(cell: str) -> None:
    assert guard(cell) == cell


@given(st.text(st.sampled_from("=+-@;'\"a"), min_size=1, max_size=12))
def test_an_inventory_survives_its_own_file(name: str) -> None:
    entry = OltEntry(name, "192.0.2.1", "161", "auto", "2c")

    text = write_entries([entry])

    assert run_cells(text) == []
    assert read_entries(text.encode()) == ([entry], [])


@pytest.mark.django_db
def test_no_exported_file_is_run_and_numbers_stay_numbers(administrator: Client) -> None:
    hostile = 'norte;=HYPERLINK("http://x")'
    olt = make_olt(hostile)
    onu = make_onu(olt, serial="HWTC00000001", description=hostile, name="a\t@SUM(1)")
    OnuReading.objects.filter(onu=onu).update(rx_power_cdbm=-2710)
    OnuCustomer.objects.create(onu=onu, label="x", notes="uno;-2+3\n=1+1", phone="+595 21 555")
    make_waiting_onu(olt, model=hostile)

    files = [
        body_of(administrator.get(path))
        for path in ("/api/v1/onus/export/", "/waiting/export/", "/admin/hosts/olt/export/")
    ]

    assert [run_cells(text, numbers=("-27.1",)) for text in files] == [[], [], []]
    row = next(csv.DictReader(io.StringIO(files[0], newline="")))
    assert row["rx_power_dbm"] == "-27.1"
    assert unguard(row["notes"]) == "uno;-2+3\n=1+1"
