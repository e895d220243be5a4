"""Which OLTs are probed, and what follows a probe: a newly recognised OLT gets its ready-made jobs, nodes return."""

from datetime import datetime

from django.conf import settings
from django.db.models import Q

from facho.hosts.models import Olt
from facho.hosts.pauses import is_paused
from facho.hosts.store import load_due_probes, schedule_probe
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import recognise
from facho.snmp_jobs.models import Workflow, WorkflowNode
from facho.snmp_jobs.ready_made import apply_ready_made_jobs
from facho.zabbix_pollers.store import after_probe


def load_unidentified(now: datetime) -> list[int]:
    """Return the enabled OLTs that never said who they are and are not paused, also where the vendor was named.

    One that did not answer is asked less and less, like any other that is silent. One that was refused is asked again
    when a definition has come that knows it.
    """
    asked = Olt.objects.filter(~is_paused("id", now), enabled=True, next_probe_at=None)
    rows = asked.filter(Q(sys_object_id="") | Q(vendor="")).values_list("id", "sys_object_id", "sys_descr")
    return [
        olt_id
        for olt_id, object_id, descr in rows
        if not object_id or isinstance(recognise(object_id, descr), Definition)
    ]


def load_asked_for(now: datetime) -> list[int]:
    """Return the OLTs due for a probe; where suspended nodes wait for a person, OLTs that have some are left alone."""
    due = load_due_probes(now)
    if settings.FACHO_SUSPENDED_RETURN == "probe":
        return due
    suspended = WorkflowNode.objects.filter(suspended_at__isnull=False, workflow__olt_id__in=due)
    waiting = set(suspended.values_list("workflow__olt_id", flat=True))
    return [olt_id for olt_id in due if olt_id not in waiting]


def follow_probe(olt_id: int, *, answered: bool, now: datetime) -> None:
    """Do what follows any probe: first jobs, nodes that return, or the next probe."""
    apply_first_jobs(olt_id, now=now)
    if not answered and Olt.objects.filter(id=olt_id, sys_object_id="").exists():
        schedule_probe(olt_id, now)
    else:
        after_probe(olt_id, answered=answered, now=now)


def apply_first_jobs(olt_id: int, *, now: datetime) -> None:
    """Leave an OLT alone that has a workflow: its jobs, or their absence, are the operator's choice."""
    olt = Olt.objects.filter(id=olt_id).exclude(vendor="").first()
    if olt is not None and not Workflow.objects.filter(olt=olt).exists():
        apply_ready_made_jobs(olt, now=now)
