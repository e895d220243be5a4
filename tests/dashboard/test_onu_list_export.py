"""The list of ONUs as a file: what the link saves is what the list shows."""

import csv
import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu
from web.every_address import body_of

pytestmark = pytest.mark.django_db


def link_of(client: Client, query: str) -> str:
    found = re.search(r'id="onus-export" href="([^"]+)"', client.get(f"/onus/?{query}").content.decode())
    return unescape(found[1]) if found else ""


@pytest.fixture
def olt_id() -> int:
    """An OLT with ONUs of every kind, and another one with the same."""
    north, south = make_olt("North"), make_olt("South")
    for olt in (north, south):
        name = olt.name.upper()
        make_onu(olt, (0, 1, 3, 1), serial=f"{name}-GOOD", run_state="online", rx_power_cdbm=-2700)
        make_onu(olt, (0, 1, 4, 1), serial=f"{name}-WEAK", run_state="online", rx_power_cdbm=-2701)
        make_onu(olt, (0, 2, 3, 1), serial=f"{name}-DOWN", run_state="offline", description="Café & Co")
        make_onu(olt, (0, 2, 3, 2), serial=f"{name}-GONE", is_present=False, absent_since=timezone.now())
    return north.pk


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("", "GOOD WEAK DOWN"),
        ("olt={olt}", "GOOD WEAK DOWN"),
        ("olt={olt}&port=0/1", "GOOD WEAK"),
        ("port=0-1-3&q=++", "GOOD"),
        ("state=weak", "WEAK"),
        ("state=offline&q=Caf%C3%A9+%26", "DOWN"),
        ("state=absent", "GONE"),
    ],
)
def test_the_file_has_what_the_list_shows(viewer: Client, olt_id: int, query: str, kinds: str) -> None:
    sides = ["NORTH"] if "olt=" in query else ["NORTH", "SOUTH"]
    query = query.format(olt=olt_id)

    answer = viewer.get(link_of(viewer, query))

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    saved = {row["serial"] for row in csv.DictReader(body_of(answer).splitlines())}
    shown = set(re.findall(r"(?:NORTH|SOUTH)-[A-Z]+", viewer.get(f"/onus/?{query}").content.decode()))
    assert saved == shown == {f"{side}-{kind}" for side in sides for kind in kinds.split()}


@pytest.mark.parametrize("query", ["port=0/1/3/1", "port=nonsense", "q=nobody"])
def test_what_a_file_could_not_hold_has_no_link(viewer: Client, olt_id: int, query: str) -> None:
    assert link_of(viewer, query) == ""
