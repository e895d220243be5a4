"""The page of traps: the switch, what OLTs said and what was read, who is not heard, and who never speaks."""

from datetime import timedelta
from importlib.resources import files

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.dashboard.traps.views import load_said_of_port, trap_lines
from facho.hosts.models import Olt, OltGroup
from facho.polling.domain.hints import Meaning
from facho.polling.snmp.oid import parse_oid
from facho.polling.vendors.loader import read_definition
from facho.polling.vendors.notifications import explain
from facho.traps.models import Trap, TrapReceiver, TrapSender
from facho.traps.store import is_switched_on, switch

pytestmark = pytest.mark.django_db


def text(client: Client, path: str = "/traps/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user(Role.ADMIN))
    return client


def say(olt: Olt, **fields: object) -> Trap:
    heard_at = timezone.now() - timedelta(minutes=1)
    values: dict[str, object] = {"meaning": "onu_los", "oid": "1.3.6.1", "name": "x", "heard_at": heard_at, **fields}
    return Trap.objects.create(olt=olt, **values)


def send(address: str = "192.0.2.9", reason: str = "unknown_sender", count: int = 12) -> None:
    now = timezone.now()
    TrapSender.objects.create(address=address, reason=reason, count=count, first_heard_at=now, last_heard_at=now)


def test_what_an_olt_said_stands_next_to_what_was_read_and_when(admin: Client) -> None:
    olt = make_olt("North")
    onu = make_onu(olt, (0, 1, 6, 54))
    trap = say(olt, onu=onu, frame=0, slot=1, port=6, onu_number=54, outcome="confirmed")
    Trap.objects.update(settled_at=trap.heard_at + timedelta(seconds=2.4))

    page = text(admin)

    assert "loss of signal of an ONU" in page
    assert "confirmed" in page
    assert "after 2.4 s" in page
    assert "0/1/6/54" in page
    assert f'href="/onus/{onu.id}/"' in page


def test_a_lie_is_reported_as_not_confirmed(admin: Client) -> None:
    olt = make_olt("North")
    say(olt, onu=make_onu(olt, (0, 1, 6, 54)), outcome="not_confirmed")

    assert "not confirmed" in text(admin)


def test_the_pages_of_olt_and_onu_say_what_was_said(admin: Client) -> None:
    olt = make_olt("North")
    onu = make_onu(olt, (0, 1, 6, 54))
    say(olt, onu=onu, meaning="onu_dying_gasp")

    for address in (f"/olts/{olt.id}/events/", f"/onus/{onu.id}/past/"):
        assert "dying gasp" in text(admin, address)


def test_what_was_said_of_a_port_and_its_onus_stands_together() -> None:
    olt = make_olt("North")
    onu, other = make_onu(olt, (0, 1, 6, 54)), make_onu(olt, (0, 1, 7, 54))
    heard_at = timezone.now()
    read = {"outcome": "confirmed", "settled_at": heard_at + timedelta(seconds=1.5), "heard_at": heard_at}
    say(olt, meaning="pon_los", pon_port=onu.pon_port, **read)
    say(olt, meaning="onu_los", onu=onu, pon_port=onu.pon_port)
    say(olt, meaning="onu_los", onu=other, pon_port=other.pon_port)
    say(olt, meaning="fan")

    port, of_onu = load_said_of_port(olt.id, (0, 1, 6), 10)

    assert (port.what, str(port.outcome), port.delay) == ("loss of signal of a PON port", "confirmed", 1.5)
    assert (of_onu.trap.onu_id, str(of_onu.outcome)) == (onu.id, "being read")


def test_a_stranger_can_be_added_as_an_olt(admin: Client) -> None:
    send()

    page = text(admin)

    assert "12 traps from 192.0.2.9, which is not an OLT:" in page
    assert 'href="/olts/add/?host=192.0.2.9"' in page


def test_an_unknown_trap_shows_its_values_without_running_them(admin: Client) -> None:
    say(make_olt("North"), meaning="other", oid="1.3.6.1.4.1.9.9", values=[["1.3.6.1.9", "0x04", "<script>"]])

    page = text(admin)

    assert "1.3.6.1.9 = &lt;script&gt;" in page
    assert "- {meaning: other, base: 1.3.6.1.4.1.9, names: {9: my_trap}}" in page


def test_the_line_for_an_unknown_trap_gives_it_a_meaning_in_a_definition_of_ones_own(admin: Client) -> None:
    olt = make_olt("North")
    Olt.objects.update(vendor="huawei_smartax")
    trap = say(olt, meaning="other", oid="1.3.6.1.4.1.99999.0.9", values=[["1.3.6.1.9", "0x02", "7"]])
    [shown] = trap_lines([trap])
    ours = (files("facho.polling.vendors") / "definitions/huawei_smartax.yaml").read_text()

    line = shown.definition_line.replace("other", "fan")
    own = read_definition(ours.replace("  said:\n", f"  said:\n    {line}\n", 1), "huawei_smartax.yaml")

    message = explain(own, parse_oid(trap.oid), ())
    assert (message.name, message.meaning) == ("my_trap", Meaning.FAN)
    page = text(admin)
    assert "definitions/huawei_smartax.yaml" in page
    assert "onu_los" in page


def test_olts_that_never_speak_are_named_with_what_to_type(admin: Client) -> None:
    switch(is_on=True)
    make_olt("North")
    Olt.objects.update(vendor="huawei_smartax")

    page = text(admin)

    assert "OLTs that never sent a trap" in page
    assert "snmp-agent trap enable standard" in page


def test_an_admin_switches_it_on_and_off(admin: Client) -> None:
    assert "Traps are not received." in text(admin)

    admin.post("/traps/switch/", {"is_on": "yes"})

    assert is_switched_on()
    assert "no receiver listens" in text(admin)
    now = timezone.now()
    TrapReceiver.objects.create(name="x", engine_id="00", started_at=now, seen_at=now)
    assert "Listening on 0.0.0.0:1162." in text(admin)
    admin.post("/traps/switch/", {"is_on": "no"})
    assert not is_switched_on()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_others_read_and_switch_nothing(client: Client, role: Role) -> None:
    client.force_login(make_user(role))
    send()

    assert client.post("/traps/switch/", {"is_on": "yes"}).status_code == 403
    assert not is_switched_on()
    assert "192.0.2.9" not in text(client)


def test_who_is_limited_to_groups_sees_traps_of_these_only(client: Client) -> None:
    group = OltGroup.objects.create(name="south")
    south, north = make_olt("South"), make_olt("North")
    Olt.objects.filter(id=south.id).update(group=group)
    user = make_user(Role.ADMIN)
    profile, _is_new = Profile.objects.get_or_create(user=user)
    profile.olt_groups.add(group)
    client.force_login(user)
    for olt in (south, north):
        say(olt, serial=f"OF{olt.name}")
    send()

    page = text(client)

    assert "OFSouth" in page
    assert "OFNorth" not in page
    assert "192.0.2.9" not in page
