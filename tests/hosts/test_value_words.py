"""Every value of an OLT that a ready-made job reads has a name for people, and every state has a word."""

from django.utils import translation

from facho.hosts.olt_data import TITLES, WORDS, shown_growth, shown_value, title_of
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import BoardState, LinkState, PartState, Scope


def test_every_ready_made_value_has_a_name() -> None:
    keys = {
        key
        for definition in load_definitions().values()
        for job in definition.jobs
        for key in job.columns
        if definition.column(key).index.scope not in (Scope.ONU, Scope.AUTOFIND)
    }

    assert set(TITLES) == keys
    assert title_of("my own") == "my own"


def test_every_state_has_a_word() -> None:
    assert set(WORDS) == {*BoardState, *PartState, *LinkState}


def test_values_are_shown_as_people_read_them() -> None:
    assert shown_value("board.status", "no_power", "") == "without power"
    assert shown_value("board.cpu", "23", "percent") == "23 %"
    assert shown_value("board.temperature", "41.5", "degC") == "41.5 °C"
    assert shown_value("board.cpu", "", "percent") == ""
    # What an operator or a device wrote is nobody's state.
    assert shown_value("Door", "down", "") == "down"
    assert shown_growth(125_000.0, "B") == "1.0 Mbit/s"
    assert shown_growth(12_500.0, "B") == "0.100 Mbit/s"
    assert (shown_growth(2.5, "frames"), shown_growth(None, "B")) == ("2.5 /s", "")


def test_a_number_is_written_as_its_reader_writes_numbers() -> None:
    with translation.override("es"):
        assert shown_growth(125_000.0, "B") == "1,0 Mbit/s"
