"""`facho onu history` and `facho onu events`: what an operator types, and what comes of it."""

import json
from datetime import timedelta

import pytest
from cli_runner import Command
from django.utils import timezone

from facho.core.cli.onu import sparkline
from facho.onus.history import Samples, append
from facho.onus.history_models import Metric
from facho.onus.models import Onu, OnuEvent, PonPort
from factories import NOW, make_olt

SERIAL = "HWTC00000001"
HOUR = timedelta(hours=1)


def make_onu() -> Onu:
    port = PonPort.objects.create(olt=make_olt(), frame=0, slot=1, port=0)
    return Onu.objects.create(olt=port.olt, pon_port=port, onu_id=1, serial=SERIAL, first_seen_at=NOW)


@pytest.fixture
def onu(db: None) -> Onu:
    return make_onu()


def poll(onu: Onu, *powers: float | None) -> None:
    """Let the hours before this one read these powers, two of each; None for an hour without a poll."""
    start = timezone.now().replace(minute=0, second=0, microsecond=0) - len(powers) * HOUR
    for number, power in enumerate(powers):
        for step in (-1, 1) if power is not None else ():
            at = start + number * HOUR + timedelta(minutes=30 + step)
            append(at, Samples.of([onu.id], [onu.pon_port_id], {Metric.RX_POWER: [(power or 0) + step]}))


def test_hours_are_shown_as_a_table_and_as_a_drawing(facho: Command, onu: Onu) -> None:
    poll(onu, -24, None, None, -20, -22)

    outcome = facho("onu", "history", SERIAL)

    lines = outcome.out.splitlines()
    assert outcome.status == 0
    assert lines[0].split() == ["AT", "VALUE", "MIN", "MAX", "UNIT"]
    values = [line.split()[2:] for line in lines[1:5]]
    assert values == [
        ["-24.0", "-25.0", "-23.0", "dBm"],
        ["-", "-", "-", "dBm"],
        ["-20.0", "-21.0", "-19.0", "dBm"],
        ["-22.0", "-23.0", "-21.0", "dBm"],
    ]
    assert lines[5:] == ["", "▁  █▅", "from -24.0 to -20.0 dBm"]


def test_a_script_gets_json(facho: Command, onu: Onu) -> None:
    poll(onu, -24)

    (row,) = json.loads(facho("onu", "history", SERIAL, "--json").out)

    assert {key: row[key] for key in row if key != "at"} == {"value": -24.0, "min": -25.0, "max": -23.0, "unit": "dBm"}


def test_of_a_long_time_days_are_shown(facho: Command, onu: Onu) -> None:
    poll(onu, -24)

    rows = json.loads(facho("onu", "history", str(onu.id), "--days", "1000000", "--json").out)

    assert [row["at"][10:] for row in rows] == ["T00:00:00+00:00"]


def test_nothing_known_is_said(facho: Command, onu: Onu) -> None:
    outcome = facho("onu", "history", SERIAL, "--metric", "temperature")

    assert outcome.out.splitlines()[-1] == "Nothing is known of this time."


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (("history", "HWTC\x1b[31m"), 1, 'facho: There is no ONU "HWTC [31m": give its serial, or the id that'),
        (("history", "9" * 40), 1, "facho: There is no ONU"),
        (("events", "x\x00y"), 1, "facho: There is no ONU"),
        (("history", SERIAL, "--metric", "light"), 2, "--metric is one of: rx_power, tx_power"),
        (("history", SERIAL, "--days", "0"), 2, "not a whole number"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    facho: Command, onu: Onu, arguments: tuple[str, ...], status: int, error: str
) -> None:
    outcome = facho("onu", *arguments)

    assert outcome.status == status
    assert error in outcome.err
    assert "\x1b" not in outcome.err


def test_a_serial_that_two_have_needs_an_id(facho: Command, onu: Onu) -> None:
    other = make_onu()

    assert facho("onu", "events", SERIAL).err == (
        f'facho: Several ONUs have the serial "{SERIAL}": give one of their ids, {onu.id}, {other.id}.\n'
    )
    Onu.objects.filter(id=other.id).update(is_present=False, absent_since=NOW)
    assert facho("onu", "events", SERIAL.lower()).status == 0


def test_events_are_reported_the_latest_first_and_cannot_reach_the_terminal(facho: Command, onu: Onu) -> None:
    now = timezone.now()
    for hours, kind, after in ((2, "up", ""), (1, "description_changed", "\x1b]0;owned\x07"), (24 * 40, "down", "")):
        OnuEvent.objects.create(
            olt=onu.olt, pon_port=onu.pon_port, onu=onu, onu_number=1, at=now - hours * HOUR, kind=kind, after=after
        )

    outcome = facho("onu", "events", SERIAL)
    rows = json.loads(facho("onu", "events", SERIAL, "--days", "60", "--json").out)

    assert [line.split()[2] for line in outcome.out.splitlines()[1:]] == ["description_changed", "up"]
    assert "\x1b" not in outcome.out
    assert [(row["kind"], row["place"]) for row in rows] == [
        ("description_changed", "0/1/0/1"),
        ("up", "0/1/0/1"),
        ("down", "0/1/0/1"),
    ]


@pytest.mark.parametrize(
    ("values", "encoding", "drawing"),
    [
        ([1, 2, None, 8], "utf-8", "▁▂ █"),
        ([1, 2, None, 8], "ascii", "_. #"),
        ([5, 5], "utf-8", "▁▁"),
        ([None], "utf-8", ""),
        ([], "utf-8", ""),
        ([1, 3, 8, None, 1, 1, 8], "utf-8", "▂█▁█"),
    ],
)
def test_a_drawing_has_one_letter_for_so_many_values(values: list[float | None], encoding: str, drawing: str) -> None:
    assert sparkline(values, width=4, encoding=encoding) == drawing
