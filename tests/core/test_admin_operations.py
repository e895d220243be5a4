"""What operators do in the admin: pauses, hours of jobs, suspended nodes, runs that shall end."""

from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from api.rows import make_execution, make_node, make_olt
from facho.hosts.models import Pause
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJob, WorkflowNode

pytestmark = pytest.mark.django_db

JOB = {
    "name": "Light",
    "slug": "light",
    "query_type": "get",
    "interval_seconds": "1800",
    "cadence": "fixed_rate",
    "priority": "50",
    "max_attempts": "3",
    "retry_delay_seconds": "120",
    "chain_condition": "always",
    "oids-TOTAL_FORMS": "0",
    "oids-INITIAL_FORMS": "0",
    "chain_jobs-TOTAL_FORMS": "0",
    "chain_jobs-INITIAL_FORMS": "0",
}


def address(model: type[Model], page: str, *arguments: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


def act(client: Client, action: str, *rows: Model) -> str:
    """Choose rows of a list and an action; returns what the page said."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
    answer = client.post(address(type(rows[0]), "changelist"), chosen)
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def save_job(client: Client, job: SnmpJob | None = None, **changes: str) -> Any:
    place = address(SnmpJob, "change", job.pk) if job else address(SnmpJob, "add")
    return client.post(place, JOB | changes)


def save_pause(client: Client, **inputs: str) -> Any:
    now = timezone.now()
    times = {"starts_at_0": f"{now:%Y-%m-%d}", "starts_at_1": "12:00", "ends_at_0": f"{now:%Y-%m-%d}"}
    return client.post(address(Pause, "add"), times | {"ends_at_1": "14:00", "note": "works"} | inputs)


def test_a_pause_of_an_olt_or_of_everything_is_planned(administrator: Client) -> None:
    olt = make_olt()

    save_pause(administrator, olt=str(olt.id))
    save_pause(administrator, olt="all")

    assert set(Pause.objects.values_list("olt_id", flat=True)) == {olt.id, None}
    assert b"everything" in administrator.get(address(Pause, "changelist")).content


def test_a_forgotten_olt_pauses_nothing(administrator: Client) -> None:
    assert b"This field is required." in save_pause(administrator, olt="").content
    assert b"This field is required." in save_pause(administrator).content
    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("is_all", "reported"),
    [
        (False, "1 OLT is not polled while this pause lasts."),
        (True, "2 OLTs are not polled while this pause lasts."),
    ],
)
def test_who_pauses_is_reported_how_many_olts_it_stops(administrator: Client, is_all: bool, reported: str) -> None:
    olt, _other, _off = make_olt(), make_olt(), make_olt(enabled=False)

    answer = save_pause(administrator, olt="all" if is_all else str(olt.id))

    assert reported in [str(message) for message in get_messages(answer.wsgi_request)]


def test_a_pause_of_all_olts_stays_one_when_it_is_changed(administrator: Client) -> None:
    held = pause(None, minutes=30, note="", now=timezone.now())

    assert '<option value="all" selected>' in administrator.get(address(Pause, "change", held.pk)).content.decode()


def test_a_pause_that_ends_before_it_begins_is_refused(administrator: Client) -> None:
    answer = save_pause(administrator, olt="all", ends_at_1="12:00")

    assert b"The end must be after the start." in answer.content
    assert not Pause.objects.exists()


def test_pauses_are_ended_and_never_deleted(administrator: Client) -> None:
    now = timezone.now()
    holds = pause(None, minutes=30, note="", now=now - timedelta(minutes=1))
    over = pause(None, minutes=30, note="", now=now - timedelta(hours=2))

    assert act(administrator, "end_now", holds, over) == "1 pause ended."
    assert administrator.post(address(Pause, "delete", holds.pk)).status_code == 403
    holds.refresh_from_db()
    assert holds.ends_at <= timezone.now()


def test_a_job_gets_hours_and_its_nodes_a_slot_within_them(administrator: Client) -> None:
    now = timezone.now()
    job = SnmpJob.objects.create(name="Light", slug="light", query_type="get", interval_seconds=1800)
    node = make_node(interval_seconds=1800, next_run_at=now + timedelta(minutes=5))
    WorkflowNode.objects.filter(pk=node.pk).update(job=job)
    opens = (now + timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
    closes = opens + timedelta(hours=1)

    answer = save_job(administrator, job, hours_from=f"{opens:%H:%M}", hours_to=f"{closes:%H:%M}")

    assert answer.status_code == 302
    node.refresh_from_db()
    assert node.next_run_at is not None
    assert opens <= node.next_run_at < closes


def test_a_job_without_hours_runs_always(administrator: Client) -> None:
    assert save_job(administrator, hours_from="", hours_to="").status_code == 302
    assert SnmpJob.objects.get().hours_from is None


@pytest.mark.parametrize("hours", [{"hours_from": "01:00"}, {"hours_to": "05:00"}])
def test_hours_come_in_pairs(administrator: Client, hours: dict[str, str]) -> None:
    answer = save_job(administrator, **hours)

    assert b"Set both hours, or neither." in answer.content
    assert not SnmpJob.objects.exists()


def test_hours_that_nothing_would_keep_are_refused(administrator: Client) -> None:
    master = make_node().job
    hours = {"hours_from": "01:00", "hours_to": "05:00"}

    chained = save_job(administrator, master_job=str(master.pk), **hours)
    drifting = save_job(administrator, cadence="fixed_delay", **hours)

    assert b"give the hours there" in chained.content
    assert b"Hours need runs on the grid" in drifting.content


def test_hours_may_go_past_midnight(administrator: Client) -> None:
    save_job(administrator, hours_from="22:00", hours_to="05:00")

    assert SnmpJob.objects.get().hours_from == time(22)


def test_suspended_nodes_return_to_their_schedule(administrator: Client) -> None:
    """D8."""
    past = timezone.now() - timedelta(minutes=9)
    suspended = make_node(suspended_at=past, suspend_reason="timeout", next_run_at=past)

    message = act(administrator, "resume", suspended, make_node())

    assert message == "1 node was resumed."
    suspended.refresh_from_db()
    assert suspended.suspended_at is None


def test_runs_are_asked_to_end(administrator: Client) -> None:
    runs, over = make_execution(make_node()), make_execution(make_node(), ExecutionState.SUCCESS)

    assert act(administrator, "cancel", runs, over) == "1 execution ends."
    runs.refresh_from_db()
    assert runs.cancel_requested_at is not None


def test_an_olt_gets_the_ready_made_jobs_that_it_lacks(administrator: Client) -> None:
    olt, stranger = make_olt(vendor="huawei_smartax"), make_olt()
    jobs = {job.slug for job in load_definitions()["huawei_smartax"].jobs}

    assert act(administrator, "add_jobs", olt, stranger) == f"{len(jobs)} nodes were added."
    assert act(administrator, "add_jobs", olt, stranger).endswith("0 nodes were added.")

    assert set(WorkflowNode.objects.values_list("job__slug", flat=True)) == jobs
