"""`facho onu list` and `facho onu show`: what an operator types, and what comes of it."""

import json

import pytest
from cli_runner import Command

from api.rows import NOW, make_olt, make_onu
from facho.hosts.models import Reachability
from facho.onus.models import OnuCustomer

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet() -> None:
    north, south = make_olt("North", reachability=Reachability.UP), make_olt("South", reachability=Reachability.DOWN)
    weak = make_onu(north, (0, 1, 0, 1), serial="AAAA1", run_state="online", rx_power_cdbm=-2800)
    OnuCustomer.objects.create(onu=weak, label="Ana", address="5 Mill Lane")
    make_onu(north, (0, 1, 1, 2), serial="BBBB2", run_state="offline", last_down_cause="los", state_since=NOW)
    make_onu(south, (0, 1, 0, 3), serial="CCCC3", run_state="offline", description="bad\x1b[31mred")


@pytest.mark.parametrize(
    ("options", "serials"),
    [
        ([], ["AAAA1", "BBBB2", "CCCC3"]),
        (["--olt", "South"], ["CCCC3"]),
        (["--port", "0/1/1"], ["BBBB2"]),
        (["--state", "offline"], ["BBBB2"]),
        (["--state", "unknown"], ["CCCC3"]),
        (["--cause", "los"], ["BBBB2"]),
        (["--power-below=-27.5"], ["AAAA1"]),
        (["--search", "mill"], ["AAAA1"]),
        (["--sort=-serial"], ["CCCC3", "BBBB2", "AAAA1"]),
        (["--limit", "1", "--sort", "serial"], ["AAAA1"]),
    ],
)
def test_a_list_is_narrowed_and_sorted(facho: Command, fleet: None, options: list[str], serials: list[str]) -> None:
    outcome = facho("onu", "list", "--json", *options)

    assert [row["serial"] for row in json.loads(outcome.out)] == serials


def test_a_table_tells_what_may_be_said_and_what_was_known(facho: Command, fleet: None) -> None:
    outcome = facho("onu", "list", "--olt", "South")

    heading, line = outcome.out.splitlines()
    assert heading.split()[:6] == ["ID", "SERIAL", "OLT", "PLACE", "STATE", "LAST_KNOWN"]
    assert line.split()[1:6] == ["CCCC3", "South", "0/1/0/3", "unknown", "offline"]
    assert "\x1b" not in line


def test_a_list_that_is_cut_says_so(facho: Command, fleet: None) -> None:
    outcome = facho("onu", "list", "--limit", "2")

    assert len(outcome.out.splitlines()) == 3
    assert outcome.err == "facho: there are more: narrow the list, or raise --limit.\n"


@pytest.mark.parametrize(
    "options",
    [["--search", "ab"], ["--sort", "firmware"], ["--state", "down"], ["--port", "0/1"], ["--power-below", "nan"]],
)
def test_what_cannot_be_meant_is_wrong_use(facho: Command, options: list[str]) -> None:
    outcome = facho("onu", "list", *options)

    assert (outcome.status, outcome.out) == (2, "")
    assert options[0] in outcome.err


def test_an_olt_that_does_not_exist_is_named(facho: Command) -> None:
    outcome = facho("onu", "list", "--olt", "East")

    assert (outcome.status, outcome.err) == (1, 'facho: There is no OLT "East"; `facho olt list` shows them.\n')


def test_an_onu_is_shown_by_its_serial(facho: Command, fleet: None) -> None:
    shown = json.loads(facho("onu", "show", "aaaa1", "--json").out)

    assert (shown["serial"], shown["place"], shown["rx_dbm"]) == ("AAAA1", "0/1/0/1", -28.0)
    assert (shown["customer"], shown["address"]) == ("Ana", "5 Mill Lane")


def test_an_onu_is_shown_line_by_line(facho: Command, fleet: None) -> None:
    outcome = facho("onu", "show", "CCCC3")

    lines = dict(line.split(": ", 1) for line in outcome.out.splitlines())
    assert (lines["state"], lines["last_known"], lines["tx_dbm"]) == ("unknown", "offline", "-")
    assert lines["description"] == "bad [31mred"
