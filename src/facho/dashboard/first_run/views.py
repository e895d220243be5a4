"""The pages of the guided steps. Only an administrator adds OLTs; packets leave from the engine, never from here."""

from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.alerts.store import load_is_no_one_notified
from facho.dashboard.first_run.first_data import load_first_data, start_jobs
from facho.dashboard.first_run.jobs_form import JobsForm
from facho.dashboard.first_run.olt_form import OltDetails
from facho.dashboard.first_run.progress import STEPS, Setup, SetupStep, load_setup
from facho.dashboard.shared.page import for_admins
from facho.hosts.inventory import InventoryError, Saved, add_olt, import_olts
from facho.hosts.models import Olt
from facho.hosts.store import ask_for_probe
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import Workflow

SECRETS = ("community", "v3_auth_key", "v3_priv_key")
# After a correction the agent must identify itself again.
_FORGOTTEN: dict[str, Any] = {"sys_object_id": "", "sys_name": "", "sys_descr": "", "model": None}


@sensitive_post_parameters(*SECRETS)
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def add(request: HttpRequest) -> HttpResponse:
    """Add an OLT and test it at once; nothing else is polled until jobs are chosen."""
    form = OltDetails(request.POST or None, scope=scope_of(request.user))
    if form.is_valid() and (olt := _save_new(request, form)) is not None:
        return redirect("olt-setup", olt.pk)
    return render(request, "first_run/add.html", {"form": form, "shown": SetupStep.ADD, "steps": STEPS})


@require_safe
@for_admins
def setup(request: HttpRequest, olt_id: int) -> HttpResponse:
    found = _find(request, olt_id)
    return render(request, "first_run/first_run.html", _context(request, found))


@require_safe
@for_admins
def setup_step(request: HttpRequest, olt_id: int) -> HttpResponse:
    return render(request, "first_run/step.html", _context(request, _find(request, olt_id)))


@sensitive_post_parameters(*SECRETS)
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def correct(request: HttpRequest, olt_id: int) -> HttpResponse:
    found = _find(request, olt_id)
    if found.step is SetupStep.DATA:
        return redirect("olt-setup", olt_id)
    form = OltDetails(request.POST or None, scope=scope_of(request.user), olt=found.olt)
    if form.is_valid() and _save_correction(request, found.olt, form):
        return redirect("olt-setup", olt_id)
    context = {"form": form, "shown": SetupStep.ADD, "steps": STEPS, "olt": found.olt}
    return render(request, "first_run/add.html", context)


@require_POST
@for_admins
def test_again(request: HttpRequest, olt_id: int) -> HttpResponse:
    found = _find(request, olt_id)
    if found.step is not SetupStep.DATA:
        ask_for_probe(found.olt.pk, timezone.now())
    return redirect("olt-setup", olt_id)


@require_POST
@for_admins
@transaction.atomic
def choose_vendor(request: HttpRequest, olt_id: int) -> HttpResponse:
    found, key = _find(request, olt_id), request.POST.get("vendor", "")
    if found.step is SetupStep.DATA or key not in load_definitions():
        return redirect("olt-setup", olt_id)
    Olt.objects.filter(id=olt_id).update(vendor=key)
    record(request.user, found.olt, Action.CHANGED, _("Vendor definition chosen by hand: %(key)s") % {"key": key})
    return redirect(f"{reverse('olt-setup', args=[olt_id])}?step={SetupStep.JOBS}")


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def choose_jobs(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Show the cost of a choice of jobs, or start polling with it."""
    found = _find(request, olt_id)
    if found.definition is None or found.step in (SetupStep.TEST, SetupStep.DATA):
        return redirect("olt-setup", olt_id)
    if request.method != "POST":
        return render(request, "first_run/_bill.html", _jobs_context(request, found, found.definition))
    form = JobsForm(request.POST, definition=found.definition)
    if not form.is_valid():
        context = {**_context(request, found), **_bill_context(form, found), "shown": SetupStep.JOBS}
        return render(request, "first_run/first_run.html", context)
    with transaction.atomic():
        added = start_jobs(found.olt, form.definition, form.intervals(), now=timezone.now())
        record(request.user, found.olt, Action.CHANGED, _("Jobs chosen by the guided steps: %(n)s") % {"n": added})
    return redirect("olt-setup", olt_id)


def _save_new(request: HttpRequest, form: OltDetails) -> Olt | None:
    try:
        return add_olt(form.as_entry(), after_save=lambda saved: _leave_choice(request, saved))
    except InventoryError as error:
        form.refuse(error)
    return None


def _leave_choice(request: HttpRequest, olt: Olt) -> None:
    # With a workflow of its own, even an empty one, it gets no jobs by itself when it is recognised.
    Workflow.objects.get_or_create(olt=olt)
    ask_for_probe(olt.pk, timezone.now())
    record(request.user, olt, Action.ADDED, _("Added by the guided steps."))


def _save_correction(request: HttpRequest, olt: Olt, form: OltDetails) -> bool:
    def finish(saved: Saved) -> None:
        if saved.added:  # it was deleted or renamed since it was found
            raise Http404
        Olt.objects.filter(id=olt.pk).update(**_FORGOTTEN)
        ask_for_probe(olt.pk, timezone.now())
        words = [_("Corrected by the guided steps."), saved.audit_words]
        record(request.user, olt, Action.CHANGED, " · ".join(filter(None, words)))

    try:
        import_olts([form.as_entry()], finish=finish)
    except InventoryError as error:
        form.refuse(error)
        return False
    return True


def _find(request: HttpRequest, olt_id: int) -> Setup:
    found = load_setup(olt_id, scope_of(request.user), timezone.now())
    if found is None:
        raise Http404
    return found


def _context(request: HttpRequest, found: Setup) -> dict[str, Any]:
    now, shown = timezone.now(), _shown(request, found)
    context: dict[str, Any] = {"now": now, "setup": found, "olt": found.olt, "shown": shown, "steps": STEPS}
    if shown is SetupStep.JOBS and found.definition is not None:
        context |= _jobs_context(request, found, found.definition)
    if shown is SetupStep.KNOW:
        context["families"] = [each for each in load_definitions().values() if each.key != found.olt.vendor]
    if shown is SetupStep.DATA:
        context |= {"data": load_first_data(found.olt.pk, now), "is_no_one_notified": load_is_no_one_notified()}
    return context


def _shown(request: HttpRequest, found: Setup) -> SetupStep:
    """Choose the step to show: an earlier one on request, or past a step with nothing to fill in."""
    wished = request.GET.get("step", "")
    if wished == SetupStep.KNOW and found.step is SetupStep.JOBS:
        return SetupStep.KNOW
    if wished == SetupStep.JOBS and found.step is SetupStep.KNOW and found.definition is not None:
        return SetupStep.JOBS
    return found.step


def _jobs_context(request: HttpRequest, found: Setup, definition: Definition) -> dict[str, Any]:
    form = JobsForm(request.GET if "onus" in request.GET else None, definition=definition)
    form.is_valid()
    return _bill_context(form, found)


def _bill_context(form: JobsForm, found: Setup) -> dict[str, Any]:
    bill = form.bill(found.olt.name, round_trip_seconds=found.test.round_trip_ms / 1000)
    return {"form": form, "bill": bill, "olt": found.olt, "setup": found}
