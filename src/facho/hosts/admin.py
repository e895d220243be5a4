"""Admin pages of OLTs, brands, models, groups, OLT values, waiting ONUs and pauses, and the CSV import."""

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone, translation
from django.utils.crypto import constant_time_compare, get_random_string
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from facho.hosts.csv import import_file, plan_file, write_entries
from facho.hosts.inventory import (
    ImportPlan,
    InventoryError,
    PlanChanged,
    RowVerdict,
    Saved,
    content_of,
    erased_words,
    export_entries,
    place_secrets,
    stored_olts,
)
from facho.hosts.models import Brand, Olt, OltData, OltGroup, OltModel, Pause, Reachability, WaitingOnu
from facho.hosts.olt_data import shown_growth, shown_value, title_of
from facho.hosts.olt_entry import NONE
from facho.hosts.olt_form import OltForm, new_secret, vendor_choices
from facho.hosts.resolve import resolve_all
from facho.hosts.store import end_pause, refusal_of
from facho.infrastructure.admin_pages import (
    LongListAdmin,
    ReadOnlyAdmin,
    badge,
    short_time,
    without_secrets,
    write_down,
    write_down_each,
)
from facho.infrastructure.secrets import Secret, UndecryptableSecret, decrypt, encrypt

ALL = "all"
# Ten thousand OLTs; a file that is larger is another file.
MAX_BYTES = 1024 * 1024
# What was shown and waits for its confirmation; the file holds secrets, so it is kept as they are.
PENDING = "olt_import"
_LOOKS = {Reachability.UP.value: "good", Reachability.DOWN.value: "bad", Reachability.UNKNOWN.value: "quiet"}
# What a request looked up, as its form finds it.
_ADDRESSES = "_facho_addresses"


class NamedRowFilter(admin.SimpleListFilter):
    """Narrows to what refers to one row, chosen by its name; its secrets are not loaded."""

    path: str
    model: type[Model]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        rows = self.model._default_manager.order_by("name").values_list("id", "name")
        return [(str(pk), name) for pk, name in rows]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value() or ""
        return queryset.filter(**{self.path: int(chosen)}) if chosen.isascii() and chosen.isdigit() else queryset


class OltFilter(NamedRowFilter):
    title = gettext_lazy("OLT")
    parameter_name = "olt"
    path = "olt_id"
    model = Olt


class VendorFilter(admin.SimpleListFilter):
    """Vendors by their titles; what has none yet is a choice with words, too."""

    title = gettext_lazy("vendor definition")
    parameter_name = "vendor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        rows = model_admin.model._default_manager.order_by().values_list("vendor", flat=True)
        titles = dict(vendor_choices())
        return [(key or NONE, titles.get(key, key) if key else _("none")) for key in sorted(set(rows.distinct()))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        return queryset.filter(vendor="" if chosen == NONE else chosen) if chosen else queryset


class _AllBeforeEach(forms.models.ModelChoiceIterator):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        nothing, *olts = super().__iter__()
        yield nothing
        yield ALL, _("All OLTs")
        yield from olts


class PlaceField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in its stubs only
    """One OLT, or None for all of them; an empty choice is invalid."""

    iterator = _AllBeforeEach

    def clean(self, value: Any) -> Olt | None:
        return None if value == ALL else super().clean(value)


class PauseForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    olt = PlaceField(Olt.objects.none(), label=capfirst(gettext_lazy("OLT")))

    class Meta:
        model = Pause
        fields = ["olt", "starts_at", "ends_at", "note", "keeps_polling"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["starts_at"].initial = timezone.now
        if self.instance.pk and self.instance.olt_id is None:
            self.initial["olt"] = ALL
        olt = self.fields["olt"]
        if isinstance(olt, forms.ModelChoiceField):
            olt.queryset = stored_olts()

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        starts_at, ends_at = values.get("starts_at"), values.get("ends_at")
        if starts_at and ends_at and ends_at <= starts_at:
            self.add_error("ends_at", _("The end must be after the start."))
        return values


class UnshownText(forms.Textarea):
    """A text area that is always rendered empty: the text holds secrets."""

    def format_value(self, value: Any) -> str:
        return ""


class ImportForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        required=False,
        allow_empty_file=True,
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )
    text = forms.CharField(
        label=gettext_lazy("or its text"),
        required=False,
        strip=False,
        widget=UnshownText(attrs={"rows": 8, "cols": 80, "spellcheck": "false", "autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        return {**values, "content": content_of(values, most_bytes=MAX_BYTES, too_large=_("The file is too large."))}


class CsvAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    change_list_template = "admin/hosts/olt/change_list.html"

    def get_urls(self) -> list[Any]:
        ours = [
            path("import/", self.admin_site.admin_view(self.import_view), name="hosts_olt_import"),
            path("export/", self.admin_site.admin_view(self.export_view), name="hosts_olt_export"),
        ]
        return [*ours, *super().get_urls()]

    @method_decorator(require_safe)
    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Send the CSV file, without secrets and with formulas neutralised."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        headers = {"Content-Disposition": 'attachment; filename="olts.csv"'}
        return HttpResponse(write_entries(export_entries()), content_type="text/csv; charset=utf-8", headers=headers)

    @method_decorator([require_http_methods(["GET", "HEAD", "POST"]), sensitive_post_parameters()])
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a file, preview the changes, and apply them once confirmed."""
        if not (self.has_add_permission(request) and self.has_change_permission(request)):
            raise PermissionDenied
        pending = request.session.pop(PENDING, None)
        if request.method != "POST":
            return self._page(request, ImportForm())
        if "confirmed" in request.POST:
            return self._carry_out(request, pending)
        form = ImportForm(request.POST, request.FILES)
        if not form.is_valid():
            return self._page(request, form)
        content = form.cleaned_data["content"]
        return self._show(request, content, plan_file(content))

    def after_save(self, olt: Olt) -> None:
        """Hook for other rooms, called for an OLT that is new or changed its vendor."""

    def _show(self, request: HttpRequest, content: bytes, plan: ImportPlan) -> HttpResponse:
        ticket = get_random_string(20)
        if plan.is_good:
            stored = encrypt(Secret(content.decode()))
            request.session[PENDING] = {"ticket": ticket, "file": stored, "shown": plan.fingerprint}
        return self._page(request, ImportForm(), plan=plan, ticket=ticket)

    def _carry_out(self, request: HttpRequest, pending: dict[str, str] | None) -> HttpResponse:
        if not pending or not constant_time_compare(pending["ticket"], request.POST["confirmed"]):
            messages.error(
                request, _("Nothing was imported: another file was uploaded meanwhile. Upload this one again.")
            )
            return HttpResponseRedirect(reverse("admin:hosts_olt_import"))
        try:
            content = decrypt(pending["file"]).reveal().encode()
        except UndecryptableSecret:
            messages.error(request, _("Nothing was imported: the encryption key was changed. Upload the file again."))
            return HttpResponseRedirect(reverse("admin:hosts_olt_import"))
        try:
            saved = import_file(
                content,
                shown=pending["shown"],
                after_save=self.after_save,
                finish=lambda saved: _write_down(request, saved),
            )
        except (PlanChanged, InventoryError):
            messages.error(
                request, _("Nothing was imported: some OLTs changed meanwhile. Check the changes below again.")
            )
            return self._show(request, content, plan_file(content))
        counts = {"added": len(saved.added), "updated": len(saved.updated)}
        messages.success(request, _("%(added)s OLTs added, %(updated)s updated") % counts)
        return HttpResponseRedirect(reverse("admin:hosts_olt_changelist"))

    def _page(self, request: HttpRequest, form: ImportForm, **more: Any) -> HttpResponse:
        plan: ImportPlan | None = more.get("plan")
        context = {
            **self.admin_site.each_context(request),
            "title": _("Import OLTs"),
            "opts": self.opts,
            "form": form,
            "shown_rows": plan.rows_of(RowVerdict.ERROR, RowVerdict.NEW, RowVerdict.CHANGED) if plan else (),
            "unchanged": plan.rows_of(RowVerdict.UNCHANGED) if plan else (),
            "media": self.media,
            **more,
        }
        return TemplateResponse(request, "admin/hosts/olt/import.html", context)


def _write_down(request: HttpRequest, saved: Saved) -> None:
    with translation.override(settings.LANGUAGE_CODE):
        source = _("Imported from a CSV file.")
    entries = (
        (row.olt, ADDITION if row.is_new else CHANGE, f"{source} {row.planned.audit_words}") for row in saved.rows
    )
    write_down_each(request.user.pk or 0, entries)


@admin.register(Brand)
class BrandAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    search_fields = ["name"]


@admin.register(OltModel)
class OltModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "brand"]
    list_filter = ["brand"]
    list_select_related = ["brand"]
    search_fields = ["name", "brand__name"]


@admin.register(OltGroup)
class OltGroupAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """OLT groups, such as regions; deleting one leaves its OLTs without a group, unless a scope refers to it."""

    list_display = ["name", "olt_count"]
    search_fields = ["name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[OltGroup]:
        groups: QuerySet[OltGroup] = super().get_queryset(request)
        return groups.annotate(olts_counted=Count("olts"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, counts, missing_permissions, protected = super().get_deleted_objects(objs, request)
        advice = gettext_lazy(
            "Without their group these would apply to every OLT. Assign another group or delete them first."
        )
        return deleted, counts, missing_permissions, [str(advice), *protected] if protected else protected

    @admin.display(description=gettext_lazy("OLTs"), ordering="olts_counted")
    def olt_count(self, group: OltGroup) -> SafeString:
        place = f"{reverse('admin:hosts_olt_changelist')}?group__id__exact={group.pk}"
        return format_html('<a href="{}">{}</a>', place, getattr(group, "olts_counted", 0))


@admin.register(Pause)
class PauseAdmin(LongListAdmin):
    """Pauses, ended ones included: they excuse missed slots."""

    form = PauseForm
    list_display = ["place", "starts_at", "ends_at", "keeps_polling", "note"]
    list_filter = [OltFilter]
    search_fields = ["olt__name", "note"]
    actions = ["end_now"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pause]:
        return super().get_queryset(request).select_related("olt").defer(*without_secrets(self.model))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Pauses are ended, not deleted: deleting one would turn excused slots into missed ones."""
        return False

    @admin.display(description=gettext_lazy("OLT"), ordering="olt__name")
    def place(self, pause: Pause) -> str:
        return pause.olt.name if pause.olt else str(gettext_lazy("everything"))

    def save_model(self, request: HttpRequest, obj: Pause, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.keeps_polling:
            return
        olts = Olt.objects.filter(enabled=True) if obj.olt_id is None else Olt.objects.filter(id=obj.olt_id)
        number = olts.count()
        text = ngettext(
            "%(n)s OLT is not polled while this pause lasts.",
            "%(n)s OLTs are not polled while this pause lasts.",
            number,
        )
        self.message_user(request, text % {"n": number}, messages.WARNING)

    @admin.action(description=gettext_lazy("End now"))
    @transaction.atomic
    def end_now(self, request: HttpRequest, queryset: QuerySet[Pause]) -> None:
        """End the selected pauses; those that ended already are unchanged."""
        now = timezone.now()
        ended = [pause for pause in queryset if end_pause(pause.pk, now=now)]
        write_down(request, ended, CHANGE, gettext_lazy("Ended."))
        text = ngettext("%(n)s pause ended.", "%(n)s pauses ended.", len(ended)) % {"n": len(ended)}
        self.message_user(request, text)


@admin.register(OltData)
class OltDataAdmin(ReadOnlyAdmin):
    list_display = ["title", "place", "olt", "shown", "growth", "updated_at"]
    list_filter = [OltFilter]
    search_fields = ["name", "place", "oid"]
    readonly_fields = ["title", "shown", "growth"]

    @admin.display(description=gettext_lazy("name"), ordering="name")
    def title(self, value: OltData) -> str:
        return title_of(value.name) or value.oid

    @admin.display(description=gettext_lazy("value"), ordering="value")
    def shown(self, value: OltData) -> str:
        return shown_value(value.name, value.value, value.unit)

    @admin.display(description=gettext_lazy("growth"), ordering="per_second")
    def growth(self, value: OltData) -> str:
        return shown_growth(value.per_second, value.unit)


@admin.register(WaitingOnu)
class WaitingOnuAdmin(ReadOnlyAdmin):
    list_display = ["serial", "olt", "pon_port", "model", "first_seen_at", "last_seen_at"]
    list_filter = [OltFilter]
    search_fields = ["serial", "model", "olt__name"]

    @admin.display(description=gettext_lazy("PON port"))
    def pon_port(self, onu: WaitingOnu) -> str:
        return onu.pon_port


class OltAdmin(CsvAdmin):
    """OLTs: settings, and the result of the last operation. Secrets are accepted, never shown."""

    form = OltForm
    empty_value_display = ""
    list_display = ["name", "state", "group", "vendor", "place", "answered"]
    list_filter = ["enabled", "reachability", "group", VendorFilter, "snmp_version"]
    search_fields = ["name", "host", "address", "sys_name"]
    readonly_fields = [
        "address",
        "model",
        "reachability",
        "last_answer_at",
        "error",
        "sys_name",
        "sys_descr",
        "sys_object_id",
    ]
    fieldsets = [
        (None, {"fields": ["name", "host", "port", "vendor", "group", "enabled"]}),
        (gettext_lazy("SNMP"), {"fields": ["snmp_version", new_secret("community")]}),
        (
            gettext_lazy("SNMPv3"),
            {
                "classes": ["collapse"],
                "fields": [
                    "v3_user",
                    "v3_auth_protocol",
                    new_secret("v3_auth_key"),
                    "v3_priv_protocol",
                    new_secret("v3_priv_key"),
                ],
            },
        ),
        (gettext_lazy("Load limits"), {"classes": ["collapse"], "fields": ["max_in_flight", "packets_per_second"]}),
        (gettext_lazy("Distributed mode"), {"classes": ["collapse"], "fields": ["poller_group"]}),
        (gettext_lazy("Traps"), {"classes": ["collapse"], "fields": ["trap_addresses"]}),
        (gettext_lazy("Learned"), {"fields": tuple(readonly_fields)}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Olt]:
        """Leave the secrets in the database."""
        return stored_olts().select_related("model__brand", "group")

    @admin.display(description=gettext_lazy("state"), ordering="reachability")
    def state(self, olt: Olt) -> SafeString:
        if not olt.enabled:
            return badge("quiet", gettext_lazy("disabled"))
        return badge(_LOOKS[olt.reachability], olt.get_reachability_display())

    @admin.display(description=gettext_lazy("host"), ordering="host")
    def place(self, olt: Olt) -> str:
        return f"{olt.host}:{olt.port}"

    @admin.display(description=gettext_lazy("last error"))
    def error(self, olt: Olt) -> str:
        return olt.last_error or refusal_of(olt)

    @admin.display(description=gettext_lazy("last answer"), ordering="last_answer_at")
    def answered(self, olt: Olt) -> SafeString | str:
        return short_time(olt.last_answer_at)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Keep secrets out of the columns Django reads and writes; pass the resolved address on."""
        kwargs["fields"] = OltForm.Meta.fields
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.addresses = getattr(request, _ADDRESSES, {})
        return form

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Resolve the host before Django opens a transaction: a slow name server would block all writers."""
        setattr(request, _ADDRESSES, resolve_all({request.POST.get("host", "").strip()} - {""}))
        return super().changeform_view(request, *args, **kwargs)

    @transaction.atomic
    def save_model(self, request: HttpRequest, obj: Olt, form: "ModelForm[Olt]", change: bool) -> None:
        """Save the form with the secrets entered; those for another host or port are erased."""
        if not isinstance(form, OltForm):
            raise TypeError(type(form))
        erased = form.save_placed() if change else ()
        if not change:
            place_secrets(obj, None, form.given_credentials())
            obj.save()
        if erased:
            write_down(request, [obj], CHANGE, erased_words(erased))
        if not change or "vendor" in form.changed_data:
            self.after_save(obj)
