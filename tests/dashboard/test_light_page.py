"""The page of what light shows: each finding in a sentence that opens to its ONUs and the plot it rests on."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup
from facho.onus.models import Onu, OnuReading
from facho.plant.models import FindingOnu, LightFinding
from facho.plant.watch import save_tree

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(make_user(Role.VIEWER))
    return client


def text(client: Client, path: str = "/light/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def find(at: Onu, **fields: Any) -> LightFinding:
    now = timezone.now()
    values = {"since": now - timedelta(hours=1), "found_at": now, "judged_at": now, "size_db": -3.14, **fields}
    return LightFinding.objects.create(pon_port=at.pon_port, **values)


def lose_in_common(onus: list[Onu], *, hit: int) -> LightFinding:
    finding = find(onus[0], kind="common_step", onus_read=len(onus))
    FindingOnu.objects.bulk_create(
        FindingOnu(finding=finding, onu=onu, is_hit=number < hit, size_db=-3.1) for number, onu in enumerate(onus)
    )
    return finding


def test_light_lost_in_common_opens_to_its_onus_and_their_plot(viewer: Client) -> None:
    olt = make_olt("North")
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(5)]
    finding = lose_in_common(onus, hit=3)

    page = text(viewer)

    assert "3 of 5 ONUs lost 3.1 dB at once: a splitter, or the fibre to it" in page
    assert "kept their light" in page
    assert [f'href="/onus/{onu.id}/"' in page for onu in onus] == [True] * 3 + [False] * 2
    plot = page.partition(f'id="plot-{finding.id}" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert viewer.get(plot).status_code == 200
    assert f"with={onus[1].id}%2C{onus[2].id}" in plot


def test_a_whole_port_that_lost_light_names_the_fibre_before_the_splitter(viewer: Client) -> None:
    olt = make_olt("North")
    lose_in_common([make_onu(olt, (0, 1, 6, number)) for number in range(3)], hit=3)

    assert "before the first splitter" in text(viewer)


def test_a_decay_says_when_the_light_will_be_too_weak(viewer: Client) -> None:
    onu = make_onu(make_olt("North"), (0, 1, 6, 4))
    forecast = {"days_soonest": 9.2, "days_likely": 11.0, "days_latest": 14.1, "level_dbm": -25.61}
    find(onu, kind="decay", onu=onu, size_db=0.12, **forecast)

    page = text(viewer)

    assert "loses 0.12 dB a day and falls below -27 dBm in 9 to 14 days" in page
    assert "-25.61 dBm" in page


def test_the_list_is_narrowed_by_kind_and_state(viewer: Client) -> None:
    onu = make_onu(make_olt("North"), (0, 1, 6, 4))
    find(onu, kind="decay", onu=onu, size_db=0.5, days_soonest=1, days_likely=2, days_latest=3)
    lose_in_common([onu], hit=1)
    LightFinding.objects.filter(kind="common_step").update(ended_at=timezone.now())

    assert "at once" not in text(viewer, "/light/?kind=decay")
    assert "dB a day" not in text(viewer, "/light/?state=over")
    assert "dB a day" in text(viewer, "/light/?state=open")


def test_findings_of_other_groups_are_not_shown(client: Client) -> None:
    user, olt = make_user(Role.VIEWER), make_olt("North")
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(OltGroup.objects.create(name="South"))
    lose_in_common([make_onu(olt, (0, 1, 6, number)) for number in range(3)], hit=3)
    client.force_login(user)

    assert "at once" not in text(client)


def test_texts_of_devices_do_not_become_html(viewer: Client) -> None:
    olt = make_olt("North")
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(3)]
    Onu.objects.update(description="<script>alert(1)</script>")
    lose_in_common(onus, hit=3)

    assert "<script>alert" not in text(viewer)


def test_a_list_costs_the_same_however_long_it_is(viewer: Client, django_assert_max_num_queries: Any) -> None:
    olt = make_olt("North")
    for port in range(6):
        lose_in_common([make_onu(olt, (0, 1, port, number)) for number in range(3)], hit=3)

    with django_assert_max_num_queries(12):
        text(viewer)


def test_the_port_shows_its_findings_and_the_tree_they_make(viewer: Client) -> None:
    olt = make_olt("North")
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(6)]
    for number, onu in enumerate(onus):
        OnuReading.objects.update_or_create(onu=onu, defaults={"distance_m": 1_000 + 400 * (number // 3) + number})
    lose_in_common(onus, hit=3)
    save_tree(onus[0].pon_port_id)

    page = text(viewer, f"/olts/{olt.id}/ports/0/1/6/")

    assert "3 of 6 ONUs lost 3.1 dB at once" in page
    assert "ONUs that seem to share a splitter" in page
    assert page.count("<circle") == 6
    assert page.count('<path d="M10 20V') == 2


def test_without_events_no_tree_is_claimed(viewer: Client) -> None:
    olt = make_olt("North")
    onu = make_onu(olt, (0, 1, 6, 1))
    save_tree(onu.pon_port_id)

    assert "seem to share" not in text(viewer, f"/olts/{olt.id}/ports/0/1/6/")
