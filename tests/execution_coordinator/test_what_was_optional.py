"""What the specification leaves for later, at one OLT: a bad hour is reported, and the next is planned better."""

import asyncio
import json
import re
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from past_runs import add_run

from alerts.outbox_rows import Post, StillClock, make_webhook
from alerts.sinks import HttpSink, http_sink
from api.metrics_world import scrape
from api.rows import make_leader, make_pollers, make_user
from facho.accounts.roles import Role
from facho.alerts.engine import run_pass
from facho.alerts.models import AlertRule
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import ExecutionPlan, QuotaViolation
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.snmp_jobs.models import SkippedSlot, WorkflowNode
from factories import NOW, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
# Shortly after the bad hour.
LATER = NOW + HOUR + timedelta(seconds=5)
LENGTHS = DISCOVERY_SECONDS, READ_SECONDS = 120, 100


class BadHour:
    """An OLT with two nodes on the same grid: one had its four runs, the other one waited too long for two of them."""

    def __init__(self) -> None:
        self.olt = make_olt()
        jobs = make_job(query_type=QueryType.DISCOVERY), make_job()
        self.discovery, self.read = (
            make_node(self.olt, job, interval_seconds=900, next_run_at=NOW + HOUR + 15 * MINUTE) for job in jobs
        )
        for minutes in (0, 15, 30, 45):
            slot_at = NOW + minutes * MINUTE
            add_run(self.read, slot_at, seconds=READ_SECONDS)
            if minutes % 30:
                SkippedSlot.objects.create(node=self.discovery, slot_at=slot_at, reason="olt_busy")
            else:
                add_run(self.discovery, slot_at, seconds=DISCOVERY_SECONDS)
        WorkflowNode.objects.update(last_run_at=NOW + 45 * MINUTE)

    def plan(self, start: datetime) -> list[dict[str, Any]]:
        """Return the runs that are planned for an hour."""
        return list(ExecutionPlan.objects.get(olt=self.olt, status="ACTIVE", period_start=start).plan_data)


def person(role: Role) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(role))
    return client


def is_one_after_another(runs: list[dict[str, Any]]) -> bool:
    """Tell whether every run begins at its slot, and none before the one before it has ended."""
    begins = [datetime.fromisoformat(run["starts_at"]) for run in runs]
    ends = [begin + timedelta(seconds=run["seconds"]) for begin, run in zip(begins, runs, strict=True)]
    on_time = all(run["starts_at"] == run["slot_at"] for run in runs)
    return on_time and all(end <= begin for end, (_, begin) in zip(ends, pairwise(begins), strict=False))


def tell_people(sink: HttpSink) -> list[str]:
    """Let the rules look and the messages leave; return the titles of all that arrived."""
    run_pass(LATER)
    asyncio.run(Post(StillClock(LATER)).deliver())
    return [json.loads(each.body)["title"] for each in sink.received]


def live_part(client: Client) -> str:
    """Ask for what the first page asks for every few seconds."""
    found = re.search(r'hx-get="(/live/[^"]*)" hx-trigger="every [1-5]s"', client.get("/").content.decode())
    assert found
    return str(client.get(found[1], headers={"hx-request": "true"}).content.decode())


def test_a_bad_hour_is_reported_and_the_next_one_is_planned_better() -> None:
    """S1-33: prediction, repacking, messages, a live page, figures per OLT, rules of one's own, the state by API."""
    AlertRule.objects.all().delete()
    hour, admin, viewer = BadHour(), person(Role.ADMIN), person(Role.VIEWER)
    make_pollers(1)
    make_leader()

    ExecutionCoordinator().run_pass(LATER)

    next_hour, third_hour = hour.plan(NOW + HOUR), hour.plan(NOW + 2 * HOUR)
    assert {(run["node_id"], run["seconds"]) for run in next_hour} == set(
        zip((hour.discovery.id, hour.read.id), LENGTHS, strict=True)
    )
    assert len(third_hour) == 8
    assert is_one_after_another(third_hour)

    with http_sink() as sink:
        wish = {"name": "Quotas", "kind": "quota_violated", "enabled": False, "hold_minutes": 0}
        wish |= {"channel_ids": [make_webhook(sink.url).pk]}
        rule = admin.post("/api/v1/alert-rules/", wish, content_type="application/json").json()
        assert tell_people(sink) == []
        admin.patch(f"/api/v1/alert-rules/{rule['id']}/", {"enabled": True}, content_type="application/json")
        [title] = tell_people(sink)
    assert hour.olt.name in title
    assert QuotaViolation.objects.get().notified

    before = live_part(viewer)
    add_run(hour.read, None, ExecutionState.RUNNING, started_at=timezone.now())
    running = f'class="step now">{hour.read.job.name}'
    assert [running in part for part in (before, live_part(viewer))] == [False, True]

    figures = scrape(LATER)
    assert figures.value("facho_olt_executions_last_hour", olt=hour.olt.name, state="SUCCESS") == 6
    assert figures.value("facho_olt_success_ratio_last_hour", olt=hour.olt.name) == 1

    [state] = viewer.get("/api/v1/coordinator/state/").json()["results"]
    assert {task["node_id"] for task in state["tasks"]} == {hour.discovery.id, hour.read.id}
    assert (state["active_execution"]["node_id"], len(state["state_hash"])) == (hour.read.id, 64)
