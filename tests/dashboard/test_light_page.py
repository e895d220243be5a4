"""The page of what light shows: each finding in a sentence that opens to its ONUs and the plot it rests on."""

import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from api.rows import make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup
from facho.onus.history import Samples, append
from facho.onus.history_codec import HistoryGrid, encode_bundle
from facho.onus.history_models import Metric, to_steps
from facho.onus.models import Onu, OnuEvent, OnuReading
from facho.plant.days import DaySeries
from facho.plant.models import Box, FindingOnu, LightFinding, OnuAttachment, OnuBox, PortDays, TreeCorrection
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
    assert "2 other ONUs were read and kept their light" in page
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


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "decay", "is_over": True}, "lost 0.12 dB a day, 1.2 dB in all; this has ended"),
        ({"kind": "sender", "is_over": True}, "sent 0.12 dB less a day, 1.2 dB in all; this has ended"),
        ({"kind": "decay", "is_over": False}, "loses 0.12 dB a day and is below -27 dBm already"),
        ({"kind": "sender", "is_over": False}, "the OLT receives less than -28 dBm already"),
    ],
    ids=str,
)
def test_what_is_over_or_too_weak_already_has_no_forecast(viewer: Client, fields: dict[str, Any], words: str) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    ended = now if fields["is_over"] else None
    past = {"since": now - timedelta(days=10), "ended_at": ended, "days_soonest": 0.0, "days_latest": 0.3}
    find(onu, kind=fields["kind"], onu=onu, size_db=0.12, **past)

    page = text(viewer)

    assert words in page
    assert "0 to 0 days" not in page


def test_an_onu_that_sends_weaker_opens_to_what_the_olt_receives_of_it(viewer: Client) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    finding = find(onu, kind="sender", onu=onu, size_db=0.1, since=now - timedelta(days=2), days_latest=9)
    for minutes, dbm in ((60, -25.31), (30, -25.47)):
        values = {Metric.RX_POWER: [-20.0], Metric.OLT_RX_POWER: [dbm]}
        append(now - timedelta(minutes=minutes), Samples.of([onu.id], [onu.pon_port_id], values))

    page = text(viewer, f"/light/{finding.id}/")

    assert "The OLT receives" in page
    assert "-25.47" in page


def test_a_decay_draws_its_line_and_the_days_in_which_it_crosses_the_limit(viewer: Client) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    forecast = {"days_soonest": 9.0, "days_likely": 11.0, "days_latest": 14.0, "level_dbm": -25.9}
    finding = find(onu, kind="decay", onu=onu, size_db=0.1, since=now - timedelta(days=20), judged_at=now, **forecast)

    page = text(viewer, f"/light/{finding.id}/")

    line = re.search(r'<path class="curve forecast" d="([^"]+)"', page)
    assert line
    # 44 days are drawn: 10 before it begins, 20 of its fall, 14 of the forecast.
    points = [tuple(map(float, each.split())) for each in line[1].strip("M").split("L")]
    assert [points[0][0], points[1][0], points[-1][0]] == pytest.approx([1000 * 10 / 44, 1000 * 30 / 44, 1000], abs=1)
    limit = float(re.search(r'<path class="limit" d="M-1000 ([\d.]+)', page)[1])  # type: ignore[index]
    below = next(x for x, y in points if y >= limit - 0.1)
    assert below == pytest.approx(1000 * 41 / 44, abs=10)
    assert '<path class="area forecast"' in page
    numbers = page.partition('id="forecast"')[2].partition("</dl>")[0]
    dates = [date_format(localtime(now + timedelta(days=days)), "DATE_FORMAT") for days in (9, 14, 11)]
    assert "-25.90 dBm on" in numbers
    assert "0.10 dB less each day" in numbers
    assert f"from {dates[0]} to {dates[1]}, most likely on {dates[2]}" in numbers


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"ended": True}, "no forecast: it has ended"), ({"ended": False}, "already below")],
    ids=["over", "below"],
)
def test_a_decay_that_is_over_or_below_the_limit_shows_its_line_alone(
    viewer: Client, fields: dict[str, bool], words: str
) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    past = {"since": now - timedelta(days=10), "ended_at": now if fields["ended"] else None, "level_dbm": -27.5}
    finding = find(onu, kind="decay", onu=onu, size_db=0.12, **past, days_soonest=0, days_likely=0, days_latest=0)

    page = text(viewer, f"/light/{finding.id}/")

    assert '<path class="curve forecast"' in page
    assert '<path class="area forecast"' not in page
    assert words in page.partition('id="forecast"')[2].partition("</dl>")[0]


def keep_days(onu: Onu, ends_at: datetime, **values: list[float | None]) -> None:
    """Keep days of an ONU by series in dB, the oldest first; None is unknown."""
    days = len(next(iter(values.values())))
    at = np.array([int((ends_at - timedelta(days=days - number)).timestamp()) for number in range(days)])
    grids = []
    for series, each in values.items():
        steps = to_steps(Metric.RX_POWER, np.array([np.nan if value is None else value for value in each]))
        grid = HistoryGrid(np.array([onu.id]), at, steps[np.newaxis, np.newaxis, :])
        grids.append((onu.pon_port_id, int(DaySeries[series]), grid))
    PortDays.objects.create(pon_port=onu.pon_port, ends_at=ends_at, data=encode_bundle(grids))


def test_noise_opens_to_each_day_and_its_plot(viewer: Client) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    noise = [0.1, None, *[0.14] * 5, 0.32, 0.3, 0.35]
    keep_days(onu, today, LIGHT=[-21.5] * 10, NOISE=noise, JUMPS=[0.0] * 10)
    finding = find(onu, kind="noise", onu=onu, size_db=0.32, times=2.3, since=today - timedelta(days=3))

    page = text(viewer, f"/light/{finding.id}/")

    assert "Median of the last three days: 0.32 dB; of the 6 days before: 0.14 dB." in page
    last, first = today - timedelta(days=1), today - timedelta(days=9)
    assert cells(page, f"day-{last:%Y-%m-%d}") == ["-21.50 dBm", "0.35 dB", "0"]
    assert cells(page, f"day-{first:%Y-%m-%d}") == ["-21.50 dBm", "unknown", "0"]
    address = f"/onus/{onu.id}/?from={last:%Y-%m-%d}T00:00:00Z&amp;to={today:%Y-%m-%d}T00:00:00Z#light"
    assert f'id="day-{last:%Y-%m-%d}" href="{address}"' in page
    assert page.count("counts</span>") == 3


def test_flapping_counts_the_days_on_which_the_light_left_its_level(viewer: Client) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    keep_days(onu, today, LIGHT=[-21.5] * 4, NOISE=[0.1] * 4, JUMPS=[0.0, 1.0, 5.0, 9.0])
    finding = find(onu, kind="flapping", onu=onu, size_db=0.1, times=9, since=today - timedelta(days=2))

    page = text(viewer, f"/light/{finding.id}/")

    assert "A day counts from 4 times on." in page
    assert [cells(page, f"day-{today - timedelta(days=days):%Y-%m-%d}")[2] for days in (1, 2, 3)] == ["9", "5", "1"]
    assert page.count("counts</span>") == 2


def test_days_that_are_not_kept_any_more_are_unknown(viewer: Client) -> None:
    onu = make_onu(make_olt("North"), (0, 1, 6, 4))
    finding = find(onu, kind="noise", onu=onu, size_db=0.32, times=2.3)

    assert "Unknown: the days of this finding are not kept any more." in text(viewer, f"/light/{finding.id}/")


def test_an_onu_that_sends_weaker_is_forecast_by_the_limit_of_the_olt(viewer: Client) -> None:
    onu, now = make_onu(make_olt("North"), (0, 1, 6, 4)), timezone.now()
    forecast = {"days_soonest": 3.0, "days_likely": 4.0, "days_latest": 6.0, "level_dbm": -27.4}
    finding = find(onu, kind="sender", onu=onu, size_db=0.1, since=now - timedelta(days=10), **forecast)

    page = text(viewer, f"/light/{finding.id}/")

    assert '<path class="curve limit"' in page
    assert "Crosses -28 dBm" in page


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


def cells(page: str, link_id: str) -> list[str]:
    """The cells of the row that has this link."""
    row = next(row for row in page.split("<tr>") if f'id="{link_id}"' in row)
    return [re.sub(r"<[^>]+>", " ", cell).strip() for cell in re.findall(r"<td.*?</td>", row)]


def test_a_box_opens_to_its_events_its_onus_and_their_distances(viewer: Client) -> None:
    onus = port_with_a_tree()
    olt, port_id = onus[0].olt, onus[0].pon_port_id
    cut = make_outage(olt, slot=1, port=6, affected=3)
    for onu in onus[3:]:
        OnuReading.objects.filter(onu=onu).update(run_state="offline")
        OnuEvent.objects.create(
            olt=olt, pon_port_id=port_id, onu=onu, onu_number=onu.onu_id, at=cut.started_at, kind="down", cause="los"
        )
    OnuReading.objects.filter(onu__in=onus[:2]).update(run_state="online")
    save_tree(port_id)
    box = OnuBox.objects.get(onu=onus[0])
    address = f"/ports/{port_id}/tree/{box.number}/"
    assert f'href="{address}"' in text(viewer, f"/olts/{olt.id}/ports/0/1/6/")

    page = text(viewer, address)

    # Hit, well and unknown here, and hit and well elsewhere, of both events.
    rows = [cells(page, f"box-event-{number}")[1:] for number in (1, 2)]
    assert sorted(rows) == [["0", "2", "1", "3", "0"], ["3", "0", "0", "0", "3"]]
    assert f'href="/outages/{cut.id}/"' in page
    assert cells(page, f"box-onu-{onus[0].id}")[:3] == ["1000 m", "1", "1"]
    assert cells(page, f"box-onu-{onus[2].id}")[1:3] == ["1", "0"]
    assert f'id="box-onu-{onus[3].id}"' not in page
    assert "1000–1002 m" in page  # noqa: RUF001
    assert "1403–1405 m" in page  # noqa: RUF001


def test_a_box_that_a_person_corrected_says_who_and_a_box_that_is_not_there_does_not_open(client: Client) -> None:
    client.force_login(make_user(Role.OPERATOR, "ana"))
    onus = port_with_a_tree()
    address = f"/ports/{onus[0].pon_port_id}/tree/"

    client.post(address, {"id": [onus[0].id]})

    alone = OnuBox.objects.get(onu=onus[0]).number
    page = text(client, f"{address}{alone}/")
    assert "<bdi>ana</bdi>" in page
    assert "corrected by hand" in page
    assert client.get(f"{address}99/").status_code == 404


def test_a_finding_counts_who_kept_their_light_who_lost_some_and_who_was_not_read(viewer: Client) -> None:
    olt = make_olt("North")
    onus = [make_onu(olt, (0, 1, 6, number)) for number in range(7)]
    Onu.objects.update(first_seen_at=timezone.now() - timedelta(days=9))
    finding = lose_in_common(onus[:5], hit=3)
    lost, ids = [3.1, 3.1, 3.1, 0.1, 1.5, 0.0], [onu.id for onu in onus[:6]]
    for poll in range(-6, 6):
        powers = [-20 - size * (poll >= 0) for size in lost]
        # The last but one is read before, and not after; the last one never.
        values = {Metric.RX_POWER: [*powers[:5], powers[5] if poll < 0 else None]}
        append(finding.since + timedelta(minutes=5 * poll), Samples.of(ids, [onus[0].pon_port_id] * 6, values))

    page = text(viewer, f"/light/{finding.id}/")

    message = re.sub(r"<[^>]+>", "", page.partition('id="others"')[2].partition("</p>")[0])
    assert (
        "1 kept its light · 1 changed by a third of that loss or more · 2 are unknown: not read both before and after"
        in message
    )


def test_what_is_normal_for_an_onu_is_a_band_in_its_plot_and_opens_to_its_days(viewer: Client) -> None:
    onu = make_onu(make_olt("North"), (0, 1, 6, 4))
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    at = np.array([int((today - timedelta(days=days)).timestamp()) for days in range(9, 0, -1)])
    ids = np.array([onu.id])
    grids = [
        (onu.pon_port_id, int(series), HistoryGrid(ids, at, np.full((1, 1, 9), value)))
        for series, value in ((DaySeries.LIGHT, -2150), (DaySeries.NOISE, 10))
    ]
    PortDays.objects.create(pon_port=onu.pon_port, ends_at=today, data=encode_bundle(grids))
    append(timezone.now(), Samples.of([onu.id], [onu.pon_port_id], {Metric.RX_POWER: [-21.5]}))

    page = text(viewer, f"/onus/{onu.id}/")

    assert "Normal for this ONU: -21.50 dBm, give or take 0.3 dB, by 9 days" in page
    assert "normal for this ONU: -21.80 to -21.20 dBm" in page
    days = page.partition('class="normal-days"')[2].partition("</ol>")[0]
    assert days.count("<strong>-21.50</strong>") == 9
    # The plot is from -28 to about -20 dBm: the band is 0.6 dB of it.
    band = re.search(r'<rect class="usual"[^>]* y="([\d.]+)" height="([\d.]+)"', page)
    assert band
    assert 0 < float(band[2]) < 20


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


def test_a_tree_of_a_port_without_boxes_leads_an_operator_to_boxes_for_it(client: Client) -> None:
    onus = port_with_a_tree()
    pages = []
    for role in (Role.VIEWER, Role.OPERATOR):
        client.force_login(make_user(role))
        pages.append(text(client, f"/olts/{onus[0].olt_id}/ports/0/1/6/"))
    address = pages[1].partition('id="tree-boxes" href="')[2].partition('"')[0]

    offered = text(client, address)

    assert 'id="tree-boxes"' not in pages[0]
    assert 'id="make-boxes"' in offered
    assert not Box.objects.exists()


def test_a_viewer_and_other_groups_correct_nothing(viewer: Client, client: Client) -> None:
    onus = port_with_a_tree()
    address = f"/ports/{onus[0].pon_port_id}/tree/"

    assert viewer.post(address, {"id": [onus[0].id]}).status_code == 403

    stranger = make_user(Role.OPERATOR)
    Profile.objects.get_or_create(user=stranger)[0].olt_groups.add(OltGroup.objects.create(name="South"))
    client.force_login(stranger)
    assert client.get(f"{address}{OnuBox.objects.first().number}/").status_code == 404  # type: ignore[union-attr]
    assert client.post(address, {"id": [onus[0].id]}).status_code == 404
    assert not TreeCorrection.objects.exists()


def test_a_box_is_called_by_the_name_of_the_known_box(viewer: Client) -> None:
    onus = port_with_a_tree()
    box = Box.objects.create(name="CTO 12")
    for onu in onus[:3]:
        OnuAttachment.objects.create(onu=onu, box=box, source="hand")

    assert "CTO 12" in text(viewer, f"/olts/{onus[0].olt_id}/ports/0/1/6/")
