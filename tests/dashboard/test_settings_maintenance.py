"""Maintenance windows for one OLT or many: what is silent or paused, when, by whom, and how it ends."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from api.rows import make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.dashboard.settings.maintenance import tonight
from facho.hosts.models import Olt, OltGroup, Pause
from facho.hosts.store import active_pauses

pytestmark = pytest.mark.django_db

ADDRESS = "/settings/maintenance/"


def visitor(role: Role = Role.OPERATOR, *groups: OltGroup) -> Client:
    user, client = make_user(role), Client(headers={"accept-language": "en"})
    if groups:
        Profile.objects.create(user=user).olt_groups.set(groups)
    client.force_login(user)
    return client


def plan(client: Client, **changes: object) -> str:
    values = {"kind": "silence", "when": "1h", "note": "crew", **changes}
    return client.post(ADDRESS, values, follow=True).content.decode()


def test_one_click_from_its_page_an_olt_is_chosen() -> None:
    olt, client = make_olt("Norte"), visitor()

    assert f'href="{ADDRESS}?olt={olt.id}"' in client.get(f"/olts/{olt.id}/").content.decode()
    page = client.get(f"{ADDRESS}?olt={olt.id}").content.decode()
    assert f'name="olts" value="{olt.id}" checked' in page


def test_alerts_of_olts_and_groups_are_silenced_while_polling_continues() -> None:
    north = OltGroup.objects.create(name="North")
    chosen, grouped, other = make_olt(), make_olt(group=north), make_olt()
    client = visitor()

    page = plan(client, olts=[chosen.id], groups=[north.id])

    made = Pause.objects.all()
    assert {pause.olt_id for pause in made} == {chosen.id, grouped.id}
    assert other.id not in {pause.olt_id for pause in made}
    assert all(pause.keeps_polling and pause.note == "crew" for pause in made)
    assert not active_pauses(timezone.now())
    assert "Alerts of 2 OLTs will be silenced during that time." in page
    assert "Its alerts are silent; that ends" in client.get(f"/olts/{chosen.id}/").content.decode()
    assert "Its alerts are silent" not in client.get(f"/olts/{other.id}/").content.decode()
    assert LogEntry.objects.count() == 2


def test_polling_of_everything_is_paused_and_ended() -> None:
    make_olt()
    client = visitor()

    plan(client, kind="pause", everything="on")

    held = Pause.objects.get()
    assert (held.olt, held.keeps_polling) == (None, False)
    assert "All OLTs" in client.get(ADDRESS).content.decode()
    client.post(f"{ADDRESS}{held.id}/end/")
    assert not active_pauses(timezone.now())
    assert LogEntry.objects.count() == 2


def test_a_silence_of_everything_is_on_the_overview() -> None:
    olt, client = make_olt("norte"), visitor()

    plan(client, olts=[olt.id])
    assert ">alerts silent<" in client.get("/").content.decode()
    plan(client, everything="on", note="storm")

    page = client.get("/").content.decode()
    assert "The alerts of all OLTs are silenced." in page
    assert "storm" in page
    assert "Everything is paused." not in page


def test_a_window_of_many_is_one_line_and_ends_as_one() -> None:
    olts, client = [make_olt(f"olt-{number:02}") for number in range(12)], visitor()
    plan(client, olts=[olt.id for olt in olts])

    page = client.get(ADDRESS).content.decode()
    assert page.count(f'action="{ADDRESS}') == 1
    assert "and 7 more" in page
    with CaptureQueriesContext(connection) as queries:
        client.post(f"{ADDRESS}{Pause.objects.order_by('id')[3].id}/end/")

    assert len(queries) <= 16
    assert LogEntry.objects.count() == 2 * len(olts)
    assert not Pause.objects.filter(ends_at__gt=timezone.now()).exists()


def test_what_was_typed_stays_and_says_what_is_missing() -> None:
    olt, client = make_olt(), visitor()

    page = plan(client, when="other", starts_at="2030-01-02T10:00", olts=[olt.id], note="typed")
    assert 'class="field wrong" id="field-ends_at"' in page
    assert 'value="typed"' in page
    assert 'value="2030-01-02T10:00"' in page
    assert f'value="{olt.id}" checked' in page
    assert "Choose at least one OLT" in plan(client)
    wrong = {"when": "other", "starts_at": "2030-01-02T10:00", "ends_at": "2030-01-02T09:00"}
    assert "must be after the start" in plan(client, olts=[olt.id], **wrong)
    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("clock", "begins", "ends"),
    [
        ((6, 15, 0), (6, 22, 0), (7, 6, 0)),
        ((6, 23, 30), (6, 23, 30), (7, 6, 0)),
        ((6, 2, 0), (6, 2, 0), (6, 6, 0)),
    ],
)
def test_tonight_is_the_night_that_comes_or_the_rest_of_this_one(
    clock: tuple[int, ...], begins: tuple[int, ...], ends: tuple[int, ...]
) -> None:
    def at(day: int, hour: int, minute: int) -> datetime:
        return datetime(2030, 5, day, hour, minute, tzinfo=UTC)

    with timezone.override("UTC"):
        assert tonight(at(*clock)) == (at(*begins), at(*ends))


def test_somebody_limited_plans_and_ends_only_for_their_olts() -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    seen, hidden = make_olt(group=mine), make_olt("secluded", group=others)
    now = timezone.now()
    window = {"starts_at": now, "ends_at": now + timedelta(hours=1), "note": "n"}
    foreign = Pause.objects.create(olt=hidden, **window)
    everything = Pause.objects.create(olt=None, **window)
    own = Pause.objects.create(olt=seen, **window)
    client = visitor(Role.OPERATOR, mine)

    page = client.get(f"{ADDRESS}?olt={hidden.id}&find=secl").content.decode()
    assert "secluded" not in page
    assert 'name="everything"' not in page
    assert "Choose at least one OLT" in plan(client, olts=[hidden.id], groups=[others.id], everything="on")
    answers = [client.post(f"{ADDRESS}{each.id}/end/").status_code for each in (foreign, everything, own)]
    assert answers == [404, 404, 302]
    assert Pause.objects.filter(ends_at__gt=timezone.now()).count() == 2


def test_viewers_plan_nothing() -> None:
    olt, client = make_olt(), visitor(Role.VIEWER)

    assert client.post(ADDRESS, {"olts": [olt.id], "kind": "pause", "when": "1h"}).status_code == 403
    assert client.post(f"{ADDRESS}1/end/").status_code == 403
    assert not Pause.objects.exists()


def test_olts_are_found_by_typing_and_ticked_ones_stay_at_constant_cost() -> None:
    client, kept = visitor(), make_olt("kept")
    Olt.objects.bulk_create(
        Olt(name=f"olt {number:03}", host=f"h{number}", address=f"10.9.0.{number + 1}") for number in range(200)
    )

    with CaptureQueriesContext(connection) as queries:
        part = client.get(f"{ADDRESS}?find=olt+17&olts={kept.id}", headers={"HX-Request": "true"}).content.decode()

    assert f'value="{kept.id}" checked' in part
    assert "olt 17" in part
    assert "<html" not in part
    assert "and 181 more" in client.get(ADDRESS).content.decode()
    assert len(queries) <= 8
