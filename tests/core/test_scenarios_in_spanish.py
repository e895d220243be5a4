"""The specification's scenarios as its authors read them: the log, the admin and the API, in Spanish."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from api.rows import make_user
from facho.accounts.roles import Role
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import CoordinatorLog, QuotaViolation
from facho.executions.models import Execution
from facho.executions.store import take
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.planning import Assignment
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.zabbix_pollers.store import claim_assignments, save_poller_count
from factories import NOW, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
PAGES = {
    "quotatracker": "Rastreadores de Cuotas",
    "quotaviolation": "Violaciones de Cuota",
    "coordinatorlog": "Logs del Coordinador",
    "executionplan": "Planes de Ejecución",
}


class Scene:
    """OLT-CENTRAL-01 with a discovery and a read, its coordinator, and a person who reads Spanish."""

    def __init__(self) -> None:
        self.olt = make_olt()
        Olt.objects.filter(pk=self.olt.pk).update(name="OLT-CENTRAL-01", sys_object_id="1.3.6.1.4.1.2011.2.248")
        self.discovery = self._node("Discovery", QueryType.DISCOVERY, "discovery")
        self.read = self._node("GET Descripción", QueryType.GET, "descripcion")
        self.coordinator = ExecutionCoordinator()
        self.person = Client(headers={"accept-language": "es"})
        self.person.force_login(make_user(Role.ADMIN))
        save_poller_count(4)

    def _node(self, name: str, query_type: QueryType, slug: str) -> WorkflowNode:
        job = make_job(query_type=query_type)
        SnmpJob.objects.filter(pk=job.pk).update(name=name, slug=slug)
        return make_node(self.olt, SnmpJob.objects.get(pk=job.pk), interval_seconds=900)

    def start_first(self, now: datetime) -> Execution:
        """Claim what goes first among the due nodes of an OLT."""
        first = max(load_due_nodes(now), key=lambda node: node.rank)
        [claimed] = claim_assignments([Assignment(first, 0)], owner="engine/x", now=now)
        return Execution.objects.get(id=claimed.execution_id)

    def run_first(self, now: datetime) -> Execution:
        """Claim it, and let a runner take it at once."""
        run = self.start_first(now)
        assert take(run.pk, run.token, owner="engine/x", now=now)
        return run

    def end(self, execution: Execution, state: str, at: datetime, **more: str) -> None:
        Execution.objects.filter(pk=execution.pk).update(status=state, finished_at=at, duration_ms=4000, **more)

    def log(self, **narrow: str) -> list[tuple[str, str, str]]:
        """Read the log over the API, the oldest first, without the plans."""
        rows: list[dict[str, Any]] = self.person.get("/api/v1/coordinator/logs/", narrow).json()["results"]
        rows.sort(key=lambda row: int(row["id"]))
        return [
            (row["level"], row["event_type"], row["message"])
            for row in rows
            if not row["event_type"].startswith("PLAN")
        ]

    def quotas(self) -> dict[str, str]:
        """Read how the quotas stand, over the API."""
        rows = self.person.get("/api/v1/quotas/").json()["results"]
        return {row["task_type"]: row["status"] for row in rows}

    def page(self, model: str) -> str:
        """Read a list of the admin."""
        return self.person.get(f"/admin/execution_coordinator/{model}/").content.decode()


@pytest.fixture
def scene(settings: Settings) -> Scene:
    settings.LANGUAGE_CODE = "es"
    return Scene()


def test_scenario_1_a_task_that_is_disabled_is_removed_from_the_plan(scene: Scene) -> None:
    """S1-24."""
    scene.coordinator.run_pass(NOW)
    WorkflowNode.objects.filter(pk=scene.discovery.pk).update(next_run_at=NOW + HOUR)
    run = scene.start_first(NOW)
    CoordinatorLog.objects.all().delete()
    WorkflowNode.objects.filter(pk=scene.read.pk).update(enabled=False)

    scene.coordinator.run_pass(NOW + 5 * SECOND)

    *changes, aborted = scene.log()
    assert changes == [
        ("INFO", "CHANGES_DETECTED", "Cambios detectados en OLT-CENTRAL-01"),
        ("WARNING", "TASK_REMOVED", "Tarea 'GET Descripción' removida del plan"),
    ]
    assert aborted[:2] == ("WARNING", "EXECUTION_ABORTED")
    assert aborted[2].startswith("Ejecución de 'GET Descripción' abortada, se perdió su turno de ")
    assert aborted[2].endswith(": su tarea fue deshabilitada")
    removed = CoordinatorLog.objects.get(event_type="TASK_REMOVED")
    assert [each["execution"] for each in removed.details["aborted"]] == [run.pk]
    assert "Tarea &#x27;GET Descripción&#x27; removida del plan" in scene.page("coordinatorlog")
    assert scene.quotas()["get_descripcion"] == "ADJUSTED"


def test_scenario_2_an_hour_that_falls_short_is_a_violation(scene: Scene) -> None:
    """S1-25: a discovery that completed 2 of 4."""
    scene.read.delete()
    WorkflowNode.objects.update(next_run_at=NOW, offset_seconds=0)
    scene.coordinator.run_pass(NOW)
    for number, state in enumerate(["SUCCESS", "FAILED", "SUCCESS", "FAILED"]):
        at = NOW + number * 15 * MINUTE
        scene.end(scene.run_first(at), state, at + 5 * SECOND)
        scene.coordinator.run_pass(at + 10 * SECOND)

    scene.coordinator.run_pass(NOW + HOUR + 5 * SECOND)

    assert QuotaViolation.objects.get().severity == "HIGH"
    [reported] = scene.log(event_type="QUOTA_VIOLATION")
    assert reported[0] == "CRITICAL"
    assert reported[2].startswith("Violación de cuota [HIGH]: Discovery, 2 de 4, hora desde ")
    assert "OLT-CENTRAL-01" in scene.page("quotaviolation")
    [shown] = scene.person.get("/api/v1/violations/").json()["results"]
    assert (shown["olt"], shown["severity"]) == ("OLT-CENTRAL-01", "HIGH")
    assert "<h1>Violaciones de Cuota</h1>" in scene.person.get("/violations/").content.decode()
    assert [line[1] for line in scene.log()].count("EXECUTION_FAILED") == 2


def test_scenario_3_a_disabled_olt_loses_everything_and_the_log_lists_it(scene: Scene) -> None:
    """S1-26."""
    scene.coordinator.run_pass(NOW)
    run = scene.run_first(NOW)
    CoordinatorLog.objects.all().delete()
    Olt.objects.filter(pk=scene.olt.pk).update(enabled=False)

    scene.coordinator.run_pass(NOW + 5 * SECOND)
    scene.end(run, "INTERRUPTED", NOW + 6 * SECOND, error="cancelled", failure_kind="cancelled")
    scene.coordinator.run_pass(NOW + 10 * SECOND)

    *before, aborted = [line[1:] for line in scene.log()]
    assert before == [
        ("CHANGES_DETECTED", "Cambios detectados en OLT-CENTRAL-01"),
        ("OLT_DISABLED", "La OLT fue deshabilitada, ejecuciones abortadas: Discovery"),
        ("EXECUTION_STARTED", "Ejecución de 'Discovery' iniciada"),
    ]
    assert aborted[0] == "EXECUTION_ABORTED"
    assert aborted[1].endswith(": cancelado")
    disabled = CoordinatorLog.objects.get(event_type="OLT_DISABLED")
    assert [(each["execution"], each["status"]) for each in disabled.details["aborted"]] == [(run.pk, "RUNNING")]
    assert set(scene.quotas().values()) == {"INTERRUPTED"}
    assert "La OLT fue deshabilitada, ejecuciones abortadas: Discovery" in scene.page("coordinatorlog")
    assert scene.page("quotatracker").count(">interrumpida</span>") == len(scene.quotas())


def test_the_flow_of_an_enabled_task_reads_as_the_diagram_has_it(scene: Scene) -> None:
    """S4: the discovery before the read, the read at once after it, each start and end in the log, and on they go."""
    begins = NOW + MINUTE
    WorkflowNode.objects.update(next_run_at=begins)
    scene.coordinator.run_pass(NOW)
    assert scene.log()[0] == ("INFO", "CHANGES_DETECTED", "Cambios detectados en OLT-CENTRAL-01")
    CoordinatorLog.objects.all().delete()

    discovery = scene.run_first(begins)
    scene.coordinator.run_pass(begins + SECOND)
    scene.end(discovery, "SUCCESS", begins + 4 * SECOND)
    read = scene.run_first(begins + 4 * SECOND)
    scene.end(read, "SUCCESS", begins + 8 * SECOND)
    scene.coordinator.run_pass(begins + 10 * SECOND)

    assert [line[1:] for line in scene.log()] == [
        ("EXECUTION_STARTED", "Ejecución de 'Discovery' iniciada"),
        ("EXECUTION_COMPLETED", "Ejecución de 'Discovery' completada"),
        ("EXECUTION_STARTED", "Ejecución de 'GET Descripción' iniciada"),
        ("EXECUTION_COMPLETED", "Ejecución de 'GET Descripción' completada"),
    ]
    assert "Ejecución de &#x27;GET Descripción&#x27; completada" in scene.page("coordinatorlog")
    runs = scene.person.get("/api/v1/executions/").json()["results"]
    assert [(row["task_type"], row["chain_position"]) for row in runs] == [("get_descripcion", 0), ("discovery", 0)]
    assert WorkflowNode.objects.filter(next_run_at__gt=begins + 10 * SECOND).count() == 2


def test_the_sections_of_the_admin_have_the_document_s_names(scene: Scene) -> None:
    """S1-20."""
    index = scene.person.get("/admin/").content.decode()

    assert [name for name in PAGES.values() if name not in index] == []
    assert [name for model, name in PAGES.items() if name not in scene.page(model)] == []
    assert "ncumplimiento" not in index
