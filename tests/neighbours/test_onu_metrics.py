"""Metrics of single ONUs, read with the parsers of those who would read them."""

import subprocess
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from api.metrics_world import Scraped
from api.rows import make_olt, make_onu, make_user
from facho.api.tokens import create_token
from facho.hosts.models import Olt, OltGroup
from facho.neighbours import onu_metrics
from facho.onus.models import Onu, OnuCustomer
from neighbours.line_protocol import Point, read_line_protocol
from web.every_address import body_of

pytestmark = pytest.mark.django_db

HOSTILE = 'a"b\\c\nd} 1\n# HELP, x=y \\'
OUTSIDE = "192.0.2.7"
LIGHT = {"rx_power_cdbm": -2150, "tx_power_cdbm": 230, "olt_rx_power_cdbm": -2400, "temperature_tenths": 465}
NAMES = ("online", "rx_power_dbm", "tx_power_dbm", "olt_rx_power_dbm", "temperature_celsius")


def ask(query: str = "", **headers: str) -> Any:
    return Client().get(f"/metrics/onus{query}", headers={"Accept-Language": "en", **headers})


def scrape(query: str = "") -> Scraped:
    answer = ask(query)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return Scraped(body_of(answer))


def read_points(query: str = "") -> list[Point]:
    answer = ask(f"?format=influx{query}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    return read_line_protocol(body_of(answer))


def figures(scraped: Scraped, **labels: str) -> list[float | None]:
    return [scraped.value(f"facho_onu_{name}", **labels) for name in NAMES]


def make_lit(olt_name: str = "CENTRO", number: int = 7, **fields: Any) -> Onu:
    olt = Olt.objects.filter(name=olt_name).first() or make_olt(olt_name)
    return make_onu(olt, (0, 1, 3, number), **{"serial": f"HWTC{number:08}", "run_state": "online", **LIGHT, **fields})


def test_an_onu_is_reported_to_prometheus_by_place_and_serial() -> None:
    make_lit()

    scraped = scrape()

    labels = {"olt": "CENTRO", "port": "0/1/3", "onu": "7", "serial": "HWTC00000007"}
    assert figures(scraped, **labels) == [1, -21.5, 2.3, -24, 46.5]
    assert {family.type for family in scraped.families} == {"gauge"}
    assert (scraped.value("facho_onu_metrics_onus"), scraped.value("facho_onu_metrics_left_out")) == (1, 0)


def test_an_onu_is_reported_to_telegraf_in_one_line() -> None:
    make_lit()

    onu, counts = read_points()

    assert onu == Point(
        "facho_onu",
        {"olt": "CENTRO", "onu": "7", "port": "0/1/3", "serial": "HWTC00000007"},
        {"online": 1, "rx_power_dbm": -21.5, "tx_power_dbm": 2.3, "olt_rx_power_dbm": -24, "temperature_celsius": 46.5},
    )
    assert counts == Point("facho_onu_metrics", {}, {"onus": 1, "left_out": 0})


def test_of_an_onu_that_is_down_only_that_is_reported() -> None:
    make_lit(run_state="offline")

    labels = {"olt": "CENTRO", "port": "0/1/3", "onu": "7", "serial": "HWTC00000007"}
    assert figures(scrape(), **labels) == [0, None, None, None, None]
    assert read_points()[0].fields == {"online": 0}


@pytest.mark.parametrize("silence", [{"reachability": "down"}, {"enabled": False}])
def test_nothing_is_reported_of_onus_behind_a_silent_olt(silence: dict[str, Any]) -> None:
    make_lit()
    Olt.objects.update(**silence)

    assert scrape().labelled("facho_onu_online") == []
    assert [point.measurement for point in read_points()] == ["facho_onu_metrics"]


@pytest.mark.parametrize(
    "fields", [{"run_state": "unknown"}, {"is_present": False, "absent_since": "2030-01-01T00:00Z"}]
)
def test_nothing_is_reported_of_an_onu_whose_state_is_unknown_or_that_left(fields: dict[str, Any]) -> None:
    make_lit(**fields)

    assert scrape().labelled("facho_onu_online") == []
    assert len(read_points()) == 1


def test_values_that_were_not_read_have_no_sample_and_extreme_ones_do() -> None:
    make_lit(rx_power_cdbm=32_767, tx_power_cdbm=-32_767, olt_rx_power_cdbm=None, temperature_tenths=0)

    labels = {"olt": "CENTRO", "port": "0/1/3", "onu": "7", "serial": "HWTC00000007"}
    assert figures(scrape(), **labels) == [1, 327.67, -327.67, None, 0]


def test_no_label_names_a_customer() -> None:
    onu = make_lit(description="Ana Pérez", name="Ana Pérez")
    OnuCustomer.objects.create(onu=onu, label="Ana Pérez", address="Calle 1")

    assert "Ana" not in body_of(ask()) + body_of(ask("?format=influx"))
    assert set(scrape().labelled("facho_onu_online")[0]) == {"olt", "port", "onu", "serial"}


def test_hostile_names_and_serials_are_escaped_for_prometheus() -> None:
    make_lit(HOSTILE, serial=HOSTILE[:32])

    assert scrape().labelled("facho_onu_online") == [
        {"olt": HOSTILE, "port": "0/1/3", "onu": "7", "serial": HOSTILE[:32]}
    ]


def test_hostile_names_and_serials_are_escaped_for_influx() -> None:
    make_lit(HOSTILE, serial="\t\\,= \x7f")

    [onu, _counts] = read_points()

    assert onu.tags == {"olt": 'a"b/c d} 1 # HELP, x=y /', "onu": "7", "port": "0/1/3", "serial": "/,="}


def test_an_empty_tag_is_left_out() -> None:
    make_lit(serial="")

    assert "serial" not in read_points()[0].tags
    assert scrape().labelled("facho_onu_online")[0]["serial"] == ""


def test_promtool_finds_nothing_wrong() -> None:
    make_lit(HOSTILE)
    make_lit(number=8, run_state="offline")

    done = subprocess.run(["promtool", "check", "metrics"], input=body_of(ask()), capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_more_onus_are_reported_than_the_setting_allows(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        make_lit(number=number)
    settings.FACHO_ONU_METRICS = 5
    monkeypatch.setattr(onu_metrics, "BATCH", 2)

    scraped, points = scrape(), read_points()

    assert [labels["onu"] for labels in scraped.labelled("facho_onu_online")] == ["0", "1", "2", "3", "4"]
    assert (scraped.value("facho_onu_metrics_onus"), scraped.value("facho_onu_metrics_left_out")) == (5, 2)
    assert points[-1].fields == {"onus": 5, "left_out": 2}
    assert len(points) == 6


def test_onus_are_narrowed_by_olt() -> None:
    make_lit()
    norte = make_lit("NORTE").olt

    assert {labels["olt"] for labels in scrape("?olt=NORTE").labelled("facho_onu_online")} == {"NORTE"}
    assert {point.tags.get("olt") for point in read_points(f"&olt={norte.pk}")} == {"NORTE", None}
    assert scrape("?olt=nobody").labelled("facho_onu_online") == []


@pytest.mark.parametrize("query", ["?olts=CENTRO", "?format=json"])
def test_a_question_that_nobody_knows_is_refused(query: str) -> None:
    make_lit()

    assert ask(query).status_code == 400


def test_it_is_off_by_default(settings: Any) -> None:
    settings.FACHO_ONU_METRICS = None

    assert ask().status_code == 404


def test_others_need_a_token_and_see_its_olts_alone() -> None:
    group = OltGroup.objects.create(name="North")
    make_lit()
    make_onu(make_olt("NORTE", group=group), run_state="online")
    token = create_token(make_user(), olt_groups=[group])

    stranger = Client().get("/metrics/onus", REMOTE_ADDR=OUTSIDE)
    proxied = ask(**{"X-Forwarded-For": "127.0.0.1"})
    known = Client().get("/metrics/onus", headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR=OUTSIDE)

    assert (stranger.status_code, proxied.status_code) == (401, 401)
    assert {labels["olt"] for labels in Scraped(body_of(known)).labelled("facho_onu_online")} == {"NORTE"}


@pytest.mark.parametrize("kind", ["prometheus", "influx"])
@pytest.mark.parametrize(("most", "queries"), [(100, 4), (5, 4), (3, 3)])
def test_a_read_asks_once_a_batch_and_counts_only_what_it_cut(
    kind: str, most: int, queries: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        make_lit(number=number)
    settings.FACHO_ONU_METRICS = most
    monkeypatch.setattr(onu_metrics, "BATCH", 2)

    with CaptureQueriesContext(connection) as captured:
        body_of(ask(f"?format={kind}"))

    # Three batches and one that finds no more; else as many batches as are allowed, and the count.
    assert len(captured) == queries, [query["sql"] for query in captured]
