"""What is said of an ONU: by its row, by a condition and by a column, always the same."""

from itertools import product

import pytest

from api.rows import NOW, make_olt, make_onu
from facho.hosts.models import Reachability
from facho.onus.models import Onu, RunStateChoice
from facho.onus.shown_state import count_present, in_state, last_known_state, shown_state, shown_state_column
from facho.onus.words import ShownState

pytestmark = pytest.mark.django_db


def make_one_of_each() -> None:
    """Make an ONU in every state, present and absent, behind an OLT of every kind, and one never read."""
    for reachability, enabled in product(Reachability.values, (True, False)):
        olt = make_olt(reachability=reachability, enabled=enabled)
        for number, state in enumerate(RunStateChoice.values):
            make_onu(olt, (0, 1, 0, number), run_state=state)
            make_onu(olt, (0, 1, 1, number), run_state=state, is_present=False, absent_since=NOW)
        make_onu(olt, (0, 1, 2, 0)).reading.delete()


def test_nobody_is_down_behind_an_olt_that_is_silent() -> None:
    olt = make_olt(reachability=Reachability.DOWN)
    onu = make_onu(olt, run_state=RunStateChoice.OFFLINE)

    assert shown_state(onu) == ShownState.UNKNOWN
    assert last_known_state(onu) == RunStateChoice.OFFLINE


def test_nobody_is_online_behind_an_olt_that_is_disabled() -> None:
    olt = make_olt(reachability=Reachability.UP, enabled=False)
    onu = make_onu(olt, run_state=RunStateChoice.ONLINE)

    assert shown_state(onu) == ShownState.UNKNOWN
    assert last_known_state(onu) == RunStateChoice.ONLINE
    assert count_present() == {(olt.id, ShownState.UNKNOWN): 1}


def test_who_has_left_is_absent_whatever_the_olt_says() -> None:
    make_one_of_each()

    states = {shown_state(onu) for onu in Onu.objects.filter(is_present=False).select_related("olt", "reading")}

    assert states == {ShownState.ABSENT}


def test_row_condition_and_column_agree() -> None:
    make_one_of_each()

    for onu in Onu.objects.select_related("olt", "reading").annotate(column=shown_state_column()):
        matched = [state for state in ShownState.values if Onu.objects.filter(in_state(state), id=onu.id).exists()]
        assert [shown_state(onu)] == matched == [onu.column]
