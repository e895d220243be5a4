"""Real processes on one database: each can tell what all others do, and the next one carries on when one is killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from api.rows import make_user
from crash.engine_process import wait_until
from facho.accounts.roles import Role
from facho.executions.models import Execution
from facho.polling.domain.execution_state import QueryType
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from factories import chain_to, make_job, make_node, make_olt
from servers.child import end_with_parent

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TESTS = Path(__file__).resolve().parents[1]


@contextmanager
def engine(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start an engine on the database of this test; killed if it still lives, since it knows no other end."""
    name, url = connection.settings_dict["NAME"], os.environ.get("DATABASE_URL")
    own = {
        "DATABASE_URL": urlsplit(url)._replace(path=f"/{name}").geturl() if url else f"sqlite:///{name}",
        "FACHO_LEASE_SECONDS": "2",
        "FACHO_PACKET_TIMEOUT_SECONDS": "0.5",
        "FACHO_POLLERS": "3",
        "PYTHONPATH": str(TESTS),
    }
    command = [sys.executable, "-m", "race.state_process", *words]
    with subprocess.Popen(
        command, env={**os.environ, **own}, stdin=subprocess.PIPE, preexec_fn=end_with_parent
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def begin(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.flush()


def reported(client: Client) -> dict[str, Any]:
    """Return what this process, which never ran anything, tells of everything that runs or waits."""
    paths = ("pollers", "pollers/queue", "coordinator/state")
    pollers, queue, states = (client.get(f"/api/v1/{path}/").json() for path in paths)
    busy = [poller for poller in pollers["pollers"] if poller["status"] == "BUSY"]
    active = [state["active_execution"] for state in states["results"]]
    return {
        "pollers": [(poller["olt_id"], poller["execution_ids"]) for poller in busy],
        "queue": [(node["id"], node["reason"]) for node in queue["next_nodes"]],
        "retries": [(retry["node_id"], retry["execution_id"]) for retry in queue["retries"]],
        "owners": {run["execution_id"]: int(run["owner"].split("/")[-2]) for run in active if run},
    }


def test_every_process_can_answer_and_any_can_die() -> None:
    """D6: a chain under way, a queue, a retry and a wish survive the process that knew of them."""
    client = Client()
    client.force_login(make_user(Role.OPERATOR))
    now, olt, deaf = timezone.now(), make_olt(), make_olt()
    master = make_node(olt, make_job(query_type=QueryType.DISCOVERY), next_run_at=now, interval_seconds=3_600)
    member = chain_to(master)
    queued = make_node(olt, make_job(query_type=QueryType.TABLE), next_run_at=now, interval_seconds=3_600)
    failing = make_node(deaf, make_job(query_type=QueryType.WALK), next_run_at=now, interval_seconds=3_600)
    # Nobody's next slot comes before the retry, whatever the time of day.
    WorkflowNode.objects.update(offset_seconds=int(now.timestamp()) % 3_600)
    SnmpJob.objects.update(retry_delay_seconds=1_800)
    runs = Execution.objects.order_by("id")

    with engine() as victim, engine("well") as successor:
        begin(victim)
        assert wait_until(lambda: runs.filter(node=member, status="RUNNING").exists())
        assert wait_until(lambda: runs.filter(node=failing, status="WAITING").exists())
        while_it_lived = reported(client)
        victim.kill()
        victim.wait()
        afterwards = reported(client)
        client.post(f"/api/v1/pollers/nodes/{failing.id}/run/")
        begin(successor)
        assert wait_until(lambda: runs.filter(finished_at__isnull=False).count() == 4)

    ids = {run.node_id: run.id for run in runs.all()}
    assert while_it_lived == {
        "pollers": [(olt.id, [ids[master.id], ids[member.id]])],
        "queue": [(queued.id, "olt_busy")],
        "retries": [(failing.id, ids[failing.id])],
        "owners": {ids[member.id]: victim.pid},
    }
    assert afterwards == while_it_lived
    assert {run.node_id: (run.status, run.attempt) for run in runs.all()} == {
        master.id: ("SUCCESS", 1),
        member.id: ("INTERRUPTED", 1),
        queued.id: ("SUCCESS", 1),
        failing.id: ("SUCCESS", 2),
    }
