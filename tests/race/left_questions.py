"""A killed engine leaves a question at a slow OLT, and the next engine of the same data folder starts at once."""

import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from crash.devices import simulated
from crash.engine_process import fork_engine, wait_until
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.lease import WHOLE
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from factories import make_job, make_node, make_olt

INTERVAL_SECONDS = 2
# An answer takes most of the time that a reader gives it, and longer than an engine takes to start.
SLOW = SimulatorConfig(vendor="huawei_smartax", onus=8, latency_ms=3_500, life=STILL)
PATIENCE_SECONDS = 60


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Kill engines in the middle of a question, and return how many questions the device had at once."""
    folder = Path(settings.DATA_FOLDER.path)
    engines = [fork_engine(f"engine{n}", folder, shard=WHOLE) for n in range(order["engines"])]
    with simulated(SLOW) as devices:
        try:
            [olt] = devices.olts
            row = make_olt(port=olt.port, vendor=olt.vendor)
            # Known already, so that nobody asks it who it is in between.
            Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")
            make_node(row, make_job(query_type=QueryType.DISCOVERY, columns=()), interval_seconds=INTERVAL_SECONDS)
            for engine in engines[:-1]:
                before = len(devices.packets)
                engine.start()
                wait_until(lambda before=before: len(devices.packets) > before, seconds=PATIENCE_SECONDS)
                engine.signal(signal.SIGKILL)
                wait_until(lambda engine=engine: engine.is_gone, seconds=PATIENCE_SECONDS)
            engines[-1].start()
            is_served = wait_until(_is_served, seconds=PATIENCE_SECONDS)
        finally:
            for engine in engines:
                engine.stop()
    connections.close_all()
    return {"is_served": is_served, "max_in_flight": devices.max_in_flight, "packets": len(devices.packets)}


def _is_served() -> bool:
    return Execution.objects.filter(status=ExecutionState.SUCCESS).exists()
