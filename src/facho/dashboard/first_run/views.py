"""The pages of the guided steps. Only an administrator adds OLTs; packets leave from the engine, never from here."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from django import forms
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.audit import Action, record
from facho.accounts.scope import OltScope, scope_of, visible_reasons
from facho.alerts.store import load_is_no_one_notified
from facho.dashboard.first_run.progress import Setup, SetupStep, load_setup
from facho.dashboard.olt.views import NodeLine, load_nodes, load_onu_notice
from facho.dashboard.shared.olt_rows import OnuCounts, load_onu_counts
from facho.dashboard.shared.page import for_admins
from facho.dashboard.templatetags.facho_words import length_of_time
from facho.dashboard.traps.views import load_offer
from facho.execution_coordinator import feasibility
from facho.hosts import olt_entry
from facho.hosts.inventory import InventoryError, Saved, add_olt, find_credential_faults, import_olts, stored_secrets
from facho.hosts.models import DEFAULT_SNMP_PORT, Olt, OltData, OltGroup, SnmpVersionChoice
from facho.hosts.olt_form import STAYS_WHEN_EMPTY, SecretInput
from facho.hosts.resolve import resolve_all
from facho.hosts.store import ask_for_probe
from facho.infrastructure.secrets import Secret
from facho.polling.domain.feasibility import NICE_INTERVALS_SECONDS
from facho.polling.vendors.definition import Definition, Job
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.application import apply_ready_made_jobs, ready_name
from facho.snmp_jobs.models import Workflow, WorkflowNode
from facho.snmp_jobs.store import request_run
from facho.zabbix_pollers.activity import load_is_polling
from facho.zabbix_pollers.explain import Situation


class FirstRunStage(StrEnum):
    COMING = "coming"
    NOW = "now"
    DONE = "done"
    FAILED = "failed"


@transaction.atomic
def start_jobs(olt: Olt, definition: Definition, intervals: dict[str, int], *, now: datetime) -> int:
    """Give the OLT the chosen jobs and start the cheap ones at once: the operator is waiting."""
    added = apply_ready_made_jobs(olt, now=now, intervals=intervals)
    cheap = [job.slug for job in definition.jobs if job.chain_of is None and not feasibility.is_live(definition, job)]
    masters = WorkflowNode.objects.filter(workflow__olt=olt, is_chain_node=False, job__slug__in=cheap)
    for node_id in masters.values_list("id", flat=True):
        request_run(node_id, now=now)
    return added


def load_first_data(olt: Olt, now: datetime) -> dict[str, Any]:
    olt_id = olt.pk
    onus, values = (
        load_onu_counts(olt_id=olt_id).get(olt_id, OnuCounts()),
        OltData.objects.filter(olt_id=olt_id).count(),
    )
    measured = feasibility.load_feasibility([olt_id]).get(olt_id)
    return {
        "runs": [{"line": line, "stage": _stage(line)} for line in load_nodes(olt_id, now)],
        "onus": onus,
        "values": values,
        "has_data": bool(onus.total or values),
        "measured": measured,
        # Share of the hour the jobs take, as measured so far.
        "percent": measured.judged.share * 100 if measured else 0.0,
        "is_polling": load_is_polling(now),
        "notice": load_onu_notice(olt_id),
        "traps": load_offer(olt_id, olt.vendor),
    }


def _stage(line: NodeLine) -> FirstRunStage:
    if line.situation is Situation.RUNNING:
        return FirstRunStage.NOW
    if line.node.consecutive_failures or line.situation in (Situation.SUSPENDED, Situation.RETRY):
        return FirstRunStage.FAILED
    return FirstRunStage.DONE if line.node.last_run_at else FirstRunStage.COMING


DEFAULT_ONUS = 500
MAX_ONUS = 20_000
SECONDS_PER_HOUR = 3_600
HOURS_PER_DAY = 24


class JobsForm(forms.Form):
    onus = forms.IntegerField(
        label=gettext_lazy("Approximate number of ONUs"), min_value=1, max_value=MAX_ONUS, initial=DEFAULT_ONUS
    )

    def __init__(self, *args: Any, definition: Definition, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.definition = definition
        for job in definition.jobs:
            self.fields[_ticked(job)] = forms.BooleanField(label=ready_name(job.name), required=False, initial=True)
            if job.chain_of is None:
                self.fields[_every(job)] = forms.TypedChoiceField(
                    label=_("%(job)s: every") % {"job": ready_name(job.name)},
                    choices=_intervals(definition, job),
                    coerce=int,
                    initial=job.interval_seconds,
                )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        for job in self.definition.jobs:
            if job.chain_of and values.get(_ticked(job)) and not values.get(f"job_{job.chain_of}"):
                master = ready_name(self.definition.job(job.chain_of).name)
                self.add_error(
                    _ticked(job), _('It runs right after "%(master)s": choose that one too.') % {"master": master}
                )
        if not any(values.get(_ticked(job)) for job in self.definition.jobs):
            self.add_error(None, _("Choose at least one job: without any, nothing is read."))
        return values

    def intervals(self) -> dict[str, int]:
        """Return the chosen jobs with their interval in seconds; a member has its master's."""
        values = self._values()
        chosen = [job for job in self.definition.jobs if values[_ticked(job)]]
        return {job.slug: values[f"every_{job.chain_of or job.slug}"] for job in chosen}

    def bill(self, name: str, *, round_trip_seconds: float) -> dict[str, Any]:
        """Sum up the cost of the choice; invalid inputs are ignored."""
        values = self._values()
        costs = feasibility.load_job_costs(self.definition, feasibility.OltSize(values["onus"], round_trip_seconds))
        found = feasibility.judge_choice(name, self.definition, self.intervals(), costs)
        rows = list(self._rows(costs))
        percent = found.judged.share * 100
        return {
            "rows": rows,
            "minutes_per_hour": found.judged.minutes_per_hour,
            "percent": percent,
            "width": round(min(percent, 100.0), 1),
            "fits": found.judged.fits,
            "words": [] if found.judged.fits else list(feasibility.words_of(found))[1:],
            "is_measured": any(row["cost"].is_measured for row in rows),
        }

    def _values(self) -> dict[str, Any]:
        """Return the submitted values, or the suggested ones where they are missing or invalid."""
        suggested = {name: field.initial for name, field in self.fields.items()}
        return {**suggested, **getattr(self, "cleaned_data", {})} if self.is_bound else suggested

    def _rows(self, costs: Mapping[str, feasibility.JobCost]) -> Iterator[dict[str, Any]]:
        """Yield each job with its inputs and its cost; a chain member runs at its master's interval."""
        values = self._values()
        for master in (job for job in self.definition.jobs if job.chain_of is None):
            seconds = values[_every(master)]
            for job in (master, *feasibility.members_of(self.definition, master.slug)):
                is_chosen, cost = bool(values[_ticked(job)] and values[_ticked(master)]), costs[job.slug]
                yield {
                    "name": ready_name(job.name),
                    "job": job,
                    "chosen": self[_ticked(job)],
                    "every": self[_every(job)] if job is master else None,
                    "is_chosen": is_chosen,
                    "runs_per_hour": SECONDS_PER_HOUR / seconds,
                    "runs_per_day": SECONDS_PER_HOUR / seconds * HOURS_PER_DAY,
                    "cost": cost,
                    "seconds_per_hour": cost.seconds_per_hour(seconds) if is_chosen else 0.0,
                    "minimum_seconds": feasibility.safe_minimum_seconds(self.definition, [job]),
                    "is_live": feasibility.is_live(self.definition, job),
                }


def _ticked(job: Job) -> str:
    return f"job_{job.slug}"


def _every(job: Job) -> str:
    return f"every_{job.slug}"


def _intervals(definition: Definition, master: Job) -> list[tuple[int, str]]:
    """Offer the usual intervals, none shorter than the job and its chain allow."""
    minimum = feasibility.safe_minimum_seconds(definition, [master, *feasibility.members_of(definition, master.slug)])
    offered = {seconds for seconds in NICE_INTERVALS_SECONDS if seconds >= minimum} | {master.interval_seconds}
    return [(seconds, length_of_time(seconds)) for seconds in sorted(offered)]


_TEXTS = ("name", "host", "v3_user", *olt_entry.SECRET_COLUMNS)
VERSIONS = [
    (SnmpVersionChoice.V2C.value, gettext_lazy("SNMPv2c: what most OLTs use")),
    (SnmpVersionChoice.V3.value, gettext_lazy("SNMPv3: with a user and keys")),
    (SnmpVersionChoice.V1.value, gettext_lazy("SNMPv1: only if the OLT supports nothing newer")),
]


def protocol_choices(names: tuple[str, ...]) -> list[tuple[str, Any]]:
    return [("", gettext_lazy("none")), *((name, name) for name in names)]


class OltDetails(forms.Form):
    """A new OLT, or one being corrected before its first answer; the name is only asked for a new one."""

    name = forms.CharField(
        label=gettext_lazy("Name"), strip=True, help_text=gettext_lazy("The name your team uses, for example the site.")
    )
    host = forms.CharField(
        label=gettext_lazy("Address"),
        strip=True,
        help_text=gettext_lazy("IP address or host name of its management interface."),
    )
    port = forms.IntegerField(
        label=capfirst(gettext_lazy("UDP port")), initial=DEFAULT_SNMP_PORT, min_value=1, max_value=65_535
    )
    group = forms.ModelChoiceField(
        label=capfirst(gettext_lazy("OLT group")), queryset=OltGroup.objects.none(), required=False
    )
    version = forms.ChoiceField(
        label=capfirst(gettext_lazy("SNMP version")),
        choices=VERSIONS,
        initial=SnmpVersionChoice.V2C,
        widget=forms.RadioSelect,
    )
    community = SecretInput(
        gettext_lazy("Community"), gettext_lazy("The read-only community. It is stored encrypted and never shown.")
    )
    v3_user = forms.CharField(label=gettext_lazy("User"), required=False, strip=True)
    v3_auth_protocol = forms.ChoiceField(
        label=gettext_lazy("Authentication"), choices=protocol_choices(olt_entry.AUTH_PROTOCOLS), required=False
    )
    v3_auth_key = SecretInput(gettext_lazy("Authentication key"), help_text="")
    v3_priv_protocol = forms.ChoiceField(
        label=gettext_lazy("Privacy"), choices=protocol_choices(olt_entry.PRIV_PROTOCOLS), required=False
    )
    v3_priv_key = SecretInput(gettext_lazy("Privacy key"), help_text="")

    def __init__(self, *args: Any, scope: OltScope, olt: Olt | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.olt = olt
        self.scope = scope
        if olt is None:
            # Require a group from users who see only some groups: they would not see the OLT otherwise.
            groups = (
                OltGroup.objects.all() if scope.group_ids is None else OltGroup.objects.filter(id__in=scope.group_ids)
            )
            field = self.fields["group"]
            field.required = scope.group_ids is not None
            if isinstance(field, forms.ModelChoiceField):
                field.queryset = groups
            if not groups.exists():
                del self.fields["group"]
        else:
            del self.fields["name"], self.fields["group"]
            for name in ("host", "port", "v3_user", "v3_auth_protocol", "v3_priv_protocol"):
                self.fields[name].initial = getattr(olt, name)
            self.fields["version"].initial = olt.snmp_version
            for name in olt_entry.SECRET_COLUMNS:
                if getattr(olt, f"has_{name}", False):
                    self.fields[name].help_text = STAYS_WHEN_EMPTY

    @property
    def community_fields(self) -> list[forms.BoundField]:
        return [self["community"]]

    @property
    def user_fields(self) -> list[forms.BoundField]:
        names = ("v3_user", "v3_auth_protocol", "v3_auth_key", "v3_priv_protocol", "v3_priv_key")
        return [self[name] for name in names]

    @property
    def place_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("name", "host", "port", "group") if name in self.fields]

    def clean(self) -> dict[str, Any]:
        """Check each field with the inventory's rules, then the device and the credentials."""
        values = super().clean() or {}
        texts = {column: values.get(column, "") for column in _TEXTS}
        secrets = {column: Secret(texts[column]) for column in olt_entry.SECRET_COLUMNS}
        text_faults = olt_entry.find_faults(olt_entry.OltEntry(**{**texts, **secrets}), vendors=(), groups=())
        for fault in text_faults:
            # The field itself reports a missing value.
            if values.get(fault.column):
                self._blame(*fault)
        if not self.errors:
            # A copy: Django removes invalid fields from its own.
            written = dict(values)
            self._check_device(written["host"], written["port"])
            name = written.get("name", "")
            for olt_id in Olt.objects.filter(name=name).values_list("id", flat=True):
                is_seen = self.scope.allows(olt_id)
                self._blame(
                    "name", _('there is already an OLT named "%s"') % name if is_seen else _("this name is taken")
                )
            for fault in self._credential_faults(written):
                self._blame(*fault)
        return values

    def as_entry(self) -> olt_entry.OltEntry:
        """Return the form as an inventory entry, without the fields of other SNMP versions."""
        values = self.cleaned_data
        is_v3 = values["version"] == SnmpVersionChoice.V3
        shared: dict[str, Any] = {
            "name": self.olt.name if self.olt else values["name"],
            "host": values["host"],
            "port": str(values["port"]),
            "vendor": olt_entry.AUTO,
            "version": values["version"],
            "group": values["group"].name if values.get("group") else "",
        }
        if not is_v3:
            return olt_entry.OltEntry(**shared, community=Secret(values["community"]))
        return olt_entry.OltEntry(
            **shared,
            v3_user=values["v3_user"],
            v3_auth_protocol=values["v3_auth_protocol"] or olt_entry.NONE,
            v3_auth_key=Secret(values["v3_auth_key"]),
            v3_priv_protocol=values["v3_priv_protocol"] or olt_entry.NONE,
            v3_priv_key=Secret(values["v3_priv_key"]),
        )

    def refuse(self, error: InventoryError) -> None:
        """Show an inventory error found while saving, such as a name taken meanwhile."""
        for _column, reason in visible_reasons(error, self.scope):
            self.add_error(None, _sentence(reason))

    def _check_device(self, host: str, port: int) -> None:
        address = resolve_all([host]).get(host, "")
        if not address:
            self._blame("host", _('host "%s" does not resolve to an address') % host)
            return
        same = Olt.objects.only("name").filter(address=address, port=port)
        for owner in same.exclude(pk=self.olt.pk if self.olt else 0):
            place = {"owner": owner.name, "address": address, "port": port}
            is_seen = self.scope.allows(owner.pk)
            taken = _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place
            self._blame("host", taken if is_seen else _("this address and port are taken"))

    def _credential_faults(self, values: dict[str, Any]) -> Iterator[olt_entry.Fault]:
        given = [name for name in olt_entry.SECRET_COLUMNS if values[name]]
        stored = stored_secrets(self.olt) if self.olt else []
        before = self.olt.place if self.olt else None
        is_moved = before is not None and before.is_left_for(before._replace(host=values["host"], port=values["port"]))
        names = ("v3_user", "v3_auth_protocol", "v3_priv_protocol")
        draft = Olt(snmp_version=values["version"], **{name: values[name] for name in names})
        return find_credential_faults(draft, given=given, stored=stored, is_moved=is_moved)

    def _blame(self, column: str, reason: str) -> None:
        self.add_error(column if column in self.fields else None, _sentence(reason))


def _sentence(fault: str) -> str:
    return f"{fault[:1].upper()}{fault[1:]}."


SECRETS = ("community", "v3_auth_key", "v3_priv_key")
# After a correction the agent must identify itself again.
_FORGOTTEN: dict[str, Any] = {"sys_object_id": "", "sys_name": "", "sys_descr": "", "model": None}


@sensitive_post_parameters(*SECRETS)
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def add(request: HttpRequest) -> HttpResponse:
    """Add an OLT and test it at once; nothing else is polled until jobs are chosen."""
    given = {"host": request.GET.get("host", "")[: olt_entry.MAX_HOST]}
    form = OltDetails(request.POST or None, scope=scope_of(request.user), initial=given)
    if form.is_valid() and (olt := _save_new(request, form)) is not None:
        return redirect("olt-setup", olt.pk)
    return render(request, "first_run/add.html", {"form": form, "shown": SetupStep.ADD, "steps": SetupStep.choices})


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
    context = {"form": form, "shown": SetupStep.ADD, "steps": SetupStep.choices, "olt": found.olt}
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
    context: dict[str, Any] = {"now": now, "setup": found, "olt": found.olt, "shown": shown, "steps": SetupStep.choices}
    if shown is SetupStep.JOBS and found.definition is not None:
        context |= _jobs_context(request, found, found.definition)
    if shown is SetupStep.KNOW:
        context["families"] = [each for each in load_definitions().values() if each.key != found.olt.vendor]
    if shown is SetupStep.DATA:
        context |= {"data": load_first_data(found.olt, now), "is_no_one_notified": load_is_no_one_notified()}
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
