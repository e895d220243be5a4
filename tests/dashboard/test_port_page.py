"""The page of a PON port: how its ONUs are, their light now and over time, what passes through it, and who may look."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import Olt, OltData, OltGroup, WaitingOnu
from facho.hosts.olt_data import save_olt_values
from facho.onus.history import Samples, append
from facho.onus.history_models import Metric
from facho.onus.models import Onu, OnuEvent, PonPort
from facho.onus.value_history import save_olt_figures
from facho.polling.domain.collection import OltValue

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
PLACE = "0/1/3"
PARTS = ["", "state/", "light/", "past/", "history.csv"]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def page(client: Client, olt: Olt, part: str = "", query: str = "") -> str:
    answer = client.get(f"/olts/{olt.id}/ports/{PLACE}/{part}{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def make_port(olt: Olt, *powers: int | None) -> list[Onu]:
    """Fill the port with ONUs that receive so many hundredths of a dBm; None is offline."""
    return [
        make_onu(
            olt,
            (0, 1, 3, number),
            serial=f"HWTC{number:08}",
            run_state="offline" if power is None else "online",
            rx_power_cdbm=power,
        )
        for number, power in enumerate(powers, start=1)
    ]


def keep_light(onus: list[Onu], powers: dict[int, list[float]]) -> None:
    """Let polls every five minutes have read these powers by number of the ONU, the last of them just now."""
    now, length = timezone.now(), len(next(iter(powers.values())))
    for step in range(length):
        values = [powers[number][step] for number in powers]
        ids = [onus[number].id for number in powers]
        ports = [onus[number].pon_port_id for number in powers]
        append(now - (length - step) * 5 * MINUTE, Samples.of(ids, ports, {Metric.RX_POWER: values}))


@pytest.mark.parametrize("part", PARTS)
def test_what_is_no_port_is_not_found_and_visitors_log_in(viewer: Client, part: str) -> None:
    olt = make_olt(reachability="up")
    make_port(olt, -2000)
    PonPort.objects.create(olt=olt, frame=0, slot=1, port=4, is_known=False)

    assert viewer.get(f"/olts/{olt.id}/ports/0/1/4/{part}").status_code == 404
    assert viewer.get(f"/olts/4711/ports/{PLACE}/{part}").status_code == 404
    assert viewer.get(f"/olts/{olt.id}/ports/0/1/{10**30}/{part}").status_code == 404
    assert viewer.get(f"/olts/{olt.id}/ports/{PLACE}/nothing/").status_code == 404
    away = Client().get(f"/olts/{olt.id}/ports/{PLACE}/{part}")
    assert away.headers["Location"] == f"/login/?next=/olts/{olt.id}/ports/{PLACE}/{part}"


@pytest.mark.parametrize("part", PARTS)
def test_a_port_of_another_group_is_not_found(part: str) -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    user = make_user(Role.VIEWER)
    Profile.objects.create(user=user).olt_groups.add(mine)
    visitor = Client()
    visitor.force_login(user)
    here, there = make_olt(group=mine), make_olt(group=others)
    make_port(here, -2000)
    make_port(there, -2000)

    assert visitor.get(f"/olts/{here.id}/ports/{PLACE}/{part}").status_code == 200
    assert visitor.get(f"/olts/{there.id}/ports/{PLACE}/{part}").status_code == 404


def test_it_says_how_its_onus_are_and_names_the_weakest(viewer: Client) -> None:
    olt = make_olt("North", reachability="up")
    make_port(olt, -2000, -2810, None, -2400)
    WaitingOnu.objects.create(
        olt=olt, frame=0, slot=1, port=3, serial="NEW", first_seen_at=timezone.now(), last_seen_at=timezone.now()
    )

    state = page(viewer, olt, "state/")

    assert "<h1>Port 0/1/3</h1>" in state
    assert "3 of 4 ONUs online" in state
    assert "1 offline" in state
    assert "1 with weak light" in state
    assert "1 to authorise" in state
    assert '<span class="value">4</span> of 128 ONUs' in state
    assert '<span class="value">-24.03</span> dBm' in state
    worst = state.split('id="worst-title"')[1]
    assert worst.index(">HWTC00000002<") < worst.index(">HWTC00000004<") < worst.index(">HWTC00000001<")
    assert state.count('<a class="dot ') == 3
    assert state.count('<a class="dot weak"') == 1


@pytest.mark.parametrize(("number", "listed"), [("offline", 3), ("weak", 2)])
def test_its_numbers_open_to_the_onus_they_count(viewer: Client, number: str, listed: int) -> None:
    olt = make_olt("North", reachability="up")
    make_port(olt, -2000, -2810, None, -2400)
    make_onu(olt, (0, 1, 4, 1), serial="ELSEWHERE", run_state="offline", rx_power_cdbm=-2900)

    address = page(viewer, olt, "state/").partition(f'id="port-{number}"')[2].partition('href="')[2].partition('"')[0]
    found = viewer.get(address.replace("&amp;", "&")).content.decode()

    assert [f">HWTC{each:08}<" in found for each in range(1, 5)] == [each == listed for each in range(1, 5)]
    assert "ELSEWHERE" not in found


def test_light_over_time_is_a_band_with_the_worst_and_the_falling(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    onus = make_port(olt, *[-2000] * 6)
    steady = {number: [-20.0 - number] * 40 for number in range(5)}
    keep_light(onus, {**steady, 5: [-21.0] * 20 + [-23.5] * 20})

    light = page(viewer, olt, "light/")

    assert "All ONUs, their median" in light
    assert '<path class="area rx"' in light
    assert f'id="falling-{onus[5].id}"' in light
    assert "2.50 dB" in light
    assert light.count('id="falling-') == 1
    assert "HWTC00000005" in light.split('<p class="legend')[1]
    chosen = page(viewer, olt, "light/", f"?with={onus[1].id}")
    assert "HWTC00000002" in chosen.split('<p class="legend')[1]


def test_the_file_has_a_column_for_each_onu(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    onus = make_port(olt, -2000, -2100)
    Onu.objects.filter(id=onus[1].id).update(description="=cmd()")
    keep_light(onus, {0: [-20.0] * 3, 1: [-21.5] * 3})

    head, *rows = viewer.get(f"/olts/{olt.id}/ports/{PLACE}/history.csv").content.decode().splitlines()

    assert head == "time,HWTC00000001 (dBm),'=cmd() HWTC00000002 (dBm)"
    assert [row.partition(",")[2] for row in rows] == ["-20,-21.5"] * 3


def test_traffic_and_optics_are_those_of_the_port(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    make_port(olt, -2000)
    for minutes, octets in ((10, "0"), (5, "375000000"), (0, "750000000")):
        values = [
            OltValue("1.1", "7", "pon.in_octets", PLACE, octets, "B", octets, is_counter=True),
            OltValue("1.2", "7", "pon.tx_power", PLACE, "4.5", "dBm", "450"),
            OltValue("1.2", "8", "pon.tx_power", "0/1/13", "9.9", "dBm", "990"),
            OltValue("1.2", "9", "pon.tx_power", f"10/1/3{HOSTILE}", "8.8", "dBm", "880"),
        ]
        now = timezone.now() - minutes * MINUTE
        save_olt_values(olt.id, values, whole_oids=(), now=now)
        save_olt_figures(olt.id, values, now=now)

    whole = page(viewer, olt)

    assert "4.5 dBm" in whole
    assert "9.9 dBm" not in whole
    assert "8.8 dBm" not in whole
    assert "received from ONUs: lowest 10.00, highest 10.00 Mbit/s" in whole.replace("</bdi>", "")


def test_outages_and_events_of_the_port_are_listed_and_marked(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    onus = make_port(olt, -2000)
    make_outage(olt, port=3)
    keep_light(onus, {0: [-20.0] * 20})
    OnuEvent.objects.create(
        olt=olt, pon_port=onus[0].pon_port, onu=onus[0], onu_number=1, at=timezone.now() - 9 * MINUTE, kind="down"
    )

    whole = page(viewer, olt)

    assert "Outage now" in whole
    assert "Went down" in whole.split('id="events-title"')[1]
    assert 'class="plot-mark down"' in whole


def test_texts_of_devices_do_no_harm(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    onus = make_port(olt, -2000, -2900)
    Onu.objects.update(description=HOSTILE, name=HOSTILE)
    keep_light(onus, {0: [-20.0] * 12, 1: [-20.0] * 6 + [-29.0] * 6})
    OltData.objects.create(
        olt=olt, oid="1", index="1", name="pon.status", place=PLACE, value=HOSTILE, updated_at=timezone.now()
    )

    whole = page(viewer, olt)

    assert "<script>alert" not in whole
    assert "<img src=x" not in whole
    assert f"<bdi>{escape(HOSTILE)}</bdi>" in whole


def test_a_full_port_takes_as_many_queries_as_one_with_few_onus(
    viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    olt = make_olt(reachability="up")
    onus = make_port(olt, *[-2000 - number for number in range(64)])
    keep_light(onus, {number: [-20.0 - number / 10] * 6 for number in range(64)})
    viewer.get(f"/olts/{olt.id}/ports/{PLACE}/")

    with django_assert_max_num_queries(22):
        page(viewer, olt)


def test_the_map_of_an_olt_and_the_page_of_an_onu_lead_to_it(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    (onu,) = make_port(olt, -2000)
    address = f'href="/olts/{olt.id}/ports/{PLACE}/"'

    assert address in viewer.get(f"/olts/{olt.id}/light/").content.decode()
    assert address in viewer.get(f"/onus/{onu.id}/state/").content.decode()
