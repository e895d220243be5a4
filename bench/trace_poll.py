"""Which files one poll runs, from the tick that finds its node due to its stored rows: `python -m bench.trace_poll`.

Scheduler, pollers, runner, collector, SNMP and stores are the product's, on a SQLite file; the OLT is the simulator in
a process of its own, so that nothing of it is counted. What runs once in the life of a process is not counted either:
the same nodes have run before.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

from bench.fleet import VENDOR, running_fleet
from bench.private_database import private_database
from bench.processes import ROOT

PACKAGE = f"{ROOT / 'src' / 'facho'}/"
MAX_FILES = 60
ONUS = 24
# A walk of all ONUs that changes the inventory, and a read of each ONU that is online.
JOBS = ("descubrimiento", "potencia")
RUN_SECONDS = 60.0


class Trace:
    """The functions of the product that ran while it recorded, in the order of their first calls."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], None] = {}
        self._is_recording = False

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(path for path, _ in self.functions))

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call; bodies of modules and classes run at import and are left out."""
        code = frame.f_code
        if not self._is_recording or event != "call" or not code.co_flags & CO_OPTIMIZED:
            return
        if code.co_filename.startswith(PACKAGE):
            self.functions[code.co_filename.removeprefix(PACKAGE), code.co_qualname] = None

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._is_recording = True
        try:
            yield
        finally:
            self._is_recording = False


async def trace_jobs(port: int) -> dict[str, Trace]:
    """Poll a simulated OLT twice with each job, and trace the second run."""
    # Models can be imported only when Django is set up.
    from facho.core.wiring import ENGINE, build_engine, open_parts

    traces: dict[str, Trace] = {}
    current = Trace()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        current.note(frame, event, argument)

    # Threads of the database are started below: they get the function from here.
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        async with open_parts(ENGINE) as parts:
            await parts.database.run(_add_olt, port)
            engine = build_engine(parts)
            await engine.scheduler.prepare()
            for job in (*JOBS, *JOBS):
                await parts.database.run(_make_due, job)
                traces[job] = current = Trace()
                with current.recording():
                    started = await engine.scheduler.tick()
                    left = await engine.executor.drain(timeout_seconds=RUN_SECONDS)
                if started != 1 or left:
                    raise RuntimeError(f"{job} did not run: {started} started, {len(left)} not ended")
                await parts.database.run(_assert_stored, job)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return traces


def _add_olt(port: int) -> None:
    from django.utils import timezone

    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.simulator.server import SimulatorConfig
    from facho.snmp_jobs.application import apply_ready_made_jobs
    from facho.snmp_jobs.models import WorkflowNode

    community = SimulatorConfig().community
    olt = Olt.objects.create(
        name="OLT", host="127.0.0.1", address="127.0.0.1", port=port, vendor=VENDOR, community=Secret(community)
    )
    apply_ready_made_jobs(olt, now=timezone.now())
    WorkflowNode.objects.update(next_run_at=None)


def _make_due(slug: str) -> None:
    from django.utils import timezone

    from facho.snmp_jobs.models import WorkflowNode

    WorkflowNode.objects.update(next_run_at=None)
    WorkflowNode.objects.filter(job__slug=slug, is_chain_node=False).update(next_run_at=timezone.now())


def _assert_stored(slug: str) -> None:
    from facho.executions.models import Execution
    from facho.onus.models import Onu
    from facho.polling.domain.execution_state import ExecutionState

    last = Execution.objects.filter(node__job__slug=slug).latest("id")
    if last.status != ExecutionState.SUCCESS or Onu.objects.count() != ONUS:
        raise RuntimeError(f"{slug} ended {last.status} with {Onu.objects.count()} ONUs: {last.error}")


def main() -> int:
    """Trace each job, print what ran; 1 when it was more than the aim. With a file's name, write the figures there."""
    with private_database(), running_fleet(olts=1, onus=ONUS, latency_ms=0.0) as fleet:
        traced = asyncio.run(trace_jobs(fleet.ports[0]))
    for slug, trace in traced.items():
        print(f"{slug}: {len(trace.files)} files, {len(trace.functions)} functions, in the order of their first calls")
        for path, function in trace.functions:
            print(f"  {path:45} {function}")
    print("\n".join(f"{slug}: {len(trace.files)} files (at most {MAX_FILES})" for slug, trace in traced.items()))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps({slug: list(trace.functions) for slug, trace in traced.items()}))
    return int(any(len(trace.files) > MAX_FILES for trace in traced.values()))


if __name__ == "__main__":
    sys.exit(main())
