"""What the runs of a job leave behind: typed values for people, the latest raw ones, and a row for each try."""

import pytest
from django.test import Client

from api.rows import make_user
from facho.core.clock import SystemClock
from facho.executions import store
from facho.executions.models import Execution, ExecutionAttempt, Origin
from facho.executions.runner import NodeRunner, Times
from facho.executions.store import ClaimRequest
from facho.executions.waiting import resume
from facho.hosts.models import Olt, OltData
from facho.hosts.secrets import Secret
from facho.onus.models import OnuData
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJobOid, WorkflowNode
from factories import NOW, make_job, make_node
from snmp_get.olt_bench import Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

HUAWEI = load_definitions()["huawei_smartax"]
DESCRIPTION, DISTANCE = "onu.description", "onu.distance"
OIDS = [format_oid(HUAWEI.column(key).oid) for key in (DESCRIPTION, DISTANCE)]
UPTIME = "1.3.6.1.2.1.1.3.0"
OWNER = "engine/test"
ONUS = 8


class Runs:
    """Runs of one node of a simulated OLT, by the product's own runner."""

    def __init__(self, bench: Bench, node: WorkflowNode) -> None:
        self.database, self.node = bench.collector.devices.database, node
        self._runner = NodeRunner(bench.collector, self.database, SystemClock(), OWNER, Times(60, 60), ())

    async def start(self) -> None:
        """Run the node for no slot, as by hand."""
        wish = ClaimRequest(self.node.workflow.olt_id, self.node.job.task_type, Origin.MANUAL, self.node.id)
        [claimed] = await self.database.run(store.claim, [wish], owner=OWNER, now=NOW)
        await self._runner.run(claimed.execution_id, claimed.token)

    async def try_again(self) -> None:
        """Let the run go on that waits after a failed try."""
        await self._runner.run(await self.database.run(self._resume), None)

    def _resume(self) -> int:
        waiting = Execution.objects.get(status="WAITING")
        token = store.next_tokens([waiting.olt_id])[waiting.olt_id]
        assert resume(waiting.id, 0, "", token=token, owner=OWNER, now=NOW)
        return waiting.id


def node_of(bench: Bench) -> WorkflowNode:
    job = make_job(columns=(DESCRIPTION, DISTANCE))
    SnmpJobOid.objects.create(job=job, position=2, oid=UPTIME)
    return make_node(bench.olt, job, next_run_at=None)


def shown(client: Client) -> dict[str, tuple[str, int]]:
    """Return description and distance of each ONU as the API shows them."""
    answer = client.get("/api/v1/onus/").json()
    return {onu["serial"]: (onu["description"], onu["distance_m"]) for onu in answer["results"]}


def test_a_job_of_several_oids_leaves_typed_values_latest_raw_ones_and_a_row_for_each_try() -> None:
    """D17: the raw value of before is gone, and people need none of them."""
    told: list[dict[str, tuple[str, int]]] = []

    async def scene(bench: Bench) -> None:
        world = bench.simulated.world
        await bench.discover()
        runs = Runs(bench, await bench.collector.devices.database.run(node_of, bench))
        await runs.database.run(Olt.objects.update, community=Secret("not this one"))
        await runs.start()
        await runs.database.run(Olt.objects.update, community=Secret("public"))
        await runs.try_again()
        world.describe(next(world.onus), "moved to the attic")
        await runs.start()
        told.append({onu.serial: (onu.description, onu.distance_m) for onu in world.onus})

    on_bench(scene, onus=ONUS)

    [truth] = told
    assert len(truth) == ONUS
    for position, oid in enumerate(OIDS):
        raw = OnuData.objects.filter(oid=oid).values_list("onu__serial", "value")
        assert sorted(raw) == sorted((serial, str(values[position])) for serial, values in truth.items())
    assert OltData.objects.filter(oid=UPTIME).count() == 1
    attempts = ExecutionAttempt.objects.order_by("execution_id", "number")
    assert list(attempts.values_list("number", "status")) == [(1, "FAILED"), (2, "SUCCESS"), (1, "SUCCESS")]
    OnuData.objects.all().delete()
    client = Client()
    client.force_login(make_user())
    assert shown(client) == truth
