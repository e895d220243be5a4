"""What people do to an OLT on its page: run a job now, pause, end the pause, return a node to its schedule."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from facho.accounts.audit import Action, record
from facho.dashboard.olt_page import PARTS, find_olt, load_part
from facho.dashboard.parts import for_users, is_part, must_operate
from facho.hosts.models import Olt
from facho.hosts.pauses import active_pauses, end_pause, pause
from facho.snmp_jobs.asked import resume
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import IsChainNode
from facho.zabbix_pollers.run_now import describe_asked, leave_wish

# As the button says.
PAUSE_MINUTES = 30


@require_POST
@for_users
def olt_run(request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
    """Ask for a run of a master and its chain as soon as the OLT is free."""
    olt = _operated(request, olt_id)
    node = _node(olt, node_id)
    try:
        said = describe_asked(leave_wish(request.user, node.id, now=timezone.now()))
    except IsChainNode:
        said = _("Nodes of a chain run with their master.")
    return _answer(request, olt, "work", f"{node.job.name}: {said}")


@require_POST
@for_users
def olt_resume(request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
    """Return a suspended node to its schedule."""
    olt = _operated(request, olt_id)
    node = _node(olt, node_id)
    is_resumed = resume(request.user, node, now=timezone.now())
    said = _("It goes on at its next slot.") if is_resumed else _("This node is not suspended.")
    return _answer(request, olt, "work", f"{node.job.name}: {said}", is_button_gone=True)


@require_POST
@for_users
def olt_pause(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Begin a pause of the OLT, unless one of its own holds: a second click makes no second pause."""
    olt, now = _operated(request, olt_id), timezone.now()
    if active_pauses(now).filter(olt=olt).exists():
        said = _("This OLT is paused already.")
    else:
        with transaction.atomic():
            made = pause(olt, minutes=PAUSE_MINUTES, note="", now=now)
            record(request.user, made, Action.ADDED)
        said = _("Paused: nothing new starts, what runs is finished.")
    return _answer(request, olt, "state", said, is_button_gone=True)


@require_POST
@for_users
def olt_pause_end(request: HttpRequest, olt_id: int) -> HttpResponse:
    """End the pauses of the OLT itself; one of everything goes on."""
    olt, now = _operated(request, olt_id), timezone.now()
    held = active_pauses(now).filter(olt=olt).select_related("olt").only("starts_at", "ends_at", "olt__name")
    with transaction.atomic():
        for each in held:
            record(request.user, each, Action.CHANGED, gettext_lazy("ended"))
            end_pause(each.id, now=now)
    said = _("The pause has ended.") if held else _("This pause is over.")
    return _answer(request, olt, "state", said, is_button_gone=True)


def _operated(request: HttpRequest, olt_id: int) -> Olt:
    must_operate(request)
    return find_olt(request, olt_id)


def _node(olt: Olt, node_id: int) -> WorkflowNode:
    nodes = WorkflowNode.objects.select_related("job", "workflow__olt").only("job__name", "workflow__olt__name")
    node = nodes.filter(id=node_id, workflow__olt=olt).first()
    if node is None:
        raise Http404
    return node


def _answer(request: HttpRequest, olt: Olt, name: str, said: str, **context: Any) -> HttpResponse:
    """Show the part as it is now and say what was done; without scripts on the whole page."""
    if not is_part(request):
        messages.info(request, said)
        return redirect("olt", olt.id)
    part = PARTS[name]
    shown = {**load_part(request, olt, part), "part": part, "said": said, **context}
    return render(request, "dashboard/olt_done.html", shown)
