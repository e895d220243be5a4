"""The doctor sees what several machines make up together, and says what to do."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone
from django.utils.translation import override
from pytest_django import Settings

from facho.core.cli.doctor import DoctorFinding, Verdict, examine_cluster
from facho.executions.models import Execution, Origin, ProductProcess
from facho.executions.processes import VERSION, ProcessReport, save_process
from facho.executions.store import ClaimRequest, claim
from facho.polling.domain.execution_state import ExecutionState
from facho.zabbix_pollers.store import save_poller_count
from factories import make_node, make_olt
from servers.redis import RedisServer

pytestmark = pytest.mark.django_db

GROUPS = {"norte": 2}


@pytest.fixture(autouse=True)
def _cluster(settings: Settings, redis_server: RedisServer) -> Iterator[None]:
    """Ten pollers, two more at a site, and an empty Redis."""
    redis_server.client().flushall()
    settings.REDIS_URL, settings.FACHO_POLLER_GROUPS = redis_server.url, GROUPS
    save_poller_count(10, GROUPS)
    with override("en"):
        yield


def say(owner: str, *, groups: list[str], slots: int, version: str = VERSION) -> None:
    now = timezone.now()
    save_process(ProcessReport(owner, version, now, now, groups, slots))


def found(name: str) -> DoctorFinding:
    return next(finding for finding in examine_cluster(timezone.now()) if finding.name == name)


def test_enough_slots_in_every_group_are_well() -> None:
    say("worker/a", groups=[""], slots=6)
    say("worker/b", groups=["", "norte"], slots=4)
    say("scheduler/a", groups=[], slots=0)

    assert {finding.verdict for finding in examine_cluster(timezone.now())} == {Verdict.OK}
    assert found("workers").text == "10 slots for 10 pollers"
    assert found("workers.norte").text == "4 slots for 2 pollers"
    assert found("versions").text == f"{VERSION}, in 3 processes"
    assert "snmp_default.norte 0" in found("queues.norte").text


def test_too_few_slots_are_an_error_and_none_comes_with_the_command() -> None:
    say("worker/a", groups=[""], slots=4)

    assert (found("workers").verdict, found("workers.norte").verdict) == (Verdict.ERROR, Verdict.ERROR)
    assert "4 slots for 10 pollers" in found("workers").text
    assert "-Q snmp_default.norte,snmp_retry.norte,snmp_highprio.norte -c 3`" in found("workers.norte").text


def test_a_worker_that_was_not_heard_of_for_long_is_none() -> None:
    say("worker/old", groups=[""], slots=10)
    ProductProcess.objects.update(seen_at=timezone.now() - timedelta(minutes=2))

    assert "No worker" in found("workers").text


def test_a_second_report_is_the_same_row_in_one_statement(django_assert_num_queries: object) -> None:
    say("worker/a", groups=[""], slots=10)

    with django_assert_num_queries(1):  # type: ignore[operator]
        say("worker/a", groups=[""], slots=10)

    assert ProductProcess.objects.count() == 1


def test_a_group_whose_workers_live_and_take_nothing_is_noticed() -> None:
    say("worker/a", groups=[""], slots=10)
    node = make_node()
    claim([ClaimRequest(node.workflow.olt_id, "x", Origin.SCHEDULE, node.id)], owner="scheduler", now=timezone.now())
    assert found("queues").verdict is Verdict.OK

    Execution.objects.update(created_at=timezone.now() - timedelta(minutes=1))

    assert found("queues").verdict is Verdict.ERROR
    assert "has waited for 6" in found("queues").text
    assert found("queues.norte").verdict is Verdict.OK


def test_a_worker_that_completes_nothing_beside_others_is_noticed() -> None:
    for owner in ("worker/still", "worker/busy"):
        say(owner, groups=[""], slots=10)
    ProductProcess.objects.update(started_at=F("started_at") - timedelta(hours=1))
    ProductProcess.objects.filter(owner="worker/busy").update(completed=40, completed_at=timezone.now())
    olt = make_olt()
    Execution.objects.bulk_create(ended_run(olt.id, "worker/busy", token) for token in range(40))

    assert "worker/still" in found("consumption").text
    assert [f.name for f in examine_cluster(timezone.now())].count("consumption") == 1


def ended_run(olt_id: int, owner: str, token: int) -> Execution:
    now = timezone.now()
    device = {"address": "192.0.2.1", "port": 161, "token": token}
    return Execution(
        olt_id=olt_id, owner=owner, status=ExecutionState.SUCCESS, created_at=now, finished_at=now, **device
    )


def test_an_olt_of_a_group_without_pollers_is_an_error() -> None:
    olt = make_olt()
    type(olt).objects.update(poller_group="sur")

    assert "sur" in found("groups").text


def test_groups_that_are_set_otherwise_here_are_a_warning(settings: Settings) -> None:
    settings.FACHO_POLLER_GROUPS = {"norte": 3}

    assert found("groups").verdict is Verdict.WARNING
    assert '"norte:3" here and "norte:2"' in found("groups").text


def test_two_versions_at_once_are_a_warning_with_who_runs_which() -> None:
    say("web/a", groups=[], slots=0, version="0.0.1")

    assert found("versions").verdict is Verdict.WARNING
    assert "web/a 0.0.1" in found("versions").text


def test_a_clock_that_differs_from_the_databases_is_an_error() -> None:
    now = timezone.now()
    save_process(ProcessReport("worker/a", VERSION, now, now))
    assert found("clocks").verdict is Verdict.OK

    save_process(ProcessReport("worker/a", VERSION, now, now + timedelta(seconds=90)))

    assert found("clocks").verdict is Verdict.ERROR
    assert "worker/a +" in found("clocks").text


def test_messages_of_beat_that_nobody_reads_are_a_warning(redis_server: RedisServer) -> None:
    redis_server.client().lpush("zabbix_scheduler", *range(400))

    assert "400" in found("beat").text


def test_without_redis_the_rest_is_still_reported(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert "snmp_default ?" in found("queues").text
