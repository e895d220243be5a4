"""Settings of OLTs: the list, the form of one, switching it off, deleting it, and groups of OLTs."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import IntegrityError, transaction
from django.db.models import Count, F, OrderBy, ProtectedError, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.audit import Action, changed_words, record, record_each
from facho.accounts.models import ProfileGroup
from facho.accounts.roles import Role, RoleNeeded, role_of
from facho.accounts.scope import OltScope, scope_of
from facho.alerts.models import Alert, AlertRule
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    ListFilter,
    choice_field,
    for_admins,
    for_admins_of_all_olts,
    for_users,
    offer,
    read_id,
    search_field,
)
from facho.executions.models import Execution
from facho.hosts.inventory import erased_words, stored_olts
from facho.hosts.models import GROUP_IN_USE, Olt, OltGroup, Reachability
from facho.hosts.olt_entry import SECRET_COLUMNS, Fault
from facho.hosts.olt_form import OltForm, new_secret, vendor_choices
from facho.hosts.resolve import resolve_all
from facho.hosts.store import ask_for_probe
from facho.onus.models import Onu, OnuEvent, Outage
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.poller_manager import PollerManager

if TYPE_CHECKING:
    _GroupModelForm = forms.ModelForm[OltGroup]
else:
    _GroupModelForm = forms.ModelForm  # generic in its stubs only

DISABLED = "disabled"
NO_GROUP = "none"
# Columns of the list, by the name that the address has; each ends with the name, so that the order is stable.
SORTS: dict[str, str] = {
    "name": "name",
    "state": "reachability",
    "address": "host",
    "group": "group__name",
    "vendor": "vendor",
    "answer": "last_answer_at",
}
COLUMNS: tuple[tuple[str, Promise], ...] = (
    ("name", gettext_lazy("Name")),
    ("state", gettext_lazy("State")),
    ("address", gettext_lazy("Address")),
    ("group", gettext_lazy("Group")),
    ("vendor", gettext_lazy("Family")),
    ("answer", gettext_lazy("Last answer")),
)
_LOOKS = {Reachability.UP.value: "up", Reachability.DOWN.value: "down"}


@require_safe
@for_users
def settings_page(request: HttpRequest) -> HttpResponse:
    """Lead to the first page that the user may use."""
    role = role_of(request.user)
    if role is Role.ADMIN:
        return redirect("settings-olts")
    if role is Role.OPERATOR:
        return redirect("settings-maintenance")
    raise RoleNeeded(Role.OPERATOR)


class OltListForm(ListFilter):
    ids = "olts-%s"
    q = search_field(gettext_lazy("Search"), gettext_lazy("name or address"))
    group = choice_field(gettext_lazy("Group"))
    state = choice_field(gettext_lazy("State"), [*Reachability.choices, (DISABLED, gettext_lazy("disabled"))])

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, scope)
        groups = [(str(group.pk), group.name) for group in groups_in(scope)]
        outside = [(NO_GROUP, _("no group"))] if scope.is_everything else []
        offer(self, "group", [("", _("all")), *groups, *outside])

    def find(self) -> QuerySet[Olt]:
        """Select the OLTs in scope that match; an invalid choice matches none."""
        olts = self.scope.narrow(stored_olts().select_related("group", "model__brand"), "")
        if not self.is_valid():
            return olts.none()
        values = self.cleaned_data
        if text := values["q"].strip():
            texts = ("name", "host", "address", "sys_name")
            olts = olts.filter(*(_any_contains(texts, word) for word in text.split()))
        if values["group"]:
            is_alone = values["group"] == NO_GROUP
            olts = olts.filter(group=None) if is_alone else olts.filter(group_id=int(values["group"]))
        if values["state"] == DISABLED:
            return olts.filter(enabled=False)
        return olts.filter(enabled=True, reachability=values["state"]) if values["state"] else olts


def _any_contains(columns: tuple[str, ...], word: str) -> Q:
    found = Q()
    for column in columns:
        found |= Q(**{f"{column}__icontains": word})
    return found


def groups_in(scope: OltScope) -> QuerySet[OltGroup]:
    groups = OltGroup.objects.order_by("name")
    return groups if scope.group_ids is None else groups.filter(id__in=scope.group_ids)


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def olts(request: HttpRequest) -> HttpResponse:
    scope = scope_of(request.user)
    if request.method == "POST":
        return _move(request, scope)
    form, sort = OltListForm(request.GET, scope), request.GET.get("sort", "")
    wanted = sort if sort.removeprefix("-") in SORTS else "name"
    page = Paginator(form.find().order_by(_order(wanted), "name"), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    families = dict(vendor_choices())
    context = {
        "place": "olts",
        "here": "settings",
        "now": timezone.now(),
        "form": form,
        "columns": [_sort_link(request, name, title, wanted) for name, title in COLUMNS],
        "page": page,
        "lines": [_line(olt, families) for olt in page],
        "query": _query_without(request, "page"),
        "move_form": MoveForm(groups_in(scope)),
        "is_whole": scope.is_everything,
        "has_filter": any(request.GET.get(name) for name in form.fields),
    }
    return render(request, "settings/olts.html", context)


def _order(sort: str) -> OrderBy:
    # Empty ones last in both directions.
    column = F(SORTS[sort.removeprefix("-")])
    return column.desc(nulls_last=True) if sort.startswith("-") else column.asc(nulls_last=True)


def _sort_link(request: HttpRequest, name: str, title: Promise, wanted: str) -> dict[str, Any]:
    """Make the head of a column: its title, the address that sorts by it, and how it is sorted now."""
    now = {name: "ascending", f"-{name}": "descending"}.get(wanted, "")
    following = f"-{name}" if now == "ascending" else name
    query = f"{_query_without(request, 'page', 'sort')}sort={following}"
    return {"name": name, "title": title, "query": query, "sorted": now}


def _query_without(request: HttpRequest, *names: str) -> str:
    """Return the present choices as the start of a query string."""
    given = {name: value for name, value in request.GET.items() if value and name not in names}
    return f"{urlencode(given)}&" if given else ""


def _line(olt: Olt, families: dict[str, str]) -> dict[str, Any]:
    state = _LOOKS.get(olt.reachability, "unknown") if olt.enabled else DISABLED
    words = olt.get_reachability_display() if olt.enabled else _("disabled")
    family = families.get(olt.vendor, olt.vendor).partition(" (")[0] if olt.vendor else ""
    return {"olt": olt, "state": state, "words": words, "family": family}


class MoveForm(forms.Form):
    group = forms.ModelChoiceField(OltGroup.objects.none(), label=gettext_lazy("Group"), required=False)

    def __init__(self, groups: QuerySet[OltGroup], data: Any = None) -> None:
        super().__init__(data, auto_id="move-%s", label_suffix="")
        field = self.fields["group"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset, field.empty_label = groups, _("no group")


def _move(request: HttpRequest, scope: OltScope) -> HttpResponse:
    form = MoveForm(groups_in(scope), request.POST)
    ids = {read_id(text) for text in request.POST.getlist("olt")} - {0}
    back = redirect(f"{request.path}?{request.GET.urlencode()}" if request.GET else request.path)
    if not form.is_valid():
        messages.error(request, _("This group is gone: choose another one."))
        return back
    group = form.cleaned_data["group"]
    if group is None and not scope.is_everything:
        messages.error(request, _("Choose a group: without one you would not see these OLTs any more."))
        return back
    with transaction.atomic():
        chosen = list(scope.narrow(stored_olts().select_related("group"), "").filter(id__in=ids).exclude(group=group))
        words = [changed_words({"group": olt.group}, {"group": group}) for olt in chosen]
        record_each(request.user, [(olt, Action.CHANGED, text) for olt, text in zip(chosen, words, strict=True)])
        Olt.objects.filter(id__in=[olt.pk for olt in chosen]).update(group=group, updated_at=timezone.now())
    if not ids:
        messages.error(request, _("Tick the OLTs that you want to move."))
        return back
    text = ngettext("%(n)s OLT was moved.", "%(n)s OLTs were moved.", len(chosen)) % {"n": len(chosen)}
    messages.success(request, text)
    return back


class OltSettingsForm(OltForm):
    """An OLT without its switch, which is a step of its own; its group is one that the user sees."""

    class Meta(OltForm.Meta):
        fields = [name for name in OltForm.Meta.fields if name != "enabled"]

    def __init__(self, *args: Any, scope: OltScope, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "auto_id": "olt-%s", "label_suffix": ""})
        self.scope = scope
        group = self.fields["group"]
        group.required = not scope.is_everything
        if isinstance(group, forms.ModelChoiceField):
            group.queryset, group.empty_label = groups_in(scope), _("no group")

    def sees(self, olt_id: int) -> bool:
        return self.scope.allows(olt_id)

    def blame(self, fault: Fault) -> None:
        """Say it as a sentence."""
        super().blame(fault._replace(reason=f"{fault.reason[:1].upper()}{fault.reason[1:]}."))

    @property
    def sections(self) -> list[tuple[Any, list[forms.BoundField], bool]]:
        """The fields under their titles; those that few need are closed unless one of them is set or wrong."""
        parts: list[tuple[Any, list[str], bool]] = [
            (_("Where it is"), ["name", "host", "port", "group", "vendor"], True),
            (_("SNMP access"), ["snmp_version", new_secret("community")], True),
            (
                "SNMPv3",
                [
                    "v3_user",
                    "v3_auth_protocol",
                    new_secret("v3_auth_key"),
                    "v3_priv_protocol",
                    new_secret("v3_priv_key"),
                ],
                self.instance.snmp_version == "3",
            ),
            (_("Load limits"), ["max_in_flight", "packets_per_second"], False),
            (_("Distributed mode and traps"), ["poller_group", "trap_addresses"], False),
        ]
        return [
            (title, [self[name] for name in names], is_open or any(self[name].errors for name in names))
            for title, names, is_open in parts
        ]


_CONNECTION = {"host", "port", "snmp_version", "v3_user", "v3_auth_protocol", "v3_priv_protocol"} | {
    new_secret(name) for name in SECRET_COLUMNS
}


@sensitive_post_parameters(*(new_secret(name) for name in SECRET_COLUMNS))
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def olt_settings(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Show or save what is set up of one OLT; empty secrets keep the stored ones."""
    scope, olt = scope_of(request.user), find_olt(request, olt_id)
    # The name as stored: the form writes what was typed into its instance.
    name, was_enabled = olt.name, olt.enabled
    form = OltSettingsForm(request.POST or None, instance=olt, scope=scope)
    # Before a transaction is open: a slow name server would block all writers.
    form.addresses = resolve_all({request.POST.get("host", "").strip()} - {""})  # type: ignore[misc]  # of this form
    if form.is_valid() and _save(request, form):
        return redirect("settings-olt", olt_id)
    context = {
        "place": "olts",
        "here": "settings",
        "now": timezone.now(),
        "form": form,
        "olt": olt,
        "olt_name": name,
        "was_enabled": was_enabled,
        **_load_work(olt_id),
    }
    return render(request, "settings/olt.html", context)


def find_olt(request: HttpRequest, olt_id: int) -> Olt:
    """Return an OLT in the user's scope without its secrets, else raise 404."""
    olts = stored_olts().select_related("group", "model__brand")
    return get_object_or_404(scope_of(request.user).narrow(olts, ""), id=olt_id)


def _load_work(olt_id: int) -> dict[str, int]:
    """Count what is switched off together with an OLT."""
    return {
        "jobs": WorkflowNode.objects.filter(workflow__olt_id=olt_id, enabled=True).count(),
        "running": Execution.objects.filter(olt_id=olt_id, finished_at__isnull=True).count(),
    }


def _save(request: HttpRequest, form: OltSettingsForm) -> bool:
    olt, changed = form.instance, set(form.changed_data)
    if not changed:
        messages.info(request, _("Nothing was changed."))
        return True
    secrets = {name for name in SECRET_COLUMNS if new_secret(name) in changed}
    shown = [name for name in form._meta.fields or () if name in changed]
    before = {name: form.initial.get(name) for name in shown}
    after = {name: form.cleaned_data[name] for name in shown} | dict.fromkeys(secrets, True)
    if "group" in before:
        before["group"] = OltGroup.objects.filter(id=before["group"] or 0).first()
    try:
        with transaction.atomic():
            erased = form.save_placed()
            words = (changed_words(before, after, secrets=secrets), erased_words(erased))
            record(request.user, olt, Action.CHANGED, " · ".join(filter(None, words)))
            if "vendor" in changed and olt.vendor:
                apply_ready_made_jobs(olt, now=timezone.now())
    except IntegrityError:
        form.add_error(None, _("This name, or this address and port, was just taken."))
        return False
    if _CONNECTION & changed and olt.enabled:
        ask_for_probe(olt.pk, timezone.now())
        messages.success(request, _("Saved. Facho tests the connection now: its page shows the result."))
    else:
        messages.success(request, _("Saved."))
    return True


@require_POST
@for_admins
def olt_switch(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Enable or disable an OLT; the coordinator sees it and does what follows."""
    olt, is_on = find_olt(request, olt_id), request.POST.get("enabled") == "yes"
    with transaction.atomic():
        if Olt.objects.filter(id=olt.pk, enabled=not is_on).update(enabled=is_on, updated_at=timezone.now()):
            record(request.user, olt, Action.CHANGED, gettext_lazy("Enabled.") if is_on else gettext_lazy("Disabled."))
    names = {"olt": olt.name}
    messages.success(request, _("%(olt)s is polled again.") % names if is_on else _("%(olt)s is disabled.") % names)
    return redirect("settings-olt", olt_id)


def load_gone(olt: Olt) -> list[dict[str, Any]]:
    """Count what is deleted with an OLT; a query for each kind."""
    kinds: list[QuerySet[Any]] = [
        Onu.objects.filter(olt=olt),
        WorkflowNode.objects.filter(workflow__olt=olt),
        Execution.objects.filter(olt=olt),
        OnuEvent.objects.filter(olt=olt),
        Outage.objects.filter(olt=olt),
        Alert.objects.filter(olt=olt),
    ]
    counted = [(rows.count(), rows.model._meta) for rows in kinds]
    return [{"count": n, "name": meta.verbose_name if n == 1 else meta.verbose_name_plural} for n, meta in counted if n]


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def olt_delete(request: HttpRequest, olt_id: int) -> HttpResponse:
    olt = find_olt(request, olt_id)
    if request.method == "POST":
        with transaction.atomic():
            if not PollerManager.is_olt_busy(olt.pk):
                record(request.user, olt, Action.DELETED)
                Olt.objects.filter(pk=olt.pk).delete()
                messages.success(request, _("%(olt)s was deleted.") % {"olt": olt.name})
                return redirect("settings-olts")
        sentence = _("%(olt)s is being polled: disable it, and delete it when its run has ended.")
        messages.error(request, sentence % {"olt": olt.name})
    context = {"place": "olts", "here": "settings", "olt": olt, "gone": load_gone(olt)}
    return render(request, "settings/olt_delete.html", context)


class GroupForm(_GroupModelForm):
    class Meta:
        model = OltGroup
        fields = ["name"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "label_suffix": ""})
        self.fields["name"].label = _("Name")


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def groups(request: HttpRequest) -> HttpResponse:
    """List groups of OLTs; add one, rename one or delete one."""
    chosen = OltGroup.objects.filter(id=read_id(request.POST.get("group", ""))).first()
    wants_new = request.method == "POST" and "group" not in request.POST
    new = GroupForm(request.POST if wants_new else None, auto_id="new-%s")
    renamed = GroupForm(request.POST, instance=chosen, auto_id=f"group-{chosen.pk}-%s") if chosen else None
    if "delete" in request.POST and chosen:
        _delete_group(request, chosen)
        return redirect("settings-groups")
    form = renamed or (new if wants_new else None)
    if form is not None and form.is_valid():
        _save_group(request, form)
        return redirect("settings-groups")
    context = {"place": "olts", "here": "settings", "new": new, "lines": load_groups(renamed)}
    return render(request, "settings/groups.html", context)


def load_groups(wrong: GroupForm | None = None) -> list[dict[str, Any]]:
    """Load all groups with what depends on them, by three queries. `wrong` keeps what was typed."""
    people: dict[int, list[str]] = {}
    limits = ProfileGroup.objects.order_by("profile__user__username")
    for group_id, name in limits.values_list("oltgroup_id", "profile__user__username"):
        people.setdefault(group_id, []).append(name)
    rules = dict(AlertRule.objects.exclude(olt_group=None).order_by().values_list("olt_group").annotate(n=Count("id")))
    rows = OltGroup.objects.annotate(olts_counted=Count("olts")).order_by("name")
    lines = []
    for group in rows:
        is_wrong = wrong is not None and wrong.instance.pk == group.pk
        form = wrong if is_wrong and wrong else GroupForm(instance=group, auto_id=f"group-{group.pk}-%s")
        depend = {"people": people.get(group.pk, []), "rules": rules.get(group.pk, 0)}
        lines.append({"group": group, "olts": group.olts_counted, "form": form, **depend})
    return lines


def _save_group(request: HttpRequest, form: GroupForm) -> None:
    is_new, before = form.instance.pk is None, form.initial.get("name", "")
    with transaction.atomic():
        group = form.save()
        words = "" if is_new else changed_words({"name": before}, {"name": group.name})
        if is_new or words:
            record(request.user, group, Action.ADDED if is_new else Action.CHANGED, words)
    messages.success(request, _("Saved: %(name)s.") % {"name": group.name})


def _delete_group(request: HttpRequest, group: OltGroup) -> None:
    """Delete a group that nothing depends on; its OLTs stay, without a group."""
    try:
        with transaction.atomic():
            record(request.user, group, Action.DELETED)
            group.delete()
    except ProtectedError:
        messages.error(request, GROUP_IN_USE % {"group": group.name})
        return
    messages.success(request, _("%(group)s was deleted; its OLTs have no group now.") % {"group": group.name})
