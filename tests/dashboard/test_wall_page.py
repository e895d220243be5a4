"""The wall view: for every role, within its scope, with what a screen in the room should show."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.test import Client

from api.rows import make_leader, make_olt, make_onu, make_pollers, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db

PATHS = ["/wall/", "/wall/live/"]


def text(client: Client, path: str = "/wall/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return str(answer.content.decode())


@pytest.mark.parametrize("path", PATHS)
def test_a_visitor_is_asked_to_log_in(path: str) -> None:
    assert Client().get(path).headers["Location"] == f"/login/?next={path}"


def test_the_overview_leads_to_it(viewer: Client) -> None:
    assert 'href="/wall/"' in text(viewer, "/")


def test_it_has_numbers_outages_the_weakest_light_and_changes(viewer: Client) -> None:
    olt = make_olt("North")
    make_outage(olt)
    for number, power in enumerate((-2750, -3010, -2000, -2890)):
        make_onu(olt, (0, 1, 0, number), serial=f"LAB{number}", run_state="online", rx_power_cdbm=power)

    page = text(viewer)

    light = page[page.index('id="wall-light"') : page.index('id="wall-changes"')]
    assert "1 outage now" in page
    assert light.index("LAB1") < light.index("LAB3") < light.index("LAB0")
    assert "LAB2" not in light


def test_calm_is_said(viewer: Client) -> None:
    make_olt("North")

    page = text(viewer)

    assert "No outage now." in page
    assert "No ONU has weak light." in page


def test_nothing_outside_ones_scope_is_shown(db: None) -> None:
    person, group = make_user(Role.VIEWER), OltGroup.objects.create(name="ours")
    own, other = make_olt("Own"), make_olt("Other")
    group.olts.add(own)
    Profile.objects.update_or_create(user=person)[0].olt_groups.add(group)
    for olt in (own, other):
        make_onu(olt, serial=f"S{olt.name}", run_state="online", rx_power_cdbm=-3000)
        make_outage(olt)
    client = Client(headers={"accept-language": "en"})
    client.force_login(person)

    page = text(client)

    assert "SOwn" in page
    assert "1 outage now" in page
    assert "Other" not in page


def test_more_onus_cost_no_more_queries(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    make_leader()
    make_pollers(4)
    olt = make_olt("North")
    for number in range(40):
        make_onu(olt, (0, 1, 0, number), run_state="online", rx_power_cdbm=-2800 - number)

    with django_assert_max_num_queries(24):
        text(viewer, "/wall/live/")


def test_its_clock_has_the_zone_of_the_reader(viewer: Client) -> None:
    assert '<time id="wall-clock" data-zone="UTC">' in text(viewer)
