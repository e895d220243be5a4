"""Where the set-up of an OLT stands, as its rows tell."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Exists, OuterRef
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.dashboard.paused import load_paused
from facho.executions.models import Execution, Origin
from facho.hosts.inventory import stored_olts
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.polling.domain.probe_finding import Finding
from facho.polling.vendors.definition import Definition, Refusal
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.recognition import GENERIC_KEY, recognise
from facho.snmp_get.diagnosis import cause_of_kind
from facho.snmp_get.diagnosis_words import Diagnosis, diagnose, place_of
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import load_is_polling


class Step(StrEnum):
    """The steps in their order."""

    ADD = "add"
    TEST = "test"
    KNOW = "know"
    JOBS = "jobs"
    DATA = "data"


# The steps with their words for people.
STEPS: list[tuple[Step, Promise]] = [
    (Step.ADD, _("Add the OLT")),
    (Step.TEST, _("Test SNMP")),
    (Step.KNOW, _("Know the model")),
    (Step.JOBS, _("Choose jobs")),
    (Step.DATA, _("First data")),
]


_NODES = WorkflowNode.objects.filter(workflow__olt_id=OuterRef("pk"))


class Testing(StrEnum):
    """Whether somebody asks the OLT right now."""

    WAITS = "waits"
    ASKS = "asks"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Test:
    """The test of SNMP: what goes on, and what the last one that failed found out."""

    state: Testing
    diagnosis: Diagnosis | None
    error: str
    tested_at: datetime | None
    next_at: datetime | None
    round_trip_ms: int
    is_polling: bool
    paused_until: datetime | None


@dataclass(frozen=True, slots=True)
class Setup:
    """An OLT on its way to its first data."""

    olt: Olt
    step: Step
    test: Test

    @property
    def definition(self) -> Definition | None:
        """The family that it is read as."""
        return load_definitions().get(self.olt.vendor)

    @property
    def verdict(self) -> Definition | Refusal | None:
        """What the vendor definitions make of what it says."""
        return recognise(self.olt.sys_object_id, self.olt.sys_descr)

    @property
    def refusal(self) -> str:
        """Why it should not be polled, for a device that only looks like an OLT."""
        return gettext(self.verdict.sentence) if isinstance(self.verdict, Refusal) else ""

    @property
    def is_stranger(self) -> bool:
        """Tell whether it answers and no family knows it."""
        return not isinstance(self.verdict, Definition) or self.verdict.key == GENERIC_KEY


def load_setup(olt_id: int, scope: OltScope, now: datetime) -> Setup | None:
    """Load how far an OLT has come; None when it is not there to be seen."""
    olts = stored_olts().annotate(has_nodes=Exists(_NODES)).select_related("model__brand")
    olt = scope.narrow(olts, olt="").filter(id=olt_id).first()
    if olt is None:
        return None
    probes = Execution.objects.filter(olt_id=olt_id, origin=Origin.PROBE, address=olt.address, port=olt.port)
    last = probes.order_by("-created_at").first()
    return Setup(olt, _step(olt, last), _test(olt, last, now))


def load_unfinished(scope: OltScope, count: int) -> list[Olt]:
    """Load OLTs that are enabled and have nothing to do: nobody chose jobs for them yet; one query."""
    idle = scope.narrow(Olt.objects.filter(~Exists(_NODES), enabled=True), olt="")
    return list(idle.only("name").order_by("name")[:count])


def _step(olt: Olt, last: Execution | None) -> Step:
    if getattr(olt, "has_nodes", False):
        return Step.DATA
    has_answered = olt.sys_object_id or (last is not None and last.status == ExecutionState.SUCCESS)
    if not has_answered:
        return Step.TEST
    return Step.KNOW if olt.vendor in ("", GENERIC_KEY) else Step.JOBS


def _test(olt: Olt, last: Execution | None, now: datetime) -> Test:
    result = (last.result or {}) if last else {}
    failed = last if last and last.status in (ExecutionState.FAILED, ExecutionState.INTERRUPTED) else None
    # What was found out before the last correction is about what is no longer there.
    if failed is not None and failed.created_at < olt.updated_at:
        failed = None
    return Test(
        state=_testing(olt, last, failed, now),
        diagnosis=_diagnosis(olt, failed, result) if failed else None,
        error=failed.error if failed else "",
        tested_at=failed.finished_at if failed else None,
        next_at=olt.next_probe_at if olt.next_probe_at and olt.next_probe_at > now else None,
        round_trip_ms=int(result.get("round_trip_ms", 0)),
        is_polling=load_is_polling(now),
        paused_until=load_paused(now).until(olt.pk),
    )


def _testing(olt: Olt, last: Execution | None, failed: Execution | None, now: datetime) -> Testing:
    if last is not None and last.status in ACTIVE:
        return Testing.ASKS
    is_wanted = olt.next_probe_at is None or olt.next_probe_at <= now
    return Testing.WAITS if is_wanted or failed is None else Testing.OVER


def _diagnosis(olt: Olt, failed: Execution, result: dict[str, object]) -> Diagnosis:
    told = str(result.get("finding", ""))
    finding = Finding(told) if told in list(Finding) else cause_of_kind(failed.failure_kind)
    return diagnose(finding, place_of(olt, asked_from=str(result.get("asked_from", ""))))
