"""ONUs that wait to be authorised are listed from the first report of them to the first complete one without them."""

from datetime import timedelta

import pytest

from facho.hosts.models import WaitingOnu
from facho.hosts.store import save_waiting
from facho.polling.domain.collection import UnauthorisedOnu
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(seconds=300)
ONE, TWO = UnauthorisedOnu(0, 1, 3, "HWTC0A1B2C3D", "ONT"), UnauthorisedOnu(0, 1, 4, "HWTC00000002")


def test_who_waits_is_listed_since_the_first_report() -> None:
    olt = make_olt()

    assert save_waiting(olt.id, [ONE], is_complete=True, now=NOW) == 1
    assert save_waiting(olt.id, [ONE, TWO], is_complete=True, now=LATER) == 1

    reported = WaitingOnu.objects.order_by("first_seen_at").values_list(
        "serial", "port", "first_seen_at", "last_seen_at"
    )
    assert list(reported) == [("HWTC0A1B2C3D", 3, NOW, LATER), ("HWTC00000002", 4, LATER, LATER)]


def test_only_a_complete_report_takes_somebody_off_the_list() -> None:
    olt, other = make_olt(), make_olt()
    for each in (olt, other):
        save_waiting(each.id, [ONE, TWO], is_complete=True, now=NOW)

    save_waiting(olt.id, [TWO], is_complete=False, now=LATER)
    assert WaitingOnu.objects.filter(olt=olt).count() == 2
    save_waiting(olt.id, [TWO], is_complete=True, now=LATER)

    assert WaitingOnu.objects.get(olt=olt).serial == TWO.serial
    assert WaitingOnu.objects.filter(olt=other).count() == 2


def test_an_onu_on_another_port_waits_there_anew() -> None:
    olt = make_olt()
    save_waiting(olt.id, [ONE], is_complete=True, now=NOW)

    save_waiting(olt.id, [ONE._replace(port=9)], is_complete=True, now=LATER)

    moved = WaitingOnu.objects.get()
    assert (moved.pon_port, moved.first_seen_at) == ("0/1/9", LATER)
