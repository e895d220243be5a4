"""Which step the set-up of an OLT has reached, derived from its rows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Exists, OuterRef, TextChoices
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.dashboard.shared.olt_rows import load_paused
from facho.executions.models import Execution, Origin
from facho.hosts.inventory import stored_olts
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ACTIVE, ExecutionState, ProbeFinding
from facho.polling.vendors.definition import Definition, Refusal
from facho.polling.vendors.loader import GENERIC_KEY, load_definitions, recognise
from facho.snmp_get.diagnosis import Diagnosis, cause_of_kind, diagnose, place_of
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import load_is_polling

_NODES = WorkflowNode.objects.filter(workflow__olt_id=OuterRef("pk"))


class SetupStep(TextChoices):
    ADD = "add", _("Add the OLT")
    TEST = "test", _("Test SNMP")
    KNOW = "know", _("Recognise the model")
    JOBS = "jobs", _("Choose jobs")
    DATA = "data", _("First data")


class Testing(StrEnum):
    WAITS = "waits"
    ASKS = "asks"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Test:
    """State of the SNMP test, with the result of the last failed one."""

    state: Testing
    diagnosis: Diagnosis | None
    # What the view of an OLT hides that answered.
    warning: Diagnosis | None
    error: str
    tested_at: datetime | None
    next_at: datetime | None
    round_trip_ms: int
    is_polling: bool
    paused_until: datetime | None


@dataclass(frozen=True, slots=True)
class Setup:
    olt: Olt
    step: SetupStep
    test: Test

    @property
    def definition(self) -> Definition | None:
        return load_definitions().get(self.olt.vendor)

    @property
    def verdict(self) -> Definition | Refusal | None:
        return recognise(self.olt.sys_object_id, self.olt.sys_descr)

    @property
    def refusal(self) -> str:
        """Why it should not be polled: a device that only looks like an OLT."""
        return gettext(self.verdict.sentence) if isinstance(self.verdict, Refusal) else ""

    @property
    def is_stranger(self) -> bool:
        """Whether it answers but matches no vendor definition."""
        return not isinstance(self.verdict, Definition) or self.verdict.key == GENERIC_KEY


def load_setup(olt_id: int, scope: OltScope, now: datetime) -> Setup | None:
    """Load the setup progress of an OLT; None if it is missing or out of scope."""
    olts = stored_olts().annotate(has_nodes=Exists(_NODES)).select_related("model__brand")
    olt = scope.narrow(olts, olt="").filter(id=olt_id).first()
    if olt is None:
        return None
    probes = Execution.objects.filter(olt_id=olt_id, origin=Origin.PROBE, address=olt.address, port=olt.port)
    last = probes.order_by("-created_at").first()
    return Setup(olt, _step(olt, last), _test(olt, last, now))


def load_unfinished(scope: OltScope, count: int) -> list[Olt]:
    """Load enabled OLTs without any node, i.e. whose setup was not finished; one query."""
    idle = scope.narrow(Olt.objects.filter(~Exists(_NODES), enabled=True), olt="")
    return list(idle.only("name").order_by("name")[:count])


def _step(olt: Olt, last: Execution | None) -> SetupStep:
    if getattr(olt, "has_nodes", False):
        return SetupStep.DATA
    has_answered = olt.sys_object_id or (last is not None and last.status == ExecutionState.SUCCESS)
    if not has_answered:
        return SetupStep.TEST
    return SetupStep.KNOW if olt.vendor in ("", GENERIC_KEY) else SetupStep.JOBS


def _test(olt: Olt, last: Execution | None, now: datetime) -> Test:
    result = (last.result or {}) if last else {}
    failed = last if last and last.status in (ExecutionState.FAILED, ExecutionState.INTERRUPTED) else None
    # What was found out before the last correction is about what is no longer there.
    if failed is not None and failed.created_at < olt.updated_at:
        failed = None
    has_passed = last is not None and last.status == ExecutionState.SUCCESS
    is_wanted = olt.next_probe_at is None or olt.next_probe_at <= now
    state = Testing.WAITS if is_wanted or failed is None else Testing.OVER
    return Test(
        state=Testing.ASKS if last is not None and last.status in ACTIVE else state,
        diagnosis=_diagnosis(olt, failed, result) if failed else None,
        warning=_diagnosis(olt, last, result) if last and has_passed and result.get("finding") else None,
        error=failed.error if failed else "",
        tested_at=failed.finished_at if failed else None,
        next_at=olt.next_probe_at if olt.next_probe_at and olt.next_probe_at > now else None,
        round_trip_ms=int(result.get("round_trip_ms", 0)),
        is_polling=load_is_polling(now),
        paused_until=load_paused(now).until(olt.pk),
    )


def _diagnosis(olt: Olt, probe: Execution, result: dict[str, object]) -> Diagnosis:
    stored = str(result.get("finding", ""))
    finding = ProbeFinding(stored) if stored in list(ProbeFinding) else cause_of_kind(probe.failure_kind)
    return diagnose(finding, place_of(olt, asked_from=str(result.get("asked_from", ""))))
