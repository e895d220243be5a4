"""What is wrong, on the first page: outages, late OLTs, suspensions, quotas to be missed, and the runs of the hour."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from api.coordinator_rows import make_plan, make_tracker, this_hour
from api.rows import make_execution, make_leader, make_node, make_olt, make_onu, make_pollers
from dashboard.outage_rows import make_outage
from facho.dashboard.shared.hour import load_timeline
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import SkippedSlot
from facho.zabbix_pollers.models import Poller

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def text(client: Client, path: str = "/live/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_an_outage_says_why_where_since_when_and_how_many(viewer: Client) -> None:
    olt = make_olt("North")
    outage = make_outage(olt, affected=31)

    page = text(viewer)

    assert "1 outage now" in page
    assert "31 ONUs affected" in page
    assert "fibre cut" in page
    assert f'href="/olts/{olt.id}/">North</a> · PON port <span class="mono">0/1/3</span>' in page
    assert "· 30 min</time>" in page
    assert f'href="/outages/{outage.id}/#onus">31</a>' in page


def test_the_largest_outage_comes_first_and_what_is_over_or_part_of_it_does_not_count(viewer: Client) -> None:
    olt = make_olt("North")
    card = make_outage(olt, scope="card", port=0, cause="card", affected=60)
    make_outage(olt, affected=14, part_of=card)
    make_outage(olt, port=4, ended_at=timezone.now(), affected=99)
    make_outage(make_olt("South"), cause="power", affected=5)

    page = text(viewer)

    assert "2 outages now" in page
    assert "65 ONUs affected" in page
    assert page.index("card failed") < page.index("no power at the customers")
    assert "fibre cut" not in page


def test_the_pollers_own_network_is_no_fault_of_an_olt(viewer: Client) -> None:
    make_olt("North")
    make_outage(None, affected_olts=4)

    page = text(viewer)

    assert "the poller lost its network" in page
    assert "the poller&#x27;s network · 4 OLTs" in page


def test_calm_is_said(viewer: Client) -> None:
    make_olt("North", reachability="up")

    assert '<p class="calm mark up">No outage now.</p>' in text(viewer)


def test_an_olt_whose_node_waited_for_longer_than_its_interval_is_late(viewer: Client) -> None:
    late, busy = make_olt("Late", reachability="up"), make_olt("Busy", reachability="up")
    make_node(late, next_run_at=timezone.now() - 6 * MINUTE)
    make_node(busy, next_run_at=timezone.now() - 4 * MINUTE)

    page = text(viewer)

    assert "1 OLT is late." in page
    assert '<li class="mark late loud">1 late</li>' in page
    assert page.count(">late</span>") == 1


def test_behind_a_silent_olt_nothing_is_known(viewer: Client) -> None:
    make_onu(make_olt("North", reachability="down"), run_state="online")

    page = text(viewer)

    assert '<li class="mark online">0 online</li>' in page
    assert "1 unknown</a>" in page


def test_the_queue_is_counted_by_lateness(viewer: Client) -> None:
    make_leader()
    make_pollers(1)
    olt = make_olt("North")
    make_execution(make_node(olt), poller_id=0)
    make_node(olt, next_run_at=timezone.now() - timedelta(seconds=40))

    page = text(viewer)

    assert '<div class="some"><dt>≥ 30 s</dt><dd>1</dd></div>' in page
    assert "<div><dt>≥ 60 s</dt><dd>0</dd></div>" in page


def test_a_silent_olt_is_no_overload_of_the_pollers(viewer: Client) -> None:
    make_leader()
    make_pollers(1)
    lost = timezone.now() - timedelta(seconds=400)
    make_node(make_olt(reachability="down"), next_run_at=lost)

    assert "late only because OLTs do not answer" in text(viewer)
    make_node(make_olt(reachability="up"), next_run_at=lost)
    assert "overload: a run was missed" in text(viewer)


def test_suspended_nodes_are_reported_by_olt_with_reason_and_next_probe(viewer: Client) -> None:
    olt = make_olt("North", next_probe_at=timezone.now() + timedelta(seconds=200))
    for _ in range(3):
        make_node(olt, suspended_at=timezone.now() - 20 * MINUTE, suspend_reason="unreachable")
    make_node(make_olt("Off", enabled=False), suspended_at=timezone.now(), suspend_reason="timeout")

    page = text(viewer)

    assert "3 suspended nodes" in page
    assert "3 nodes: OLT does not answer" in page
    assert "next try" in page
    assert "in 3 min" in page


def test_quotas_of_the_hour_are_summed_by_task_type_and_those_that_will_be_missed_are_named(viewer: Client) -> None:
    make_tracker(make_olt("North"), will_miss_at=this_hour() + 5 * MINUTE)
    make_tracker(make_olt("South"), quota_failed=0, quota_skipped=0, quota_completed=8)
    make_tracker(make_olt("Off", enabled=False))

    page = text(viewer, "/live/hour/")

    assert '<strong>13</strong><span class="muted">/24</span>' in page
    assert "will be missed on 1 OLT" in page
    assert "will be missed, forecast at" in page
    assert ">North</a></strong>" in page
    assert ">South</a></strong>" not in page


def test_quotas_have_the_names_of_their_jobs_as_long_as_there_are_any(viewer: Client) -> None:
    olt = make_olt("North")
    make_node(olt, slug="descripcion", name="Read descriptions")
    make_tracker(olt)
    make_tracker(olt, task_type="get_gone", will_miss_at=this_hour())

    page = text(viewer, "/live/hour/")

    assert '<span class="work">Read descriptions</span>' in page
    assert '<span class="work">get_gone</span>' in page
    assert "get_descripcion" not in page
    assert "Read descriptions" in text(viewer, f"/olts/{olt.id}/past/")


def test_a_quota_bar_has_a_length_for_each_fate(viewer: Client) -> None:
    make_tracker(quota_required=10, quota_completed=5, quota_failed=1, quota_skipped=2, quota_pending=2)

    page = text(viewer, "/live/hour/")

    assert '<rect class="completed" x="0" width="50" height="8"/>' in page
    assert '<rect class="failed" x="50" width="10" height="8"/>' in page
    assert '<rect class="skipped" x="60" width="20" height="8"/>' in page


def test_the_timeline_has_the_plan_above_and_what_happened_below(viewer: Client) -> None:
    now = timezone.now()
    olt = make_olt("North")
    node = make_node(olt, name="<Power>")
    starts_at = (now + 20 * MINUTE).isoformat()
    run = {"node_id": node.id, "task_type": "get_x", "slot_at": starts_at, "starts_at": starts_at, "seconds": 300}
    make_plan(olt, hour=now - MINUTE, plan_data=[run, {"odd": 1}])
    ran = {"finished_at": now - 9 * MINUTE, "slot_at": now - 10 * MINUTE}
    make_execution(node, ExecutionState.FAILED, at=now - 10 * MINUTE, **ran)
    SkippedSlot.objects.create(node=node, slot_at=now - 5 * MINUTE, reason="olt_busy")

    (line,) = load_timeline([(olt.id, "North")], now)["lines"]
    page = text(viewer, "/live/hour/")

    assert [(mark.kind, mark.path) for mark, _tip in line["planned"]] == [("planned", "M480 3h60v9h-60z")]
    assert [(mark.kind, mark.path) for mark, _tip in line["happened"]] == [
        ("skipped", "M180 15h3v9h-3z"),
        ("failed", "M120 15h12v9h-12z"),
    ]
    assert 'data-tip="planned: &lt;Power&gt; · ' in page
    assert 'data-tip="&lt;Power&gt;: the OLT was busy with other work · ' in page


def test_groups_of_pollers_are_told_apart(viewer: Client) -> None:
    make_olt("North")
    make_pollers(2)
    Poller.objects.create(poller_id=7, group="lima")

    page = text(viewer)

    assert "<li>default group: 0 of 2 busy, 0 %</li><li>lima: 0 of 1 busy, 0 %</li>" in page
    assert '<span class="slot">#7 lima</span>' in page
