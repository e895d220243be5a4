"""Outages on pages: the list, the evidence for a cause, who takes care, and who may see what."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import Olt, OltGroup
from facho.onus.models import Onu, OnuEvent, Outage
from facho.traps.models import Trap

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
SCRIPT = "<script>alert(1)</script>"


def text(client: Client, path: str = "/outages/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def client_of(role: Role, name: str = "") -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(role, name))
    return client


def limited_to(group: OltGroup) -> Client:
    client, user = Client(headers={"accept-language": "en"}), make_user()
    Profile.objects.create(user=user).olt_groups.add(group)
    client.force_login(user)
    return client


def take_down(outage: Outage, olt: Olt, causes: list[str], *, apart: timedelta = timedelta(0)) -> list[Onu]:
    onus = [
        make_onu(olt, (0, 1, 3, number), run_state="offline", last_down_cause=cause, outage=outage)
        for number, cause in enumerate(causes)
    ]
    for number, (onu, cause) in enumerate(zip(onus, causes, strict=True)):
        OnuEvent.objects.create(
            olt=olt,
            pon_port=onu.pon_port,
            onu=onu,
            onu_number=onu.onu_id,
            at=outage.started_at + number * apart,
            kind="down",
            cause=cause,
        )
    return onus


def test_what_goes_on_comes_before_what_is_over(viewer: Client) -> None:
    olt, now = make_olt("North"), timezone.now()
    make_outage(olt, cause="power", ended_at=now, started_at=now - MINUTE)
    cut = make_outage(olt, port=4)

    page = text(viewer)

    assert page.index("fibre cut</a>") < page.index("no power at the customers</a>")
    assert f'href="/outages/{cut.id}/"' in page
    assert 'data-label="Lasted" class="short">60 s</td>' in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("show=open", {"open", "seen"}),
        ("show=unseen", {"open"}),
        ("show=acknowledged", {"seen"}),
        ("show=ended", {"over"}),
        ("cause=power", {"seen"}),
        ("olt={south}", {"seen"}),
        ("after={later}", {"open", "seen"}),
        ("before={early}", set()),
        ("after=yesterday&cursor=nonsense", {"open", "seen", "over"}),
    ],
)
def test_the_list_is_narrowed(viewer: Client, query: str, shown: set[str]) -> None:
    north, south, now = make_olt("North"), make_olt("South"), timezone.now()
    rows = {
        "open": make_outage(north),
        "seen": make_outage(south, cause="power", acknowledged_at=now),
        "over": make_outage(north, port=5, ended_at=now - 20 * MINUTE),
    }
    times = {"later": f"{now - 10 * MINUTE:%Y-%m-%dT%H:%M}", "early": f"{now - 600 * MINUTE:%Y-%m-%dT%H:%M}"}

    page = text(viewer, f"/outages/?{query.format(south=south.id, **times)}")

    assert {name for name, row in rows.items() if f'href="/outages/{row.id}/"' in page} == shown


def test_the_past_has_pages_that_lead_back(viewer: Client) -> None:
    olt, now = make_olt(), timezone.now()
    rows = [make_outage(olt, started_at=now - number * MINUTE, ended_at=now) for number in range(51)]

    first = text(viewer)
    older = first.split('rel="next" href="')[1].split('"')[0]
    second = text(viewer, older)

    assert f'href="/outages/{rows[50].id}/"' not in first
    assert f'href="/outages/{rows[50].id}/"' in second
    assert 'rel="prev"' in second
    assert 'rel="next"' not in second


def test_a_fibre_cut_has_its_evidence(viewer: Client) -> None:
    olt = make_olt("North")
    cut = make_outage(olt, affected=10)
    take_down(cut, olt, ["los"] * 9 + ["unknown"], apart=timedelta(seconds=1))
    make_onu(olt, (0, 1, 4, 0), run_state="online")

    page = text(viewer, f"/outages/{cut.id}/")

    assert "9 of 10 ONUs lost the signal (LOS)." in page
    assert "1 of 10 ONUs reported no cause." in page
    assert "None sent a dying gasp." in page
    assert "All went down within 9 s." in page
    assert "The other port of the card is fine." in page
    assert "0 of 10 ONUs of the port are online now." in page
    assert "check between the OLT and the first splitter" in page
    assert 'aria-label="At most 10 ONUs down at once"' in page


def test_the_number_of_other_ports_that_were_out_opens_to_their_outages(viewer: Client) -> None:
    olt, now = make_olt("North"), timezone.now()
    cut = make_outage(olt, started_at=now - 60 * MINUTE, ended_at=now - 50 * MINUTE)
    beside = make_outage(olt, port=4, started_at=now - 55 * MINUTE, ended_at=now - 20 * MINUTE)
    later = make_outage(olt, port=5, started_at=now - 30 * MINUTE)
    for port in (3, 4, 5):
        make_onu(olt, (0, 1, port, 0), run_state="online")

    page = text(viewer, f"/outages/{cut.id}/")
    listed = text(viewer, page.partition('id="why-beside" href="')[2].partition('"')[0].replace("&amp;", "&"))

    assert "1 of the other 2 ports of the card were out at the same time." in page
    assert [f'href="/outages/{each.id}/"' in listed for each in (cut, beside, later)] == [True, True, False]


def test_a_cut_behind_a_splitter_leaves_others_online(viewer: Client) -> None:
    olt = make_olt()
    cut = make_outage(olt)
    take_down(cut, olt, ["los"] * 3)
    make_onu(olt, (0, 1, 3, 40), run_state="online")

    page = text(viewer, f"/outages/{cut.id}/")

    assert "check the splitter branch" in page
    assert "A single poll found all of them down." in page


def test_failing_power_is_reported_by_the_last_words_of_the_onus(viewer: Client) -> None:
    olt = make_olt()
    dark = make_outage(olt, cause="power")
    take_down(dark, olt, ["dying_gasp"] * 4 + ["los"])
    make_onu(olt, (0, 1, 5, 0))
    make_outage(olt, port=5)

    page = text(viewer, f"/outages/{dark.id}/")

    assert "4 of 5 ONUs reported a power failure (dying gasp)." in page
    assert "None sent a dying gasp." not in page
    assert "The other port of the card was out at the same time." in page


def test_gasps_that_only_traps_announced_are_marked_and_change_no_cause(viewer: Client) -> None:
    olt = make_olt()
    cut = make_outage(olt)
    take_down(cut, olt, ["los"] * 5)
    for onu in Onu.objects.filter(onu_id__lt=4):
        message = {"oid": "1", "meaning": "onu_dying_gasp", "heard_at": cut.started_at}
        Trap.objects.create(olt=olt, onu=onu, pon_port_id=onu.pon_port_id, **message)

    page = text(viewer, f"/outages/{cut.id}/")

    assert "5 of 5 ONUs lost the signal (LOS)." in page
    assert "4 of 5 ONUs announced a dying gasp by trap; it was not read as their cause." in page
    assert "None sent a dying gasp." not in page
    assert "But most ONUs announced a power failure by trap" in page
    assert "the fibre is cut or unplugged" in page


def test_nobody_says_that_an_outage_of_a_disabled_olt_goes_on(viewer: Client) -> None:
    olt = make_olt(enabled=False)
    outage = make_outage(olt)
    make_outage(olt, port=4, ended_at=timezone.now())
    make_outage(make_olt())

    assert text(viewer).count("OLT disabled") == 1
    assert text(viewer, f"/outages/{outage.id}/").count("OLT disabled") == 1


def test_the_number_of_an_outage_leads_to_the_onus_that_it_counts(viewer: Client) -> None:
    outage, network = make_outage(make_olt("North")), make_outage(None)

    page = text(viewer)

    assert f'id="now-outage-{outage.id}-onus" href="/outages/{outage.id}/#onus">14</a>' in page
    assert f'id="now-outage-{network.id}-onus" href="/outages/{network.id}/#onus">14</a>' in page
    assert 'id="onus"' in text(viewer, f"/outages/{outage.id}/")


def test_a_larger_outage_and_its_parts_lead_to_each_other(viewer: Client) -> None:
    network = make_outage(None, affected_olts=2)
    silent = make_outage(make_olt("North"), scope="olt", cause="olt", slot=0, port=0, part_of=network)

    assert f'<a id="outage-whole" href="/outages/{network.id}/">the poller lost its network</a>' in text(
        viewer, f"/outages/{silent.id}/"
    )
    whole = text(viewer, f"/outages/{network.id}/")
    assert f'href="/outages/{silent.id}/"' in whole
    assert "2 OLTs stopped answering." in whole


def test_whatever_a_device_or_a_person_wrote_is_text(viewer: Client) -> None:
    olt = make_olt(SCRIPT)
    cut = make_outage(olt, acknowledged_at=timezone.now(), acknowledgement=SCRIPT)
    make_onu(olt, (0, 1, 3, 1), description=SCRIPT, serial="", outage=cut)

    for page in (text(viewer), text(viewer, f"/outages/{cut.id}/")):
        assert SCRIPT not in page
        assert "&lt;script&gt;" in page


def test_an_operator_takes_note_and_everybody_sees_it(viewer: Client) -> None:
    cut = make_outage(make_olt())

    answer = client_of(Role.OPERATOR, "ana").post(f"/outages/{cut.id}/acknowledge/", {"note": "crew under way"})

    assert answer.headers["Location"] == f"/outages/{cut.id}/"
    page = text(viewer, f"/outages/{cut.id}/")
    assert "<strong>ana</strong> acknowledged this" in page
    assert "crew under way" in page
    assert "<textarea" not in page
    assert "acknowledged by ana" in text(viewer)


def test_whoever_comes_second_is_reported_and_may_take_it_back() -> None:
    cut, eva = make_outage(make_olt()), client_of(Role.OPERATOR, "eva")
    client_of(Role.OPERATOR, "ana").post(f"/outages/{cut.id}/acknowledge/", {"note": "mine"})

    assert f'action="/outages/{cut.id}/acknowledge/"' in text(eva, f"/outages/{cut.id}/")

    refused = eva.post(f"/outages/{cut.id}/acknowledge/", {"note": "no, mine"}, follow=True)
    undone = eva.post(f"/outages/{cut.id}/acknowledge/", {"take_back": "1"}, follow=True)

    assert "ana already acknowledged this." in refused.content.decode()
    assert "No one yet." in undone.content.decode()


def test_a_viewer_cannot_take_note(viewer: Client) -> None:
    cut = make_outage(make_olt())

    assert viewer.post(f"/outages/{cut.id}/acknowledge/").status_code == 403
    assert Outage.objects.get().acknowledged_at is None


def test_an_outage_of_an_olt_out_of_scope_is_nowhere() -> None:
    mine, group = make_outage(make_olt("Hers", group=(g := OltGroup.objects.create(name="hers")))), g
    other, network = make_outage(make_olt("Other")), make_outage(None)
    client = limited_to(group)

    page = text(client)

    assert f'href="/outages/{mine.id}/"' in page
    assert f'href="/outages/{other.id}/"' not in page
    assert "Other" not in page
    for hidden in (other, network):
        assert client.get(f"/outages/{hidden.id}/").status_code == 404
        assert client.get(f"/outages/{hidden.id}/onus/").status_code == 404
        assert client.post(f"/outages/{hidden.id}/acknowledge/").status_code == 404


def test_who_may_not_see_the_network_sees_the_olt_that_it_took_down() -> None:
    group = OltGroup.objects.create(name="hers")
    silent = make_outage(
        make_olt(group=group), scope="olt", cause="olt", slot=0, port=0, part_of=make_outage(None, affected_olts=2)
    )
    client = limited_to(group)

    assert f'href="/outages/{silent.id}/"' in text(client)
    assert "the poller lost its network" not in text(client, f"/outages/{silent.id}/")


def test_queries_do_not_grow(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    olt = make_olt()
    cut = make_outage(olt, acknowledged_at=timezone.now(), acknowledged_by=make_user(Role.OPERATOR))
    take_down(cut, olt, ["los"] * 60)
    for port in range(4, 24):
        make_outage(olt, port=port, acknowledged_by=make_user(Role.OPERATOR), acknowledged_at=timezone.now())

    with django_assert_max_num_queries(8):  # session, user, scope, OLTs to choose, open, over, badge, language
        text(viewer)
    with django_assert_max_num_queries(17):
        text(viewer, f"/outages/{cut.id}/")


def test_the_parts_of_the_page_refresh_alone(viewer: Client) -> None:
    cut = make_outage(make_olt())

    assert "<html" not in text(viewer, f"/outages/{cut.id}/state/")
    assert "<html" not in text(viewer, f"/outages/{cut.id}/onus/?page=x")
    assert viewer.get(f"/outages/{cut.id}/nothing/").status_code == 404


def test_a_recurring_outage_shows_when_service_was_back(viewer: Client) -> None:
    at = timezone.now().replace(hour=7, minute=30)
    back = [[at.replace(minute=50).isoformat(), at.replace(hour=8, minute=1).isoformat()]]
    outage = make_outage(make_olt("North"), started_at=at, resumed_at=at.replace(hour=8, minute=1), breaks=back)

    page = text(viewer, f"/outages/{outage.id}/")

    assert f"out since {at:%Y-%m-%d} 07:30, back 07:50–08:01" in page  # noqa: RUF001 a range
    assert ">out again</text>" in page
