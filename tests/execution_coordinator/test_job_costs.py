"""What jobs would cost an OLT that does not have them yet."""

import pytest

from api.rows import NOW, make_execution
from facho.execution_coordinator.feasibility import OltSize, judge_choice, load_job_costs
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from factories import make_olt

pytestmark = pytest.mark.django_db

HUAWEI = load_definitions()["huawei_smartax"]


def test_what_another_olt_of_the_family_took_counts_before_any_guess() -> None:
    apply_ready_made_jobs(make_olt(), now=NOW)
    node = WorkflowNode.objects.get(job__slug="descubrimiento")
    WorkflowNode.objects.filter(id=node.id).update(last_run_at=NOW)
    make_execution(node, ExecutionState.SUCCESS, at=NOW, duration_ms=4000, result={"onus": 100})

    costs = load_job_costs(HUAWEI, OltSize(onus=200))

    assert (costs["descubrimiento"].seconds, costs["descubrimiento"].is_measured) == (8.0, True)
    assert not costs["potencia"].is_measured


def test_a_chain_counts_with_its_master_and_only_if_it_is_chosen() -> None:
    costs = load_job_costs(HUAWEI, OltSize(onus=1000))

    alone = judge_choice("Norte", HUAWEI, {"descubrimiento": 300}, costs)
    chained = judge_choice("Norte", HUAWEI, {"descubrimiento": 300, "estado": 300}, costs)

    more = costs["estado"].seconds_per_hour(300) / 60
    assert chained.judged.minutes_per_hour == pytest.approx(alone.judged.minutes_per_hour + more)
