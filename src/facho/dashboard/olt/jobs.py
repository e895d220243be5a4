"""One job on one OLT: whether and how often it runs, its hours and attempts, and the cost of a change before saving.

Interval and switch belong to the OLT. Hours and attempts belong to the job, which other OLTs may share: "only this OLT"
gives it a copy of the job.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from facho.accounts.audit import Action, changed_words, record
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.dashboard.olt.views import find_olt
from facho.dashboard.shared.page import for_operators
from facho.execution_coordinator.feasibility import NodeWish, load_feasibility, words_of
from facho.hosts.models import Olt
from facho.polling.domain.feasibility import MINUTES_PER_HOUR
from facho.snmp_jobs.application import ready_name
from facho.snmp_jobs.job_form import IntervalField, JobRefused, give_own_job, save_job
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.safety import check_change
from facho.snmp_jobs.store import NodeChange, change_nodes

ONLY_THIS, ALL = "this", "all"
OF_JOB = ("hours_from", "hours_to", "max_attempts", "retry_delay_seconds")
# On more OLTs the preview counts without judging each.
MOST_JUDGED = 200
SECONDS_PER_HOUR = 3_600


class NodeJobForm(forms.Form):
    """What can be changed of a job on an OLT; fields that do not apply are left out."""

    enabled = forms.BooleanField(label=gettext_lazy("Runs on this OLT"), required=False)
    interval_seconds = IntervalField(label=gettext_lazy("Every"))
    hours_from = forms.TimeField(
        label=gettext_lazy("May run from"), required=False, widget=forms.TimeInput({"type": "time"}, format="%H:%M")
    )
    hours_to = forms.TimeField(
        label=gettext_lazy("May run until"),
        required=False,
        widget=forms.TimeInput({"type": "time"}, format="%H:%M"),
        help_text=gettext_lazy("In the installation's time zone. Both empty: at any time."),
    )
    max_attempts = forms.IntegerField(
        label=gettext_lazy("Attempts"),
        min_value=1,
        max_value=20,
        validators=[MinValueValidator(1)],
        help_text=gettext_lazy(
            "After this many failures in a row, the job is suspended until the OLT answers a probe."
        ),
    )
    retry_delay_seconds = IntervalField(label=gettext_lazy("Wait between attempts"))
    reach = forms.ChoiceField(label=gettext_lazy("Applies to"), widget=forms.RadioSelect, initial=ONLY_THIS)

    def __init__(self, data: Any, node: WorkflowNode, *, may_change_job: bool, others: int) -> None:
        job = node.job
        stored = {"enabled": node.enabled, "interval_seconds": node.interval_seconds, "reach": ONLY_THIS}
        stored |= {name: getattr(job, name) for name in OF_JOB}
        super().__init__(data, initial=stored, auto_id="job-%s", label_suffix="")
        self.node = node
        if node.is_chain_node:
            del self.fields["interval_seconds"], self.fields["hours_from"], self.fields["hours_to"]
        if not may_change_job:
            for name in OF_JOB:
                self.fields.pop(name, None)
        if not may_change_job or not others:
            del self.fields["reach"]
        else:
            self.fields["reach"].choices = [  # type: ignore[attr-defined]
                (ONLY_THIS, _("Only this OLT")),
                (ALL, _("All %(n)s OLTs that have this job") % {"n": others + 1}),
            ]

    def clean(self) -> dict[str, Any]:
        """Refuse an interval that would harm the OLT."""
        values = super().clean() or {}
        if not self.errors:
            try:
                check_change(
                    self.node, {name: values[name] for name in ("enabled", "interval_seconds") if name in values}
                )
            except ValidationError as error:
                self.add_error("interval_seconds" if "interval_seconds" in self.fields else "enabled", error)
        return values

    @property
    def is_for_all(self) -> bool:
        """Whether other OLTs are changed too."""
        return bool(self.cleaned_data.get("reach") == ALL)

    @property
    def wish(self) -> NodeWish:
        """The node as it would be; what cannot be read stays as it is."""
        values = getattr(self, "cleaned_data", {})
        interval = values.get("interval_seconds") or self.node.interval_seconds
        return NodeWish(interval, enabled=bool(values.get("enabled", self.node.enabled)))


def load_cost(olt: Olt, form: NodeJobForm) -> dict[str, Any]:
    """Judge what jobs need of each hour now and after a change; a few queries, however many OLTs it reaches."""
    node, wish = form.node, form.wish
    before = load_feasibility([olt.pk]).get(olt.pk)
    after = load_feasibility([olt.pk], {node.pk: wish}).get(olt.pk)
    fits, minutes = after is None or after.judged.fits, after.judged.minutes_per_hour if after else 0.0
    cost = {
        "fits": fits,
        "minutes_before": before.judged.minutes_per_hour if before else 0.0,
        "minutes_after": minutes,
        "percent": 100 * minutes / MINUTES_PER_HOUR,
        "runs_per_hour": SECONDS_PER_HOUR / wish.interval_seconds if wish.enabled else 0.0,
        # Whether every job was measured, here or on OLTs of the same family.
        "is_known": after is None or all(need.seconds is not None for need in after.needs),
        "words": [] if after is None or fits else list(words_of(after)),
    }
    if getattr(form, "cleaned_data", {}).get("reach") != ALL:
        return cost
    others = WorkflowNode.objects.filter(job=node.job, enabled=True).exclude(pk=node.pk).order_by()
    reached = dict(others.values_list("id", "workflow__olt_id")[:MOST_JUDGED])
    wished = {node_id: NodeWish(wish.interval_seconds, enabled=True) for node_id in reached}
    judged = load_feasibility(list(reached.values()), wished) if reached else {}
    # Other OLTs that the change reaches, and those of them that it would give too much work.
    too_much = [found.olt for found in judged.values() if not found.judged.fits]
    return cost | {"others": others.count(), "too_much": too_much}


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def olt_job(request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
    """Show a job of an OLT with what it costs, or save a change of it."""
    olt, node, form = _load(request, olt_id, node_id, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid() and _save(request, node, form):
        return redirect("olt", olt_id)
    return render(request, "olt/job.html", _context(olt, node, form))


@require_safe
@for_operators
def olt_job_cost(request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
    """Answer what a change would cost, while it is typed."""
    olt, node, form = _load(request, olt_id, node_id, request.GET)
    form.is_valid()
    return render(request, "olt/_job_cost.html", _context(olt, node, form))


def _load(request: HttpRequest, olt_id: int, node_id: int, data: Any) -> tuple[Olt, WorkflowNode, NodeJobForm]:
    olt = find_olt(request, olt_id)
    nodes = WorkflowNode.objects.select_related("job", "workflow__olt", "master_node__job")
    node = get_object_or_404(nodes.defer("workflow__olt__community"), id=node_id, workflow__olt=olt)
    # Hours and attempts are of the job, which every OLT may share.
    may_change_job = role_of(request.user) is Role.ADMIN and scope_of(request.user).is_everything
    form = NodeJobForm(data, node, may_change_job=may_change_job, others=_others(node).count())
    return olt, node, form


def _others(node: WorkflowNode) -> QuerySet[WorkflowNode]:
    return WorkflowNode.objects.filter(job_id=node.job_id).exclude(pk=node.pk).order_by()


def _context(olt: Olt, node: WorkflowNode, form: NodeJobForm) -> dict[str, Any]:
    return {
        "olt": olt,
        "node": node,
        "form": form,
        "cost": load_cost(olt, form),
        "others": _others(node).count(),
        "of_job": [form[name] for name in OF_JOB if name in form.fields],
    }


def _save(request: HttpRequest, node: WorkflowNode, form: NodeJobForm) -> bool:
    """Save what differs, of the node and of its job; False if the job refuses it."""
    values, now = form.cleaned_data, timezone.now()
    of_node: dict[str, Any] = {name: values[name] for name in ("enabled", "interval_seconds") if name in values}
    before = {name: getattr(node, name) for name in of_node}
    of_job = {name: values[name] for name in OF_JOB if name in values}
    job_before = {name: getattr(node.job, name) for name in of_job}
    is_job_changed = job_before != of_job
    try:
        with transaction.atomic():
            if form.is_for_all:
                _change_all(request, node, of_job | {"interval_seconds": of_node.get("interval_seconds")})
            elif is_job_changed:
                job = give_own_job(node) if _others(node).exists() else node.job
                _change_job(request, job, job_before, of_job)
            changed = change_nodes(WorkflowNode.objects.filter(pk=node.pk), NodeChange(**of_node), now=now)
            if changed and before != of_node:
                record(request.user, node, Action.CHANGED, changed_words(before, of_node))
    except JobRefused as refused:
        for name, reasons in refused.faults.items():
            form.add_error(name if name in form.fields else None, reasons)
        # The copy that it was given is gone with the transaction.
        node.refresh_from_db(fields=["job"])
        return False
    messages.success(request, _("%(job)s: saved.") % {"job": ready_name(node.job.name)})
    return True


def _change_job(request: HttpRequest, job: SnmpJob, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    save_job(job, after, None, now=timezone.now())
    record(request.user, job, Action.CHANGED, changed_words(before, after))


def _change_all(request: HttpRequest, node: WorkflowNode, values: Mapping[str, Any]) -> None:
    """Change the job and the interval of all its nodes; new OLTs get it so, too."""
    job, wanted = node.job, {name: value for name, value in values.items() if name in OF_JOB or value is not None}
    before = {name: getattr(job, name) for name in wanted}
    _change_job(request, job, before, wanted)
    if "interval_seconds" in wanted:
        nodes = WorkflowNode.objects.filter(job_id=job.pk, is_chain_node=False)
        change_nodes(nodes, NodeChange(interval_seconds=wanted["interval_seconds"]), now=timezone.now())
