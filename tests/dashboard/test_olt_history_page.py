"""Cards and uplinks of an OLT over time, and who may look."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.dashboard.olt.history import MAX_CURVES
from facho.hosts.models import Olt, OltGroup
from facho.hosts.olt_data import save_olt_values
from facho.onus.value_history import save_olt_figures
from facho.polling.domain.collection import OltValue

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>=cmd()"


def keep(olt: Olt, *values: OltValue, polls: int = 3) -> None:
    """Let runs every five minutes have read these values; counters grow by what they have each time."""
    ends_at = timezone.now()
    for number in range(polls):
        now = ends_at - timedelta(minutes=5) * (polls - number)
        read = [
            OltValue(v.oid, v.index, v.name, v.place, str(int(v.value) * number), v.unit, v.raw, is_counter=True)
            if v.is_counter
            else v
            for v in values
        ]
        save_olt_values(olt.id, read, whole_oids=(), now=now)
        save_olt_figures(olt.id, read, now=now)


def uplink(place: str, octets: int, index: str = "1") -> OltValue:
    return OltValue("1.1", index, "if.in_octets", place, str(octets), "B", "", is_counter=True)


def card(place: str, celsius: str, index: str) -> OltValue:
    return OltValue("1.2", index, "board.temperature", place, celsius, "degC", "")


def page(client: Client, olt: Olt, query: str = "") -> str:
    answer = client.get(f"/olts/{olt.id}/history/{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_uplinks_and_cards_have_their_curves_and_pon_interfaces_do_not(viewer: Client) -> None:
    olt = make_olt("North")
    keep(olt, uplink("xgei 1/19/1", 375_000_000), uplink("gpon_olt-1/2/3", 9, "2"), card("0/1", "41", "5"))

    shown = page(viewer, olt)

    assert "<bdi>xgei 1/19/1 received</bdi>: lowest 10.00, highest 10.00 Mbit/s" in shown
    assert "<bdi>0/1</bdi>: lowest 41.00, highest 41.00 °C" in shown
    assert "gpon_olt" not in shown


def test_the_rows_with_the_highest_values_are_drawn_and_the_file_has_all(viewer: Client) -> None:
    olt = make_olt()
    keep(olt, *(card(f"0/{number}", str(30 + number), str(number)) for number in range(MAX_CURVES + 2)))

    shown = page(viewer, olt)

    assert "<bdi>0/7</bdi>" in shown
    assert "<bdi>0/1</bdi>" not in shown
    assert "the 2 with the lowest values are in the CSV only" in shown
    head, *rows = viewer.get(f"/olts/{olt.id}/history.csv").content.decode().splitlines()
    assert head.count("Temperature 0/") == MAX_CURVES + 2
    assert len(rows) == 3


def test_names_of_devices_do_no_harm(viewer: Client) -> None:
    olt = make_olt()
    keep(olt, card(HOSTILE, "41", "5"))

    assert "<script>alert" not in page(viewer, olt)
    assert "<script>" not in viewer.get(f"/olts/{olt.id}/history/?from=<script>").content.decode().split("<main")[1]


def test_an_olt_without_figures_says_so(viewer: Client) -> None:
    assert "Nothing was read in this period." in page(viewer, make_olt())


@pytest.mark.parametrize("part", ["history/", "history.csv"])
def test_an_olt_of_another_group_is_not_found_and_visitors_log_in(part: str) -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    user = make_user(Role.VIEWER)
    Profile.objects.create(user=user).olt_groups.add(mine)
    visitor = Client()
    visitor.force_login(user)

    assert visitor.get(f"/olts/{make_olt(group=mine).id}/{part}").status_code == 200
    assert visitor.get(f"/olts/{make_olt(group=others).id}/{part}").status_code == 404
    assert Client().get(f"/olts/1/{part}").headers["Location"] == f"/login/?next=/olts/1/{part}"
