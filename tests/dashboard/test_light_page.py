"""The page of what light shows: each finding in a sentence that opens to its ONUs and the plot it rests on."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup
from facho.onus.models import Onu, OnuReading
from facho.plant.models import Box, FindingOnu, LightFinding, OnuAttachment, OnuBox, TreeCorrection
from facho.plant.tree import save_tree

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

    assert re.search(r"3 of 5 ONUs lost 3\.1 dB at \d\d:\d\d: a splitter, or the fibre to it", page)
    assert "kept their light" in page
    assert [f'href="/onus/{onu.id}/"' in page for onu in onus] == [True] * 3 + [False] * 2
    evidence = text(viewer, page.partition(f'id="plot-{finding.id}" href="')[2].partition('"')[0])
    assert [f'id="level-{onu.id}"' in evidence for onu in onus] == [True] * 3 + [False] * 2


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

    assert "ONUs lost" not in text(viewer, "/light/?kind=decay")
    assert "dB a day" not in text(viewer, "/light/?state=over")
    assert "dB a day" in text(viewer, "/light/?state=open")


def test_findings_of_other_groups_are_not_shown(client: Client) -> None:
    user, olt = make_user(Role.VIEWER), make_olt("North")
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(OltGroup.objects.create(name="South"))
    lose_in_common([make_onu(olt, (0, 1, 6, number)) for number in range(3)], hit=3)
    client.force_login(user)

    assert "ONUs lost" not in text(client)


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

    assert "3 of 6 ONUs lost 3.1 dB" in page
    assert "Boxes of this port" in page
    assert page.count("<circle") == 6
    assert page.count('<path d="M12 14V') == 2


def test_a_tree_opens_to_the_events_that_it_rests_on(viewer: Client) -> None:
    olt = make_olt("North")
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(6)]
    finding = lose_in_common(onus, hit=3)
    cut = make_outage(olt, slot=1, port=6, affected=4)
    save_tree(onus[0].pon_port_id)

    page = text(viewer, f"/olts/{olt.id}/ports/0/1/6/")

    assert f'href="/light/{finding.id}/">3 of 6 ONUs lost' in page
    assert f'href="/outages/{cut.id}/">4 ONUs down together' in page


def test_without_events_no_tree_is_claimed(viewer: Client) -> None:
    olt = make_olt("North")
    onu = make_onu(olt, (0, 1, 6, 1))
    save_tree(onu.pon_port_id)

    assert "Boxes of this port" not in text(viewer, f"/olts/{olt.id}/ports/0/1/6/")


def test_what_the_evidence_does_not_show_is_unknown(viewer: Client) -> None:
    olt = make_olt("North")
    finding = lose_in_common([make_onu(olt, (0, 1, 6, number)) for number in range(3)], hit=3)

    page = text(viewer, f"/light/{finding.id}/")

    assert "Unknown: the OLT did not report what it receives" in page
    assert "Nothing was read in this period." in page
    assert page.count("unknown") >= 3 * 5


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("step", {"size_db": -2.5}, "lost 2.5 dB at"),
        ("noise", {"size_db": 0.31, "times": 2.4}, "2.4 times as unsteady as before: 0.31 dB"),
        ("flapping", {"size_db": 0.1, "times": 9}, "left its level and came back 9 times in a day"),
        ("sender", {"size_db": 0.1, "days_soonest": 3, "days_latest": 6}, "receives less than -28 dBm in 3 to 6 days"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_kind_is_a_sentence_that_opens(viewer: Client, kind: str, fields: dict[str, Any], words: str) -> None:
    onu = make_onu(make_olt("North"), (0, 1, 6, 4))
    finding = find(onu, kind=kind, onu=onu, **fields)

    assert words in text(viewer)
    assert words in text(viewer, f"/onus/{onu.id}/")
    assert "Confidence" in text(viewer, f"/light/{finding.id}/")


def test_a_finding_of_another_group_does_not_open(client: Client) -> None:
    user, olt = make_user(Role.VIEWER), make_olt("North")
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(OltGroup.objects.create(name="South"))
    finding = lose_in_common([make_onu(olt, (0, 1, 6, number)) for number in range(3)], hit=3)
    client.force_login(user)

    assert client.get(f"/light/{finding.id}/").status_code == 404


def port_with_a_tree() -> list[Onu]:
    olt = make_olt("North")
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(6)]
    for number, onu in enumerate(onus):
        OnuReading.objects.update_or_create(onu=onu, defaults={"distance_m": 1_000 + 400 * (number // 3) + number})
    lose_in_common(onus, hit=3)
    save_tree(onus[0].pon_port_id)
    return onus


def test_an_operator_moves_an_onu_to_another_box_and_takes_it_back(client: Client) -> None:
    client.force_login(make_user(Role.OPERATOR))
    onus = port_with_a_tree()
    number = {box.onu_id: box.number for box in OnuBox.objects.all()}
    address = f"/ports/{onus[0].pon_port_id}/tree/"

    client.post(address, {"id": [onus[0].id], "target": number[onus[5].id]})

    moved = {box.onu_id: box.number for box in OnuBox.objects.all()}
    assert moved[onus[0].id] == moved[onus[5].id] != moved[onus[1].id]
    page = text(client, f"/olts/{onus[0].olt_id}/ports/0/1/6/")
    assert "corrected by hand" in page

    client.post(address, {"remove": TreeCorrection.objects.get().id})

    assert {box.onu_id: box.number for box in OnuBox.objects.all()} == number
    assert "corrected by hand" not in text(client, f"/olts/{onus[0].olt_id}/ports/0/1/6/")


def test_a_viewer_and_other_groups_correct_nothing(viewer: Client, client: Client) -> None:
    onus = port_with_a_tree()
    address = f"/ports/{onus[0].pon_port_id}/tree/"

    assert viewer.post(address, {"id": [onus[0].id]}).status_code == 403

    stranger = make_user(Role.OPERATOR)
    Profile.objects.get_or_create(user=stranger)[0].olt_groups.add(OltGroup.objects.create(name="South"))
    client.force_login(stranger)
    assert client.post(address, {"id": [onus[0].id]}).status_code == 404
    assert not TreeCorrection.objects.exists()


def test_a_box_is_called_by_the_name_of_the_known_box(viewer: Client) -> None:
    onus = port_with_a_tree()
    box = Box.objects.create(name="CTO 12")
    for onu in onus[:3]:
        OnuAttachment.objects.create(onu=onu, box=box, source="hand")

    assert "CTO 12" in text(viewer, f"/olts/{onus[0].olt_id}/ports/0/1/6/")
