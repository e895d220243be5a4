"""Poller groups with real processes: a site's workers carry out its OLTs, and a dead site holds nobody up."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from django.utils import timezone
from pytest_django import Settings

from distributed.simulated_olts import QUICK, add, has_ended, simulated
from facho.executions.models import Execution, ProductProcess
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState
from facho.zabbix_pollers.read_model import load_overview
from servers.cluster import Cluster, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql]

NORTH = "snmp_default.norte,snmp_retry.norte,snmp_highprio.norte"


@pytest.fixture(autouse=True)
def _short_times(settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.5


def doctor(cluster: Cluster) -> tuple[int, dict[str, str]]:
    """Return the status of `facho doctor`, and its verdicts by name."""
    command = [sys.executable, "-m", "facho.core.cli.main", "doctor", "--json"]
    done = subprocess.run(command, env=cluster.environ, capture_output=True, text=True, timeout=60)
    return done.returncode, {finding["name"]: finding["verdict"] for finding in json.loads(done.stdout)}


def test_a_dead_site_waits_for_its_workers_and_takes_no_poller_of_others(cluster: Cluster) -> None:
    """Six OLTs, four of them at a site without workers, which come later; one more of the site is not known yet."""
    cluster.environ |= {"FACHO_POLLERS": "2", "FACHO_POLLER_GROUPS": "norte:2"}
    with simulated(replace(QUICK, olts=7)) as olts:
        *nodes, stranger = add(olts)
        north = [node.workflow.olt_id for node in nodes[:4]]
        Olt.objects.filter(id__in=north).update(poller_group="norte")
        new = Olt.objects.filter(id=stranger.workflow.olt_id)
        stranger.delete()
        new.update(poller_group="norte", vendor="", sys_object_id="")
        cluster.start_worker("plain", slots=2)
        cluster.start_scheduler()
        wait_until(lambda: has_ended(2), "the OLTs of no site")
        site = Execution.objects.filter(poller_group="norte", node__isnull=False)
        wait_until(lambda: site.count() == 2, "claims for the site")

        assert set(site.values_list("status", flat=True)) == {ExecutionState.PENDING}
        overview = load_overview(timezone.now()).global_stats
        assert [(group.group, group.total_pollers, group.busy_pollers) for group in overview.groups] == [
            ("", 2, 0),
            ("norte", 2, 2),
        ]
        status, verdicts = doctor(cluster)
        assert (status, verdicts["workers"], verdicts["workers.norte"]) == (1, "ok", "error")

        cluster.start_worker("north", slots=2, queues=NORTH)
        cluster.start("web", "-m", "facho.core.cli.main", "web", "--bind", "127.0.0.1:0")
        wait_until(
            lambda: Execution.objects.filter(node__isnull=False, status=ExecutionState.SUCCESS).count() == 6, "all"
        )
        wait_until(lambda: new.get().vendor == "huawei_smartax", "what the new one is")
        wait_until(lambda: ProductProcess.objects.count() == 4, "all processes are known")
        owner = ProductProcess.objects.get(groups=["norte"]).owner
        status, verdicts = doctor(cluster)

    assert (status, {verdict for verdict in verdicts.values() if verdict == "error"}) == (0, set()), verdicts
    assert {"workers.norte", "queues.norte", "leader", "versions", "clocks", "redis", "migrations"} <= verdicts.keys()
    runs = Execution.objects.filter(status=ExecutionState.SUCCESS)
    assert set(runs.filter(olt_id__in=[*north, new.get().id]).values_list("owner", flat=True)) == {owner}
    assert not runs.filter(poller_group="", owner=owner).exists()
