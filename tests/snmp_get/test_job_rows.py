"""What the runs of a job leave behind: typed values for people, the latest raw ones, and a row for each try."""

import json

import pytest
from django.test import Client

from api.rows import make_user
from facho.executions import store
from facho.executions.models import Execution, ExecutionAttempt, Origin
from facho.executions.runner import NodeRunner, Times
from facho.executions.store import ClaimRequest
from facho.hosts.models import OltData
from facho.infrastructure.gateway import SystemClock
from facho.onus.models import Onu, OnuData
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJobOid, WorkflowNode
from factories import NOW, claim_waiting, give_secrets, make_job, make_node
from raw_rows import raw_values
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
        assert claim_waiting(waiting)
        return waiting.id


def node_of(bench: Bench) -> WorkflowNode:
    job = make_job(columns=(DESCRIPTION, DISTANCE))
    SnmpJobOid.objects.create(job=job, position=2, oid=UPTIME)
    return make_node(bench.olt, job, next_run_at=None)


@pytest.mark.parametrize("broken", ["save_blocks", "_append_history"])
def test_what_a_run_read_of_onus_is_stored_whole_or_not_at_all(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3-10, S3-11: raw values, typed ones and the result of the execution, in one transaction."""

    def refuse(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("the disk is full")

    async def scene(bench: Bench) -> None:
        await bench.discover()
        runs = Runs(bench, await bench.collector.devices.database.run(node_of, bench))
        await runs.database.run(OnuData.objects.all().delete)
        with monkeypatch.context() as patch:
            patch.setattr(f"facho.onus.store.{broken}", refuse)
            await runs.start()
        assert not await runs.database.run(OnuData.objects.exists)
        assert not await runs.database.run(Onu.objects.exclude(description="").exists)
        assert await runs.database.run(Execution.objects.filter(status=ExecutionState.SUCCESS).count) == 0
        await runs.try_again()

    on_bench(scene, onus=ONUS)

    execution = Execution.objects.get()
    assert (execution.status, execution.result["onus"]) == (ExecutionState.SUCCESS, ONUS)
    assert len(raw_values()) == ONUS * len(OIDS)
    assert not Onu.objects.filter(description="").exists()


def test_a_result_is_a_summary_of_at_most_4_kb_whatever_the_device_sends() -> None:
    """D23: counts, and no rows: of hundreds of ONUs whose values cannot be true, and of many OIDs without any."""

    def make_wide(bench: Bench) -> WorkflowNode:
        node = node_of(bench)
        columns = [key for key in HUAWEI.columns if key.startswith("onu.") and key not in (DESCRIPTION, DISTANCE)]
        reads = [SnmpJobOid(job=node.job, position=9, column_key=key) for key in columns]
        reads += [SnmpJobOid(job=node.job, position=10, oid=f"1.3.6.1.4.1.99999.{number}.0") for number in range(60)]
        SnmpJobOid.objects.bulk_create(reads)
        return node

    async def scene(bench: Bench) -> None:
        await bench.discover()
        for onu in bench.simulated.world.onus:
            onu.rx_dbm = 40.0
        runs = Runs(bench, await bench.collector.devices.database.run(make_wide, bench))
        await runs.start()

    on_bench(scene, onus=300)

    result = Execution.objects.get().result
    assert result["onus"] == 300
    assert result["out_of_range"] >= 300
    assert len(json.dumps(result)) <= 4_096


def shown(client: Client) -> dict[str, tuple[str, int]]:
    """Return description and distance of each ONU as the API shows them."""
    answer = client.get("/api/v1/onus/").json()
    return {onu["serial"]: (onu["description"], onu["distance_m"]) for onu in answer["results"]}


def test_a_job_of_several_oids_leaves_typed_values_latest_raw_ones_and_a_row_for_each_try() -> None:
    """D17: the raw value of before is gone, and people need none of them."""
    reported: list[dict[str, tuple[str, int]]] = []

    async def scene(bench: Bench) -> None:
        world = bench.simulated.world
        await bench.discover()
        runs = Runs(bench, await bench.collector.devices.database.run(node_of, bench))
        await runs.database.run(give_secrets, community="not this one")
        await runs.start()
        await runs.database.run(give_secrets, community="public")
        await runs.try_again()
        world.describe(next(world.onus), "moved to the attic")
        await runs.start()
        reported.append({onu.serial: (onu.description, onu.distance_m) for onu in world.onus})

    on_bench(scene, onus=ONUS)

    [truth] = reported
    assert len(truth) == ONUS
    for position, oid in enumerate(OIDS):
        assert sorted(raw_values(oid)) == sorted((serial, str(values[position])) for serial, values in truth.items())
    assert OltData.objects.filter(oid=UPTIME).count() == 1
    attempts = ExecutionAttempt.objects.order_by("execution_id", "number")
    assert list(attempts.values_list("number", "status")) == [(1, "FAILED"), (2, "SUCCESS"), (1, "SUCCESS")]
    OnuData.objects.all().delete()
    client = Client()
    client.force_login(make_user())
    assert shown(client) == truth
