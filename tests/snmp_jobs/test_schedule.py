"""Nodes on their grid: what is due, what a claim and an end do to it (decisions D2, D10)."""

import re
from datetime import UTC, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override
from pytest_django import Settings

from facho.alerts.conditions import CONDITIONS
from facho.executions.models import Execution
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs import store
from facho.snmp_jobs.application import JOB_NAMES, apply_ready_made_jobs, ready_name
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import Cadence, SnmpJob, SnmpJobHost, WorkflowNode
from factories import NOW, chain_to, claim_nodes, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db


def due_ids() -> list[int]:
    return sorted(node.node_id for node in load_due_nodes(NOW))


def claim(node: WorkflowNode, *, late: timedelta = timedelta(0)) -> Execution | None:
    """Start the node, and return its run, which has ended at once; None when it did not start."""
    claimed = claim_nodes([node], now=NOW + late)
    node.refresh_from_db()
    Execution.objects.update(status=ExecutionState.SUCCESS, finished_at=NOW + late)
    return Execution.objects.get(id=claimed[0].execution_id) if claimed else None


def test_only_enabled_masters_whose_time_has_come_are_due() -> None:
    """S0-07, S3-03, S4-09."""
    due = make_node()
    make_node(next_run_at=NOW + timedelta(seconds=1))
    make_node(next_run_at=None)
    make_node(enabled=False)
    make_node(make_olt(enabled=False))
    chain_to(due)
    suspended = make_node()
    WorkflowNode.objects.filter(id=suspended.id).update(suspended_at=NOW, suspend_reason="unreachable")

    assert due_ids() == [due.id]
    assert [claimed.node_id for claimed in claim_nodes(WorkflowNode.objects.all())] == [due.id]


def test_a_node_is_due_from_its_time_on_until_it_is_claimed() -> None:
    """S3-03, S4-09: by `next_run_at`, whatever the time of its last run."""
    node = make_node(next_run_at=NOW + timedelta(seconds=30))
    WorkflowNode.objects.update(last_run_at=NOW - timedelta(days=1))

    def is_due(seconds: float) -> bool:
        return bool(load_due_nodes(NOW + timedelta(seconds=seconds)))

    assert [is_due(seconds) for seconds in (0, 29, 30, 3_600)] == [False, False, True, True]
    claim(node, late=timedelta(seconds=30))
    assert not is_due(30)


def test_due_nodes_are_loaded_in_one_query(django_assert_num_queries: object) -> None:
    for _ in range(5):
        make_node()

    with django_assert_num_queries(1):  # type: ignore[operator]
        assert len(load_due_nodes(NOW)) == 5


def test_a_chain_node_cannot_have_a_time_of_its_own() -> None:
    """S0-18: by constraint."""
    member = chain_to(make_node())

    with pytest.raises(IntegrityError), transaction.atomic():
        WorkflowNode.objects.filter(id=member.id).update(next_run_at=NOW)


def test_a_chain_node_needs_a_master() -> None:
    node = make_node(next_run_at=None)

    with pytest.raises(IntegrityError), transaction.atomic():
        WorkflowNode.objects.filter(id=node.id).update(is_chain_node=True)


def test_the_claim_moves_the_node_to_the_first_slot_after_now() -> None:
    """D2, S3-06, S4-12."""
    node = make_node(interval_seconds=300)

    run = claim(node, late=timedelta(seconds=7))

    assert run
    assert run.slot_at == NOW
    assert node.next_run_at == NOW + timedelta(minutes=5)
    assert node.slots_skipped == 0


def test_after_an_hour_of_downtime_a_node_runs_once_and_counts_what_it_missed() -> None:
    """S4-13: no catch-up."""
    node = make_node(next_run_at=NOW - timedelta(hours=1), interval_seconds=300)

    run = claim(node)

    assert run
    assert run.slot_at == NOW
    assert node.next_run_at == NOW + timedelta(minutes=5)
    assert node.slots_skipped == 12


def test_the_end_of_a_long_run_skips_the_slots_that_went_by() -> None:
    """S0-15, S0-28, D2."""
    node = make_node(interval_seconds=60)
    claim(node)

    store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(seconds=185))

    node.refresh_from_db()
    assert node.last_run_at == NOW + timedelta(seconds=185)
    assert node.next_run_at == NOW + timedelta(seconds=240)
    assert node.slots_skipped == 3


@pytest.mark.parametrize(("seconds", "moved"), [(30, set()), (185, {"next_run_at", "slots_skipped"})])
def test_the_end_of_a_run_writes_its_own_columns_only(seconds: int, moved: set[str]) -> None:
    """S0-28: what a person changes meanwhile stays; a node is moved only when its next slot has come."""
    node = make_node(interval_seconds=60)
    claim(node)

    with CaptureQueriesContext(connection) as queries:
        store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(seconds=seconds))

    update = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")][-1]
    written = set(re.findall(r'"(\w+)" = ', update.partition(" WHERE ")[0]))
    assert written == {"last_run_at", "consecutive_failures", *moved}


def test_an_ordinary_end_leaves_the_next_run_where_the_claim_put_it() -> None:
    node = make_node(interval_seconds=300)
    claim(node)

    store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(seconds=30))

    node.refresh_from_db()
    assert node.next_run_at == NOW + timedelta(minutes=5)
    assert node.slots_skipped == 0


def test_fixed_delay_counts_from_the_end() -> None:
    """D2: fixed_delay is a per-job option."""
    job = make_job()
    SnmpJob.objects.filter(id=job.id).update(cadence=Cadence.FIXED_DELAY)
    node = make_node(job=job, interval_seconds=100)
    claim(node)

    store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(seconds=45))

    node.refresh_from_db()
    assert node.next_run_at == NOW + timedelta(seconds=145)


def test_a_run_by_hand_keeps_the_grid_and_serves_no_slot() -> None:
    """S0-35."""
    node = make_node(next_run_at=NOW + timedelta(seconds=100))
    store.request_run(node.id, now=NOW)
    assert due_ids() == [node.id]

    run = claim(node)

    assert run
    assert run.slot_at is None
    assert node.next_run_at == NOW + timedelta(seconds=100)
    assert node.run_requested_at is None


def test_a_node_that_another_process_has_started_is_left_out() -> None:
    """A plan may be older than a claim: what is no longer due and not asked for does not start."""
    node = make_node()
    claim(node)

    assert claim(node) is None


def test_a_night_job_that_is_late_in_the_morning_moves_on_without_a_run() -> None:
    job = make_job()
    SnmpJob.objects.filter(id=job.id).update(hours_from=time(1), hours_to=time(5))
    opens = NOW.replace(hour=1, tzinfo=ZoneInfo(settings.TIME_ZONE)).astimezone(UTC)
    node = make_node(job=job, interval_seconds=3_600, next_run_at=opens + timedelta(hours=2))

    assert claim(node, late=opens + timedelta(hours=8) - NOW) is None

    assert (node.slots_skipped, node.next_run_at) == (2, opens + timedelta(days=1))


def test_a_clock_set_back_while_nobody_looked_stalls_no_node() -> None:
    stalled = make_node(next_run_at=NOW + timedelta(hours=1), interval_seconds=300)
    ordinary = make_node(next_run_at=NOW + timedelta(seconds=300), interval_seconds=300)

    store.pull_back_to_grid(NOW)

    for node in (stalled, ordinary):
        node.refresh_from_db()
        assert node.next_run_at == NOW + timedelta(seconds=300)


def test_a_job_that_waits_for_its_hours_is_not_pulled_back() -> None:
    job = make_job()
    SnmpJob.objects.filter(id=job.id).update(hours_from=time(1), hours_to=time(5))
    opens = NOW.replace(hour=1, tzinfo=ZoneInfo(settings.TIME_ZONE)).astimezone(UTC)
    node = make_node(job=job, interval_seconds=3_600, next_run_at=opens)

    store.pull_back_to_grid(opens - timedelta(hours=6))

    node.refresh_from_db()
    assert node.next_run_at == opens


def test_a_chain_node_is_not_run_by_hand() -> None:
    master = make_node()

    with pytest.raises(store.IsChainNode) as refusal:
        store.request_run(chain_to(master).id, now=NOW)

    assert refusal.value.master_id == master.id


def test_an_unknown_node_is_not_run_by_hand() -> None:
    with pytest.raises(store.UnknownNode):
        store.request_run(999_999, now=NOW)


def test_each_olt_has_its_own_schedule() -> None:
    """S4-06: running, being late, failing and resting on one OLT never move another."""
    job = make_job()
    one, other = make_node(job=job), make_node(job=job)

    claim(one, late=timedelta(seconds=700))
    store.save_failures(one.id, 1, now=NOW + timedelta(seconds=1_000))
    store.save_ended(one.id, failures_in_a_row=2, now=NOW + timedelta(seconds=1_300))
    store.suspend(WorkflowNode.objects.filter(id=one.id), reason="malformed", now=NOW)
    store.return_to_schedule(WorkflowNode.objects.filter(id=one.id), now=NOW + timedelta(seconds=2_000))

    before = WorkflowNode.objects.values().get(id=other.id)
    assert (before["next_run_at"], before["last_run_at"], before["offset_seconds"]) == (NOW, None, 0)
    assert (before["consecutive_failures"], before["slots_skipped"], before["suspended_at"]) == (0, 0, None)


def test_enabling_gives_each_host_its_own_first_run_a_minute_ahead() -> None:
    """S4-08, D12: at a minute and the spread of each, so that many enabled at once make no burst."""
    job = make_job()
    hosts = [make_node(job=job, next_run_at=None, interval_seconds=3_600) for _ in range(40)]

    store.give_first_slots(WorkflowNode.objects.filter(job=job), NOW)

    first = WorkflowNode.objects.filter(job=job).values_list("next_run_at", flat=True)
    waits = [(at - NOW).total_seconds() for at in first if at]
    assert len(waits) == len(hosts)
    assert all(60 <= seconds < 360 for seconds in waits)
    assert max(waits.count(seconds) for seconds in waits) <= 4


def test_the_specifications_name_means_the_same_row() -> None:
    """D10."""
    assert SnmpJobHost is WorkflowNode
    assert {"next_run_at", "interval_seconds", "offset_seconds"} <= {field.name for field in WorkflowNode._meta.fields}


def test_ready_made_jobs_make_masters_with_a_time_and_chains_without() -> None:
    """S0-17, S4-08: first runs are spread and at most an interval away; all are nodes of one workflow."""
    olt = make_olt()

    added = apply_ready_made_jobs(olt, now=NOW)

    nodes = olt.workflow.nodes.all()
    assert added == nodes.count() == len(load_definitions()[olt.vendor].jobs)
    for node in nodes.filter(is_chain_node=False):
        assert node.next_run_at is not None
        assert NOW < node.next_run_at <= NOW + timedelta(seconds=node.interval_seconds)
    chained = set(nodes.filter(is_chain_node=True).values_list("job__slug", flat=True))
    assert chained == {"descripcion", "estado", "por_autorizar"}


def test_live_tables_are_read_by_masters_only() -> None:
    """A job on a live table is never a chain member."""
    for definition in load_definitions().values():
        for job in definition.jobs:
            assert job.chain_of is None or definition.cost_of(job.columns) != "live", (definition.key, job.slug)


def test_applying_jobs_twice_adds_nothing() -> None:
    olt = make_olt()
    apply_ready_made_jobs(olt, now=NOW)

    assert apply_ready_made_jobs(olt, now=NOW) == 0


def test_applying_jobs_again_brings_back_what_is_lacking_and_changes_nothing_else() -> None:
    """What operators changed or added is theirs."""
    olt = make_olt()
    apply_ready_made_jobs(olt, now=NOW)
    own = make_node(olt)
    states = SnmpJob.objects.get(slug="estado")
    states.oids.exclude(column_key="onu.run_state").delete()
    WorkflowNode.objects.filter(job__slug="potencia").update(interval_seconds=7_200, enabled=False)
    SnmpJob.objects.get(slug="inventario").delete()

    assert apply_ready_made_jobs(olt, now=NOW) == 1

    assert [read.column_key for read in states.oids.all()] == ["onu.run_state"]
    light = WorkflowNode.objects.get(job__slug="potencia")
    assert (light.interval_seconds, light.enabled) == (7_200, False)
    assert WorkflowNode.objects.filter(job__slug="inventario", master_node=None, next_run_at__gt=NOW).exists()
    assert WorkflowNode.objects.filter(id=own.id).exists()


def test_ready_made_jobs_are_named_in_the_installations_language(settings: Settings) -> None:
    settings.LANGUAGE_CODE = "es"

    apply_ready_made_jobs(make_olt(), now=NOW)

    assert SnmpJob.objects.get(slug="descubrimiento").name == "Descubrir ONU"


def test_every_ready_made_name_can_be_translated() -> None:
    names = {job.name for definition in load_definitions().values() for job in definition.jobs}

    assert names <= set(JOB_NAMES)


@pytest.mark.parametrize(("language", "shown"), [("en", "Discover ONUs"), ("es", "Descubrir ONU")])
def test_a_shipped_name_is_shown_in_the_readers_language(language: str, shown: str) -> None:
    with override(language):
        assert {ready_name(stored) for stored in ("Discover ONUs", "Descubrir ONU")} == {shown}
        assert ready_name("Mi trabajo") == "Mi trabajo"


def test_names_of_default_rules_are_shipped_too() -> None:
    with override("es"):
        stored = str(CONDITIONS["node_suspended"].default_rule.name)

    with override("en"):
        assert ready_name(stored) == "Node suspended"
