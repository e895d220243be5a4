"""What the workbench says of a trial: whether the device would be recognised."""

from pathlib import Path

import pytest

from facho.polling.vendors.anonymise import read_recording
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get.trial import Trial, TrialBounds, describe_recognition, try_on_recording

RECORDINGS = Path(__file__).parents[1] / "polling" / "vendors" / "recordings"
SHARED_NUMBER = "1.3.6.1.4.1.50224.3.1.1"


@pytest.mark.parametrize("key", ["hsgq_gpon", "hsgq_epon"])
def test_family_that_is_recognised_by_its_tables_alone_is_not_called_refused(key: str) -> None:
    family = load_definitions()[key]
    rows = read_recording((RECORDINGS / f"{key}.snmprec").read_text("utf-8"))

    tried = try_on_recording(family, rows, TrialBounds())

    message = describe_recognition(family, SHARED_NUMBER, "town-olt", tried)
    assert message == f"With sysObjectID {SHARED_NUMBER} and the tables that have rows the OLT is recognised as {key}."


def test_device_whose_tables_show_nothing_is_refused_with_the_sentence_of_the_family() -> None:
    family = load_definitions()["hsgq_gpon"]

    assert "is refused by hsgq_gpon" in describe_recognition(family, SHARED_NUMBER, "PK700", Trial())
    assert "not recognised" in describe_recognition(family, "1.3.6.1.4.1.9999", "PK700", Trial())
