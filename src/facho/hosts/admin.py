"""Admin pages of OLTs, their brands and models, what they tell of themselves and who waits there, and of pauses."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.db import transaction
from django.db.models import Count, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.hosts.admin_pages import (
    LongListAdmin,
    OltFilter,
    ReadOnlyAdmin,
    badge,
    short_time,
    without_secrets,
    write_down,
)
from facho.hosts.csv_admin import CsvAdmin
from facho.hosts.inventory import stored_olts
from facho.hosts.models import Brand, Olt, OltData, OltGroup, OltModel, Pause, Reachability, WaitingOnu
from facho.hosts.olt_form import OltForm, new_secret
from facho.hosts.pause_form import PauseForm
from facho.hosts.pauses import end_pause
from facho.hosts.refusals import refusal_of
from facho.hosts.resolve import resolve_all
from facho.hosts.value_words import shown_growth, shown_value, title_of


@admin.register(Brand)
class BrandAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Manufacturers."""

    search_fields = ["name"]


@admin.register(OltModel)
class OltModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Products of a brand."""

    list_display = ["name", "brand"]
    list_filter = ["brand"]
    list_select_related = ["brand"]
    search_fields = ["name", "brand__name"]


@admin.register(OltGroup)
class OltGroupAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Groups of OLTs, such as regions; deleting one leaves its OLTs, in no group, unless something holds to it."""

    list_display = ["name", "olt_count"]
    search_fields = ["name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[OltGroup]:
        """Count the OLTs along."""
        groups: QuerySet[OltGroup] = super().get_queryset(request)
        return groups.annotate(olts_counted=Count("olts"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say what to do about the people, tokens and rules that a group cannot be taken from."""
        deleted, counts, missing_permissions, protected = super().get_deleted_objects(objs, request)
        advice = _("Without their group these would hold for every OLT: give them another one, or delete them, first.")
        return deleted, counts, missing_permissions, [str(advice), *protected] if protected else protected

    @admin.display(description=_("OLTs"), ordering="olts_counted")
    def olt_count(self, group: OltGroup) -> SafeString:
        """Tell how many OLTs it has, and lead to them."""
        place = f"{reverse('admin:hosts_olt_changelist')}?group__id__exact={group.pk}"
        return format_html('<a href="{}">{}</a>', place, getattr(group, "olts_counted", 0))


@admin.register(Pause)
class PauseAdmin(LongListAdmin):
    """Times without polling, past ones included: they excuse the slots that went by."""

    form = PauseForm
    list_display = ["place", "starts_at", "ends_at", "note"]
    list_filter = [OltFilter]
    search_fields = ["olt__name", "note"]
    actions = ["end_now"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pause]:
        """Load the OLT of each pause along, without its secrets."""
        return super().get_queryset(request).select_related("olt").defer(*without_secrets())

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """End a pause instead: a deleted one would turn excused slots into missed ones."""
        return False

    @admin.display(description=_("OLT"), ordering="olt__name")
    def place(self, pause: Pause) -> str:
        """Name what is paused."""
        return pause.olt.name if pause.olt else str(_("everything"))

    def save_model(self, request: HttpRequest, obj: Pause, form: Any, change: bool) -> None:
        """Write the pause, and tell for how many OLTs it holds."""
        super().save_model(request, obj, form, change)
        olts = Olt.objects.filter(enabled=True) if obj.olt_id is None else Olt.objects.filter(id=obj.olt_id)
        number = olts.count()
        told = ngettext(
            "%(n)s OLT is not polled while this pause lasts.",
            "%(n)s OLTs are not polled while this pause lasts.",
            number,
        )
        self.message_user(request, told % {"n": number}, messages.WARNING)

    @admin.action(description=_("End now"))
    @transaction.atomic
    def end_now(self, request: HttpRequest, queryset: QuerySet[Pause]) -> None:
        """End the pauses that were chosen; those that are over stay as they are."""
        now = timezone.now()
        ended = [pause for pause in queryset if end_pause(pause.pk, now=now)]
        write_down(request, ended, CHANGE, _("Ended."))
        told = ngettext("%(n)s pause ended.", "%(n)s pauses ended.", len(ended)) % {"n": len(ended)}
        self.message_user(request, told)


@admin.register(OltData)
class OltDataAdmin(ReadOnlyAdmin):
    """What OLTs tell of themselves, as it was last read."""

    list_display = ["title", "place", "olt", "shown", "growth", "updated_at"]
    list_filter = [OltFilter]
    search_fields = ["name", "place", "oid"]
    readonly_fields = ["title", "shown", "growth"]

    @admin.display(description=_("name"), ordering="name")
    def title(self, value: OltData) -> str:
        """Name it for people."""
        return title_of(value.name) or value.oid

    @admin.display(description=_("value"), ordering="value")
    def shown(self, value: OltData) -> str:
        """Write it in words or with its unit."""
        return shown_value(value.name, value.value, value.unit)

    @admin.display(description=_("growth"), ordering="per_second")
    def growth(self, value: OltData) -> str:
        """Tell the traffic."""
        return shown_growth(value.per_second, value.unit)


@admin.register(WaitingOnu)
class WaitingOnuAdmin(ReadOnlyAdmin):
    """ONUs that OLTs have found and that nobody has authorised."""

    list_display = ["serial", "olt", "pon_port", "model", "first_seen_at", "last_seen_at"]
    list_filter = [OltFilter]
    search_fields = ["serial", "model", "olt__name"]

    @admin.display(description=_("PON port"))
    def pon_port(self, onu: WaitingOnu) -> str:
        """Tell where it hangs."""
        return onu.pon_port


_LOOKS = {Reachability.UP.value: "good", Reachability.DOWN.value: "bad", Reachability.UNKNOWN.value: "quiet"}

# What a request looked up, as its form finds it.
_ADDRESSES = "_facho_addresses"


class OltAdmin(CsvAdmin):
    """OLTs: what an operator decides, and what the last operation learned. Secrets are taken, never shown."""

    form = OltForm
    empty_value_display = ""
    list_display = ["name", "state", "group", "vendor", "place", "answered"]
    list_filter = ["enabled", "reachability", "group", "vendor", "snmp_version"]
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
        (_("SNMP"), {"fields": ["snmp_version", new_secret("community")]}),
        (
            _("SNMPv3"),
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
        (_("Gentleness"), {"classes": ["collapse"], "fields": ["max_in_flight", "packets_per_second"]}),
        (_("Distributed mode"), {"classes": ["collapse"], "fields": ["poller_group"]}),
        (_("Learned"), {"fields": tuple(readonly_fields)}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Olt]:
        """Leave the secrets in the database."""
        return stored_olts().select_related("model__brand", "group")

    @admin.display(description=_("state"), ordering="reachability")
    def state(self, olt: Olt) -> SafeString:
        """Draw whether it is polled, and whether it answers."""
        if not olt.enabled:
            return badge("quiet", _("disabled"))
        return badge(_LOOKS[olt.reachability], olt.get_reachability_display())

    @admin.display(description=_("host"), ordering="host")
    def place(self, olt: Olt) -> str:
        """Name where it is asked."""
        return f"{olt.host}:{olt.port}"

    @admin.display(description=_("last error"))
    def error(self, olt: Olt) -> str:
        """Say what went wrong last, or why a device that is no OLT is not polled."""
        return olt.last_error or refusal_of(olt)

    @admin.display(description=_("last answer"), ordering="last_answer_at")
    def answered(self, olt: Olt) -> SafeString | str:
        """Write when it was last heard."""
        return short_time(olt.last_answer_at)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Keep the inputs for secrets out of the columns that Django reads and writes; hand over what was looked up."""
        kwargs["fields"] = OltForm.Meta.fields
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.addresses = getattr(request, _ADDRESSES, {})
        return form

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Look the host up before Django opens a transaction: nobody could write while a name server thinks."""
        setattr(request, _ADDRESSES, resolve_all({request.POST.get("host", "").strip()} - {""}))
        return super().changeform_view(request, *args, **kwargs)

    @transaction.atomic
    def save_model(self, request: HttpRequest, obj: Olt, form: "ModelForm[Olt]", change: bool) -> None:
        """Write what the form decides, with the secrets that were filled in."""
        if not isinstance(form, OltForm):
            raise TypeError(type(form))
        for name, secret in form.given_secrets().items():
            setattr(obj, name, secret)
        obj.save(update_fields=form.changed_columns() if change else None)
        if not change or "vendor" in form.changed_data:
            self.after_save(obj)
