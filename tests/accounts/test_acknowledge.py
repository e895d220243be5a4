"""Taking note of what is wrong: in one name, never over another's, and written down."""

import pytest
from django.contrib.admin.models import LogEntry

from api.rows import NOW, make_olt, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.acknowledge import AcknowledgementError, acknowledge, take_back
from facho.accounts.roles import Role
from facho.onus.models import Outage

pytestmark = pytest.mark.django_db


def stored(outage: Outage) -> tuple[object, ...]:
    return Outage.objects.values_list("acknowledged_at", "acknowledged_by__username", "acknowledgement").get(
        pk=outage.pk
    )


def test_an_acknowledgement_has_a_name_a_time_and_a_note() -> None:
    outage, ana = make_outage(make_olt()), make_user(Role.OPERATOR, "ana")

    acknowledge(outage, ana, "the crew is under way", now=NOW)

    assert stored(outage) == (NOW, "ana", "the crew is under way")
    assert outage.acknowledged_by == ana


def test_nobody_takes_the_note_of_another_and_is_reported_whose_it_is() -> None:
    outage, ana, eva = make_outage(make_olt()), make_user(Role.OPERATOR, "ana"), make_user(Role.OPERATOR, "eva")
    stale = Outage.objects.get(pk=outage.pk)
    acknowledge(outage, ana, "the crew is under way", now=NOW)

    with pytest.raises(AcknowledgementError, match="ana"):
        acknowledge(stale, eva, "mine", now=NOW)

    assert stored(outage) == (NOW, "ana", "the crew is under way")
    assert stale.acknowledged_by == ana


def test_a_note_can_be_written_anew_by_its_author() -> None:
    outage, ana = make_outage(make_olt()), make_user(Role.OPERATOR, "ana")
    acknowledge(outage, ana, "looking", now=NOW)

    acknowledge(outage, ana, "the crew is under way", now=NOW)

    assert stored(outage) == (NOW, "ana", "the crew is under way")


def test_an_acknowledgement_can_be_taken_back_once() -> None:
    outage, ana, eva = make_outage(make_olt()), make_user(Role.OPERATOR, "ana"), make_user(Role.OPERATOR, "eva")
    acknowledge(outage, ana, "looking", now=NOW)

    take_back(outage, eva)

    assert stored(outage) == (None, None, "")
    with pytest.raises(AcknowledgementError):
        take_back(outage, eva)


def test_both_are_in_the_trail_in_the_language_of_the_installation() -> None:
    outage, ana, eva = make_outage(make_olt()), make_user(Role.OPERATOR, "ana"), make_user(Role.OPERATOR, "eva")
    acknowledge(outage, ana, "looking", now=NOW)
    take_back(outage, eva)

    trail = LogEntry.objects.order_by("id").values_list("user__username", "object_id", "change_message")

    ((first, first_id, message), (second, _, undone)) = trail
    assert (first, first_id, second) == ("ana", str(outage.pk), "eva")
    assert message.endswith("looking")
    assert undone.endswith("ana")
