"""The page of one OLT: its health, its light, its nodes and runs, what they cost, and what happened to its ONUs."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.coordinator_rows import make_plan, make_tracker
from api.rows import make_execution, make_leader, make_node, make_olt, make_olt_value, make_onu, make_pollers
from dashboard.outage_rows import make_outage
from facho.hosts.models import LearnedSize, Olt
from facho.onus.models import Onu, OnuEvent
from facho.polling.domain.execution_state import ExecutionState

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
PARTS = ["", "state/", "light/", "events/", "work/", "past/"]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m=cmd()"


def text(client: Client, olt: Olt, part: str = "") -> str:
    answer = client.get(f"/olts/{olt.id}/{part}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def make_event(onu: Onu, **fields: Any) -> OnuEvent:
    values = {"at": timezone.now() - 3 * MINUTE, "kind": "down", "onu_number": onu.onu_id, **fields}
    return OnuEvent.objects.create(olt=onu.olt, pon_port=onu.pon_port, onu=onu, **values)


@pytest.mark.parametrize("part", PARTS)
def test_an_olt_or_a_part_that_is_not_there_is_not_found(viewer: Client, part: str) -> None:
    assert viewer.get(f"/olts/4711/{part}").status_code == 404
    assert viewer.get(f"/olts/{make_olt().id}/nothing/").status_code == 404


@pytest.mark.parametrize("part", PARTS)
def test_a_visitor_is_asked_to_log_in(part: str) -> None:
    assert Client().get(f"/olts/1/{part}").headers["Location"] == f"/login/?next=/olts/1/{part}"


def test_its_state_and_what_is_out_come_first(viewer: Client) -> None:
    olt = make_olt("North", reachability="down", last_error="no answer after 3 tries")
    make_execution(make_node(olt), ExecutionState.FAILED, failure_kind="timeout")
    make_outage(olt)
    make_outage(make_olt("South"), cause="power")

    page = text(viewer, olt)

    assert '<span class="mark down">does not answer</span>' in page
    assert "A wrong community looks the same." in page
    assert "fibre cut" in page
    assert "no power at the customers" not in page


def test_a_port_shows_the_average_of_those_online_who_is_online_and_who_is_weak(viewer: Client) -> None:
    olt = make_olt("North", reachability="up")
    for number, power in enumerate((-2000, -2100, -2800)):
        make_onu(olt, (0, 1, 3, number), run_state="online", rx_power_cdbm=power)
    make_onu(olt, (0, 1, 3, 9), run_state="offline", rx_power_cdbm=-4000)
    make_onu(olt, (0, 2, 0, 1), run_state="offline", rx_power_cdbm=-2000)

    page = text(viewer, olt, "light/")

    assert '<text class="power" x="38" y="18">-23.0</text> <text class="count" x="38" y="35">3/4 ▼1</text>' in page
    assert f'href="/olts/{olt.id}/ports/0/1/3/"' in page
    assert "3 of 4 ONUs online, 1 offline average -23.0 dBm, from -28.0 to -20.0 1 weak, 0 too strong" in page


def test_a_port_that_is_down_is_drawn_as_down(viewer: Client) -> None:
    olt = make_olt(reachability="up")
    for number in range(3):
        make_onu(olt, (0, 1, 3, number), run_state="offline", rx_power_cdbm=-2000)

    page = text(viewer, olt, "light/")

    assert '<rect class="level-down" width="76" height="44" rx="3" fill="url(#heat-hatch)"/>' in page
    assert '<text class="power" x="38" y="18">down</text> <text class="count" x="38" y="35">0/3</text>' in page
    assert '<span class="key level-down">down</span>' in page


@pytest.mark.parametrize("olt", [{"reachability": "down"}, {"reachability": "up", "enabled": False}])
def test_of_a_port_that_nobody_asks_nothing_is_counted(viewer: Client, olt: dict[str, Any]) -> None:
    asked = make_olt(**olt)
    onus = [make_onu(asked, (0, 1, 3, number), run_state=state) for number, state in enumerate(("online", "offline"))]
    outage = make_outage(asked)

    page = text(viewer, asked, "light/")

    assert '<rect class="level-unknown" width="76" height="44" rx="3"/> <text class="power" x="38" y="18">—' in page
    assert '<text class="count" x="38" y="35">?/2</text>' in page
    assert "Port 0/1/3 2 ONUs, state unknown" in page
    assert "? of 2 ONUs of this port are online" in viewer.get(f"/onus/{onus[0].id}/state/").content.decode()
    why = viewer.get(f"/outages/{outage.id}/").content.decode()
    assert not re.search("are online now|left online", why)


def test_a_port_of_the_map_leads_to_its_onus(viewer: Client) -> None:
    olt = make_olt("North")
    make_onu(olt, (0, 1, 3, 1), serial="HERE")
    make_onu(olt, (0, 1, 13, 1), serial="ELSEWHERE")

    page = viewer.get(f"/onus/?olt={olt.id}&port=0/1/3").content.decode()
    card = viewer.get(f"/onus/?olt={olt.id}&port=0/1").content.decode()

    assert ("HERE</a></th>" in page, "ELSEWHERE" in page) == (True, False)
    assert "ELSEWHERE" in card


def test_a_node_says_when_it_runs_and_its_chain_stands_below_it(viewer: Client) -> None:
    make_leader()
    olt = make_olt("North")
    later = make_node(olt, name="Zulu", interval_seconds=900, next_run_at=timezone.now() + timedelta(seconds=630))
    make_node(master=later, name="Follower")
    make_node(olt, name="Alpha", suspended_at=timezone.now(), suspend_reason="timeout")

    page = text(viewer, olt, "work/")

    assert page.index("Alpha") < page.index("Zulu") < page.index("Follower")
    assert "It has been suspended since" in page
    assert "in 10 min" in page
    assert "with its master" in page


def test_runs_are_reported_as_master_and_chain(viewer: Client) -> None:
    olt = make_olt("North")
    master = make_node(olt, name="Discovery")
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=3, duration_ms=1500)
    failed = {"failure_kind": "timeout", "error": "no answer after 3 tries", "duration_ms": 9000}
    member = make_node(master=master, name="State")
    make_execution(member, ExecutionState.FAILED, poller_id=3, master_execution=ran, chain_position=1, **failed)

    page = text(viewer, olt, "work/")

    group = page[page.index("Last runs") :]
    assert group.index('class="step success">Discovery') < group.index('class="step failed">State')
    assert 'title="no answer after 3 tries">no answer</span> 9.0 s' in group
    assert '<span class="slot">#3</span>' in group
    assert group.count("<li>") == 1


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ({"rows": 120, "rows_in_all": 817, "ports": 3, "ports_in_all": 22}, "3 of 22 PON ports"),
        ({"rows": 75, "rows_in_all": 0, "ports": 0, "ports_in_all": 0}, "75 rows so far"),
        (None, "0 s</time>"),
    ],
)
def test_a_running_read_shows_how_far_it_has_come(viewer: Client, progress: dict[str, int] | None, words: str) -> None:
    olt = make_olt("North")
    make_execution(make_node(olt), ExecutionState.RUNNING, progress=progress)

    assert words in text(viewer, olt, "work/")


def test_a_run_that_ended_shows_its_time_instead(viewer: Client) -> None:
    olt = make_olt("North")
    progress = {"rows": 120, "rows_in_all": 817, "ports": 3, "ports_in_all": 22}
    make_execution(make_node(olt), ExecutionState.SUCCESS, progress=progress, duration_ms=1500)

    page = text(viewer, olt, "work/")

    assert "1.5 s" in page
    assert "PON ports" not in page


def test_health_has_cards_and_uplinks_and_says_what_is_not_fine(viewer: Client) -> None:
    olt = make_olt("North")
    make_olt_value(olt, "board.cpu", value="23")
    make_olt_value(olt, "board.status", value="fault", unit="")
    make_olt_value(olt, "fan.status", place="2", value="normal", unit="")
    make_olt_value(olt, "if.oper", place="ethernet0/2/0", value="up", unit="")
    make_olt_value(olt, "if.in_octets", place="ethernet0/2/0", value="9", unit="B", per_second=1_250_000.0)
    make_olt_value(olt, "if.oper", place="GPON 0/1/3", value="down", unit="")

    page = text(viewer, olt, "light/")

    assert '<rect width="23.0" height="8"/></svg> 23 %' in page
    assert '<span class="mark down">faulty</span>' in page
    assert '<li class="mark up">Fan 2: normal</li>' in page
    assert "10.0 Mbit/s" in page
    assert "GPON 0/1/3" not in page


def test_snmp_figures_are_those_of_the_last_hour(viewer: Client) -> None:
    olt = make_olt("North")
    node = make_node(olt, slug="potencia", name="Read power")
    reported = {
        "packets": 40,
        "retransmissions": 2,
        "round_trips": 36,
        "round_trips_ms": 450,
        "longest_round_trip_ms": 80,
    }
    sent = {"result": reported, "duration_ms": 2000}
    make_execution(node, ExecutionState.SUCCESS, **sent)
    slow = reported | {"round_trips": 4, "longest_round_trip_ms": 1200}
    make_execution(node, ExecutionState.FAILED, failure_kind="timeout", **sent | {"result": slow})
    # One that was never answered.
    make_execution(make_node(olt, slug="nombre", name="Read names"), ExecutionState.FAILED, result={"packets": 3})
    make_execution(node, ExecutionState.SUCCESS, at=timezone.now() - 70 * MINUTE, **sent)
    make_execution(make_node(make_olt("South"), slug="estado", name="Read states"), ExecutionState.SUCCESS, **sent)
    LearnedSize.objects.create(olt=olt, subject="walk onu.serial", rows=25, updated_at=timezone.now())

    page = text(viewer, olt, "past/")

    figures = page[page.index("SNMP in the last hour") :]
    row = figures[figures.index("Read power") : figures.index("total")]
    shown = (">2</td>", ">80</td>", ">4</strong>", "5.0 %", ">22.5 ms</td>", ">1,200 ms</td>")
    assert [figure in row for figure in shown] == [True] * len(shown)
    silent = figures[figures.index("Read names") : figures.index("Read power")]
    assert silent.count(">—</td>") == 2
    assert "Read states" not in figures
    assert "get_" not in figures
    assert '<span class="mono">walk onu.serial</span> <strong>25</strong>' in figures


def test_answers_that_were_not_believed_are_shown(viewer: Client) -> None:
    olt = make_olt("North")
    node = make_node(olt, slug="potencia", name="Read power")
    make_execution(node, ExecutionState.SUCCESS, result={"packets": 4})
    assert "Discarded answers" not in text(viewer, olt, "past/")

    make_execution(node, ExecutionState.SUCCESS, result={"packets": 4, "forged_answers": 1200, "malformed_answers": 3})

    page = text(viewer, olt, "past/")
    assert "1,200 with a wrong request id, community or signature, 3 that were not valid SNMP" in page


def test_events_of_its_onus_are_reported_in_words(viewer: Client) -> None:
    olt = make_olt("North")
    onu = make_onu(olt, (0, 1, 3, 7), serial="HWTC0001", description="Café")
    make_event(onu, cause="los")
    make_event(make_onu(make_olt("South"), serial="HWTC0002"))

    page = text(viewer, olt, "events/")

    assert "Went down: loss of signal" in page
    assert "0/1/3/7" in page
    assert f'href="/onus/{onu.id}/">HWTC0001' in page
    assert "HWTC0002" not in page


@pytest.mark.parametrize("part", PARTS)
def test_text_from_a_device_is_only_text(viewer: Client, part: str) -> None:
    olt = make_olt("North", reachability="down", sys_name=HOSTILE, last_error=HOSTILE)
    make_olt_value(olt, "board.type", place=HOSTILE[:60], value=HOSTILE, unit="")
    make_olt_value(olt, "if.descr", place=HOSTILE[:60], value=HOSTILE, unit=HOSTILE[:20])
    make_event(make_onu(olt, serial=HOSTILE[:32], description=HOSTILE), kind="description_changed", after=HOSTILE)
    make_execution(make_node(olt, name=HOSTILE), ExecutionState.FAILED, failure_kind="malformed", error=HOSTILE)

    page = text(viewer, olt, part)

    assert "<script>" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize(
    ("part", "queries"), [("", 37), ("state/", 12), ("light/", 6), ("events/", 7), ("work/", 17), ("past/", 13)]
)
def test_the_number_of_queries_does_not_grow(
    part: str, queries: int, viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    make_leader()
    make_pollers(2)
    olt = make_olt("North")
    make_plan(olt)
    for number in range(8):
        master = make_node(olt, next_run_at=timezone.now() - timedelta(seconds=3))
        ran = make_execution(master, ExecutionState.SUCCESS)
        make_execution(make_node(master=master), ExecutionState.SUCCESS, master_execution=ran, chain_position=1)
        make_event(make_onu(olt, (0, 1, number, 1), run_state="online", rx_power_cdbm=-2000))
        make_outage(olt, port=number)
        make_tracker(olt, task_type=f"get_{number}")
        make_olt_value(olt, place=f"0/{number}", index=str(number))

    with django_assert_max_num_queries(queries):
        text(viewer, olt, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_page_holds_no_secret_and_needs_none(part: str, viewer: Client, settings: Any) -> None:
    olt = make_olt("North", community="canary-7f3a")
    make_event(make_onu(olt))
    make_outage(olt)
    make_execution(make_node(olt), ExecutionState.SUCCESS)
    settings.FACHO_ENCRYPTION_KEYS = ("Jx3QbnrjJgKn4JhcmxgVqrJKAGQIb8XYEq9XpQqz0hE=",)

    assert "canary" not in text(viewer, olt, part)


def test_a_chassis_full_of_onus_is_a_page_of_less_than_200_kilobytes(viewer: Client) -> None:
    olt = make_olt("North", reachability="up")
    for slot in range(16):
        for port in range(16):
            make_onu(olt, (0, slot, port, 1), run_state="online", rx_power_cdbm=-2000 - port)

    assert len(viewer.get(f"/olts/{olt.id}/").content) < 200_000


@pytest.mark.parametrize(
    ("summary", "sentence"),
    [
        ({"unplaced_rows": 3}, "Its tables list 3 ONUs, but not at which places."),
        ({"counted_onus": 125}, "Its PON ports count 125 ONUs, but its tables of ONUs are empty."),
        ({"known_onus": 1}, "1 ONU is known, but its tables of ONUs are empty."),
        ({}, "It has ONUs, but does not list them."),
    ],
)
def test_an_olt_that_hides_its_onus_says_so_until_a_discovery_lists_them(
    viewer: Client, summary: dict[str, int], sentence: str
) -> None:
    olt = make_olt("North", reachability="up")
    node, now = make_node(olt), timezone.now()
    discovery = {"task_type": "discovery"}
    hidden = {**discovery, "failure_kind": "hiddenOnus", "result": {"onus": 0, **summary}}
    make_execution(node, ExecutionState.FAILED, at=now - 9 * MINUTE, **hidden)
    make_execution(node, ExecutionState.SUCCESS, at=now - 5 * MINUTE)
    make_execution(node, ExecutionState.FAILED, at=now - 4 * MINUTE, **discovery, failure_kind="timeout")

    assert f'<p class="banner bad">{sentence}' in text(viewer, olt)

    make_execution(node, ExecutionState.SUCCESS, at=now - MINUTE, **discovery, result={"onus": 125})
    assert sentence not in text(viewer, olt)


def test_an_olt_most_of_whose_rows_have_no_place_carries_a_warning(viewer: Client) -> None:
    node = make_node(make_olt("North", reachability="up"))
    summary = {"onus": 5, "misplaced_rows": 25}
    make_execution(node, ExecutionState.SUCCESS, task_type="discovery", result=summary)

    page = text(viewer, node.workflow.olt)

    assert '<p class="banner warn">25 rows of its tables of ONUs have unknown numbers and are not read.' in page


@pytest.mark.parametrize(("by_place", "is_warned"), [(125, True), (3, False)])
def test_an_olt_that_shows_no_serial_at_all_carries_a_warning(
    viewer: Client, by_place: int, *, is_warned: bool
) -> None:
    node = make_node(make_olt("North", reachability="up"))
    summary = {"onus": 125, "by_place": by_place}
    make_execution(node, ExecutionState.SUCCESS, task_type="discovery", result=summary)

    page = text(viewer, node.workflow.olt)

    assert ('<p class="banner warn">It lists 125 ONUs, but no serials' in page) is is_warned
