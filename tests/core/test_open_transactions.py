"""The database waits for no device: whatever a run reads, it holds no transaction meanwhile."""

import asyncio
from typing import Any

import pytest
from django.db.transaction import Atomic

from facho.core.wiring import ENGINE, open_parts, run_interactive
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest
from facho.polling.snmp.transport import UdpTransport
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_get.collector import OltCollector
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from factories import NOW, make_olt
from servers.modes import in_database

pytestmark = pytest.mark.django_db(transaction=True)


class Watch:
    """Counts the transactions of this process that are open: at most ever, and when a question begins and ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = self.most_open = 0
        self.during_questions: list[int] = []
        for name, change in (("__enter__", 1), ("__exit__", -1)):
            monkeypatch.setattr(Atomic, name, self._counting(getattr(Atomic, name), change))
        for name in ("send", "close_request"):
            monkeypatch.setattr(UdpTransport, name, self._looking(getattr(UdpTransport, name)))

    def _counting(self, step: Any, change: int) -> Any:
        def counted(*arguments: Any) -> Any:
            self.open += change
            self.most_open = max(self.most_open, self.open)
            return step(*arguments)

        return counted

    def _looking(self, step: Any) -> Any:
        def looked(*arguments: Any) -> Any:
            self.during_questions.append(self.open)
            return step(*arguments)

        return looked


def add_olt(port: int) -> ClaimRequest:
    olt = make_olt(port=port, vendor="huawei_smartax")
    apply_ready_made_jobs(olt, now=NOW)
    node = WorkflowNode.objects.get(workflow__olt=olt, job__query_type="discovery")
    return ClaimRequest(olt.id, "discovery", Origin.MANUAL, node.id)


def test_no_transaction_is_open_while_an_olt_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def discover() -> Watch:
        async with Simulation.start(SimulatorConfig(vendor="huawei", onus=40, life=STILL)) as simulation:
            wish = await in_database(lambda: add_olt(simulation.olts[0].port))
            watch = Watch(monkeypatch)
            async with open_parts(ENGINE) as parts:
                await run_interactive(parts, wish, OltCollector(parts.devices), wait_seconds=0)
            return watch

    watch = asyncio.run(discover())

    assert set(Execution.objects.values_list("status", flat=True)) == {"SUCCESS"}
    assert watch.most_open > 0
    assert len(watch.during_questions) > 2
    assert set(watch.during_questions) == {0}
