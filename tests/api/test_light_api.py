"""Findings in the light and the trees of ports over the API, in the user's scope."""

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup
from facho.onus.models import Onu, OnuReading
from facho.plant.models import FindingOnu, LightFinding
from facho.plant.tree import save_tree

pytestmark = pytest.mark.django_db


@pytest.fixture
def onus() -> list[Onu]:
    """Six ONUs of a port, of which three lost light together."""
    olt, now = make_olt("North"), timezone.now()
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(6)]
    values = {"since": now - timedelta(hours=1), "found_at": now, "judged_at": now, "size_db": -3.1, "onus_read": 6}
    finding = LightFinding.objects.create(kind="common_step", pon_port=onus[0].pon_port, confidence=0.95, **values)
    for number, onu in enumerate(onus):
        OnuReading.objects.update_or_create(onu=onu, defaults={"distance_m": 1_000 + 400 * (number // 3)})
        FindingOnu.objects.create(finding=finding, onu=onu, is_hit=number < 3, size_db=-3.1)
    save_tree(onus[0].pon_port_id)
    return onus


def test_a_finding_has_its_sentence_its_evidence_and_its_onus(onus: list[Onu]) -> None:
    client = APIClient()
    client.force_login(make_user(Role.VIEWER))

    (finding,) = client.get("/api/v1/light-findings/?kind=common_step&open=true").json()["results"]

    assert finding["message"].startswith("3 of 6 ONUs lost 3.1 dB at ")
    assert [each["onu_id"] for each in finding["onus"]] == [onu.id for onu in onus[:3]]
    assert (finding["confidence"], finding["upstream_db"], finding["hint"]) == (0.95, None, "")
    assert finding["cause"].startswith("unknown")


def test_findings_are_narrowed_to_an_onu_that_was_hit(onus: list[Onu]) -> None:
    client = APIClient()
    client.force_login(make_user(Role.VIEWER))

    counts = [client.get(f"/api/v1/light-findings/?onu={onu.id}").json()["count"] for onu in (onus[0], onus[5])]

    assert counts == [1, 0]


def test_the_tree_of_a_port_has_its_boxes(onus: list[Onu]) -> None:
    client = APIClient()
    client.force_login(make_user(Role.VIEWER))

    boxes = client.get(f"/api/v1/pon-ports/{onus[0].pon_port_id}/tree/").json()

    assert [sorted(box["onu_ids"]) for box in boxes] == [[o.id for o in onus[:3]], [o.id for o in onus[3:]]]


def test_other_groups_see_neither(onus: list[Onu]) -> None:
    client, user = APIClient(), make_user(Role.VIEWER)
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(OltGroup.objects.create(name="South"))
    client.force_login(user)

    assert client.get("/api/v1/light-findings/").json()["count"] == 0
    assert client.get(f"/api/v1/pon-ports/{onus[0].pon_port_id}/tree/").status_code == 404
