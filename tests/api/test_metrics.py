"""What /metrics tells of polling, runs, OLTs and quotas, read with Prometheus's own parser."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from api.metrics_world import MINUTE, SECOND, THIS_HOUR, make_attempts, make_quota, make_world, scrape, suspend
from api.rows import NOW, make_execution, make_leader, make_node, make_olt, make_olt_value, make_onu, make_pollers
from facho.alerts.models import Alert, AlertRule
from facho.execution_coordinator.models import QuotaViolation, ViolationSeverity
from facho.executions.models import Execution
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.onus.models import Outage
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.schedule import HOUR
from facho.zabbix_pollers.models import Poller

pytestmark = pytest.mark.django_db

HOSTILE = 'a"b\\c\nd} 1\n# HELP'
MOST_STATEMENTS = 24


def make_violation(olt: Olt, hours_ago: int, severity: ViolationSeverity) -> None:
    at = NOW - timedelta(hours=hours_ago)
    QuotaViolation.objects.create(olt=olt, period_start=at, period_end=at, severity=severity, created_at=at)


def test_the_leader_is_there_until_it_is_silent_for_too_long() -> None:
    make_leader(renewed_at=NOW)

    assert scrape(NOW + 3 * SECOND).value("facho_leader_present") == 1
    assert scrape(NOW + 3 * SECOND).value("facho_leader_renewal_age_seconds") == 3
    assert scrape(NOW + 2 * MINUTE).value("facho_leader_present") == 0


def test_without_any_leader_there_is_no_age() -> None:
    assert scrape().value("facho_leader_present") == 0
    assert scrape().value("facho_leader_renewal_age_seconds") is None


def test_the_scheduler_lags_by_who_could_start_and_does_not() -> None:
    make_pollers(3)
    make_node(next_run_at=NOW - 4 * SECOND)
    busy = make_node(next_run_at=NOW - 40 * SECOND)
    make_execution(make_node(busy.workflow.olt), at=NOW - MINUTE, poller_id=0)

    scraped = scrape()

    assert scraped.value("facho_scheduler_lag_seconds") == 4
    assert scraped.value("facho_queue_longest_wait_seconds") == 40
    assert scraped.value("facho_queue_waiting_nodes", reason="olt_busy") == 1


def test_the_queue_has_a_length_and_is_counted_by_lateness() -> None:
    """S3-30."""
    for late_seconds in (1, 7, 400):
        make_node(next_run_at=NOW - late_seconds * SECOND)
    make_node(next_run_at=NOW + SECOND)

    scraped = scrape()

    bounds = {labels["at_least_seconds"]: None for labels in scraped.labelled("facho_queue_late_nodes")}
    late = {bound: scraped.value("facho_queue_late_nodes", at_least_seconds=bound) for bound in bounds}
    assert scraped.value("facho_queue_length") == 3
    assert late == {"5": 2, "10": 1, "30": 1, "60": 1, "300": 1, "600": 0}


def test_pollers_are_reported_by_state_share_and_what_they_did() -> None:
    make_pollers(2)
    Poller.objects.filter(poller_id=1).update(tasks_completed=8, tasks_delayed=3)
    make_execution(make_node(), at=NOW - 15 * SECOND, poller_id=1)

    scraped = scrape()

    assert [scraped.value("facho_pollers", state=state) for state in ("FREE", "BUSY")] == [1, 1]
    assert [scraped.value("facho_poller_busy_ratio", poller=number) for number in ("0", "1")] == [0, 0.25]
    assert scraped.value("facho_poller_tasks_completed_total", poller="1") == 8
    assert scraped.value("facho_poller_tasks_delayed_total", poller="1") == 3


def test_success_and_failure_are_reported_per_olt() -> None:
    """S3-28."""
    node = make_node(make_olt("centro"))
    for minute, state in enumerate([ExecutionState.SUCCESS] * 3 + [ExecutionState.FAILED, ExecutionState.INTERRUPTED]):
        make_execution(node, state, at=NOW - minute * MINUTE)
    make_execution(node, ExecutionState.FAILED, at=NOW - 61 * MINUTE)
    make_execution(make_node(make_olt("norte")), ExecutionState.SUCCESS, at=NOW - MINUTE)

    scraped = scrape()

    states = ("SUCCESS", "FAILED", "INTERRUPTED")
    counts = [scraped.value("facho_olt_executions_last_hour", olt="centro", state=state) for state in states]
    assert counts == [3, 1, 1]
    assert scraped.value("facho_olt_success_ratio_last_hour", olt="centro") == 0.75
    assert scraped.value("facho_olt_success_ratio_last_hour", olt="norte") == 1


def test_runs_are_reported_by_kind_result_and_time() -> None:
    """S3-29."""
    for duration_ms in (1500, 500):
        node = make_node(query_type="discovery")
        make_execution(node, ExecutionState.SUCCESS, at=NOW - MINUTE, duration_ms=duration_ms)
    make_execution(make_node(slug="potencia"), ExecutionState.FAILED, at=NOW - MINUTE, duration_ms=9000)

    scraped = scrape()

    done = {"task_type": "discovery", "state": "SUCCESS"}
    assert scraped.value("facho_executions_last_hour", **done) == 2
    assert scraped.value("facho_execution_duration_last_hour_seconds", **done) == 2
    assert scraped.value("facho_execution_duration_max_last_hour_seconds", **done) == 1.5
    assert scraped.value("facho_executions_last_hour", task_type="get_potencia", state="FAILED") == 1


def test_packets_are_summed_per_olt_also_where_a_run_left_no_figures() -> None:
    node = make_node(make_olt("centro"))
    make_execution(node, ExecutionState.SUCCESS, at=NOW - MINUTE, result={"packets": 30, "retransmissions": 2})
    make_execution(node, ExecutionState.FAILED, at=NOW - 2 * MINUTE, result={"packets": 3})
    make_execution(node, ExecutionState.SKIPPED, at=NOW - 3 * MINUTE)

    assert scrape().value("facho_olt_packets_last_hour", olt="centro") == 33
    assert scrape().value("facho_olt_retransmissions_last_hour", olt="centro") == 2


def test_round_trips_are_reported_per_olt() -> None:
    node = make_node(make_olt("centro"))
    for state, longest_ms in ((ExecutionState.SUCCESS, 90), (ExecutionState.FAILED, 1500)):
        reported = {"packets": 30, "round_trips": 20, "round_trips_ms": 2000, "longest_round_trip_ms": longest_ms}
        make_execution(node, state, at=NOW - MINUTE, result=reported)
    make_execution(node, ExecutionState.SKIPPED, at=NOW - MINUTE)

    scraped = scrape()

    assert scraped.value("facho_olt_round_trips_last_hour", olt="centro") == 40
    assert scraped.value("facho_olt_round_trip_last_hour_seconds", olt="centro") == 4
    assert scraped.value("facho_olt_round_trip_max_last_hour_seconds", olt="centro") == 1.5


def test_answers_that_were_not_believed_are_reported_per_olt() -> None:
    node = make_node(make_olt("centro"))
    for forged, malformed in ((3, 1), (4, 0)):
        reported = {"packets": 30, "forged_answers": forged, "malformed_answers": malformed}
        make_execution(node, ExecutionState.SUCCESS, at=NOW - MINUTE, result=reported)

    scraped = scrape()

    assert scraped.value("facho_olt_forged_answers_last_hour", olt="centro") == 7
    assert scraped.value("facho_olt_malformed_answers_last_hour", olt="centro") == 1


def test_retries_are_counted_with_the_time_between_them() -> None:
    """S3-31."""
    node = make_node(slug="potencia")
    run = make_execution(node, ExecutionState.FAILED, at=NOW - 10 * MINUTE, attempt=3)
    make_attempts(run, (0, 5), (125, 130), (260, 265))
    make_execution(node, ExecutionState.WAITING, at=NOW - MINUTE, failure_kind="timeout", resume_at=NOW + MINUTE)

    scraped = scrape()

    assert scraped.value("facho_retries_last_hour", task_type="get_potencia") == 2
    assert scraped.value("facho_retry_wait_last_hour_seconds", task_type="get_potencia") == 250
    assert scraped.value("facho_retries_waiting") == 1


def test_suspended_nodes_are_counted_and_listed() -> None:
    """S3-32."""
    olt = make_olt("centro")
    make_node(olt)
    suspend(make_node(olt, slug="potencia"))
    suspend(make_node(make_olt(enabled=False)))

    scraped = scrape()

    states = ("enabled", "suspended", "disabled")
    assert [scraped.value("facho_nodes", state=state) for state in states] == [1, 1, 1]
    assert scraped.labelled("facho_node_suspended_timestamp_seconds") == [
        {"olt": "centro", "task_type": "get_potencia", "reason": "unreachable"}
    ]


def test_an_olt_is_up_when_it_answers_and_not_reported_when_it_is_disabled() -> None:
    make_olt("up", reachability=Reachability.UP, last_answer_at=NOW - 90 * SECOND)
    make_olt("down", reachability=Reachability.DOWN)
    off = make_olt("off", reachability=Reachability.UP, enabled=False, last_answer_at=NOW)
    make_execution(make_node(off), ExecutionState.SUCCESS, at=NOW - MINUTE)
    make_quota(off, required=1)

    scraped = scrape()

    assert [scraped.value("facho_olt_up", olt=name) for name in ("up", "down")] == [1, 0]
    assert scraped.value("facho_olt_last_answer_age_seconds", olt="up") == 90
    assert [scraped.value("facho_olts", state=state) for state in ("up", "down", "disabled")] == [1, 1, 1]
    assert [labels for _name, labels in scraped.samples if ("olt", "off") in labels] == []


def test_the_last_success_outlives_failures_and_is_one_for_all_nodes_of_a_kind() -> None:
    olt = make_olt("centro")
    older, newer = (make_node(olt, query_type="discovery") for _ in range(2))
    make_execution(older, ExecutionState.SUCCESS, at=NOW - 50 * MINUTE)
    make_execution(newer, ExecutionState.SUCCESS, at=NOW - 20 * MINUTE)
    make_execution(newer, ExecutionState.FAILED, at=NOW - MINUTE)

    last = scrape().value("facho_last_success_timestamp_seconds", olt="centro", task_type="discovery")

    assert last == (NOW - 20 * MINUTE + SECOND).timestamp()


def test_quotas_are_those_of_this_hour() -> None:
    olt = make_olt("centro")
    make_quota(olt, start=THIS_HOUR.start - HOUR, required=99)
    make_quota(olt, required=12, completed=5, failed=1, skipped=2, pending=4)

    scraped = scrape()

    names = ("required", "completed", "failed", "skipped", "pending")
    figures = [scraped.value(f"facho_quota_{name}", olt="centro", task_type="discovery") for name in names]
    assert figures == [12, 5, 1, 2, 4]


def test_violations_of_a_day_are_counted_by_severity() -> None:
    olt = make_olt()
    for hours_ago, severity in ((1, ViolationSeverity.HIGH), (23, ViolationSeverity.HIGH), (25, ViolationSeverity.LOW)):
        make_violation(olt, hours_ago, severity)

    scraped = scrape()

    assert scraped.value("facho_quota_violations_last_day", severity="HIGH") == 2
    assert scraped.value("facho_quota_violations_last_day", severity="LOW") == 0


def test_onus_are_counted_by_state_and_never_named() -> None:
    olt = make_olt("centro")
    for number, state in enumerate(("online", "online", "offline")):
        make_onu(olt, (0, 1, 0, number), run_state=state)
    make_onu(olt, (0, 1, 0, 9), run_state="online", is_present=False, absent_since=NOW)

    scraped = scrape()

    assert [scraped.value("facho_onus", olt="centro", state=state) for state in ("online", "offline")] == [2, 1]
    assert not any("HWTC" in value for _name, labels in scraped.samples for _label, value in labels)


def test_counters_stay_when_old_rows_are_deleted() -> None:
    make_pollers(1)
    make_world()
    Poller.objects.update(tasks_completed=2)
    before = scrape()

    Execution.objects.all().delete()

    counters = [sample for family in before.families if family.type == "counter" for sample in family.samples]
    assert counters
    assert [scrape().value(sample.name, **sample.labels) for sample in counters] == [s.value for s in counters]


def test_hostile_names_come_back_as_they_are() -> None:
    olt = make_olt(HOSTILE, reachability=Reachability.UP)
    make_execution(make_node(olt, slug=HOSTILE), ExecutionState.SUCCESS, at=NOW - MINUTE)

    scraped = scrape()

    assert scraped.value("facho_olt_up", olt=HOSTILE) == 1
    assert scraped.value("facho_executions_last_hour", task_type=f"get_{HOSTILE}", state="SUCCESS") == 1


def test_the_number_of_statements_does_not_grow_with_the_olts(client: APIClient) -> None:
    make_pollers(2)
    make_execution(make_node(make_world()), poller_id=0)
    with CaptureQueriesContext(connection) as few:
        client.get("/metrics")
    for _ in range(5):
        make_world()

    with CaptureQueriesContext(connection) as many:
        client.get("/metrics")

    assert len(many) == len(few) <= MOST_STATEMENTS


def test_secrets_are_not_even_loaded() -> None:
    make_world()

    with CaptureQueriesContext(connection) as queries:
        scrape()

    assert [query["sql"] for query in queries for column in SECRET_COLUMNS if f'"{column}"' in query["sql"]] == []


def test_light_is_reported_by_port_and_of_online_onus_alone() -> None:
    olt = make_olt("centro")
    for number, (state, power) in enumerate([("online", -2000), ("online", -2700), ("offline", -3500)]):
        make_onu(olt, (0, 1, 3, number), run_state=state, rx_power_cdbm=power)

    scraped = scrape()

    assert scraped.value("facho_pon_rx_power_lowest_dbm", olt="centro", port="0/1/3") == -27.0
    assert scraped.value("facho_pon_rx_power_mean_dbm", olt="centro", port="0/1/3") == -23.5
    assert scraped.labelled("facho_pon_olt_rx_power_lowest_dbm") == []


def test_open_outages_and_firing_alerts_are_counted() -> None:
    olt = make_olt("centro")
    times = {"started_at": NOW, "resumed_at": NOW}
    card = Outage.objects.create(olt=olt, scope="card", cause="power", affected=9, down=8, **times)
    Outage.objects.create(olt=olt, scope="pon", cause="power", affected=4, down=4, part_of=card, **times)
    Outage.objects.create(olt=olt, scope="pon", cause="fibre", affected=3, down=3, ended_at=NOW, port=1, **times)
    rule = AlertRule.objects.create(name="r", kind="no_leader")
    Alert.objects.create(rule=rule, subject="a", olt=olt, state="firing", severity="critical", began_at=NOW)
    Alert.objects.create(rule=rule, subject="b", olt=olt, state="pending", severity="critical", began_at=NOW)

    scraped = scrape()

    assert scraped.labelled("facho_outages_open") == [{"scope": "card", "cause": "power"}]
    assert scraped.value("facho_outage_onus_down", scope="card", cause="power") == 8
    assert scraped.value("facho_alerts_firing", severity="critical") == 1
    assert scraped.value("facho_alerts_firing", severity="warning") == 0


def test_traffic_is_bounded_and_pon_ports_come_first() -> None:
    olt = make_olt("centro")
    for number in range(200):
        make_olt_value(olt, "if.in_octets", place=f"eth {number:03}", per_second=1.0)
    make_olt_value(olt, "pon.out_octets", place="0/1/0", per_second=125.5)
    make_olt_value(olt, "pon.in_octets", place="0/1/0", per_second=None)

    scraped = scrape()

    series = scraped.labelled("facho_port_traffic_bytes_per_second")
    assert len(series) == 128
    pon = {"olt": "centro", "kind": "pon", "port": "0/1/0", "direction": "out"}
    assert scraped.value("facho_port_traffic_bytes_per_second", **pon) == 125.5
