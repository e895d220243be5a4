"""Admin pages of OLTs, their brands and models."""

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.hosts.inventory import stored_olts
from facho.hosts.models import Brand, Olt, OltModel
from facho.hosts.olt_form import OltForm, new_secret


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


class OltAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """OLTs: what an operator decides, and what the last operation learned. Secrets are taken, never shown."""

    form = OltForm
    list_display = ["name", "host", "port", "vendor", "model", "enabled", "reachability", "last_answer_at"]
    list_filter = ["enabled", "reachability", "vendor", "snmp_version"]
    search_fields = ["name", "host", "address", "sys_name"]
    readonly_fields = [
        "address",
        "model",
        "reachability",
        "last_answer_at",
        "last_error",
        "sys_name",
        "sys_descr",
        "sys_object_id",
    ]
    fieldsets = [
        (None, {"fields": ["name", "host", "port", "vendor", "enabled"]}),
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
        (_("Learned"), {"fields": tuple(readonly_fields)}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Olt]:
        """Leave the secrets in the database."""
        return stored_olts().select_related("model__brand")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Keep the inputs for secrets out of the columns that Django reads and writes."""
        kwargs["fields"] = OltForm.Meta.fields
        return super().get_form(request, obj, change, **kwargs)

    @transaction.atomic
    def save_model(self, request: HttpRequest, obj: Olt, form: "ModelForm[Olt]", change: bool) -> None:
        """Write what the form decides, with the secrets that were filled in."""
        if not isinstance(form, OltForm):
            raise TypeError(type(form))
        for name, secret in form.given_secrets().items():
            setattr(obj, name, secret)
        obj.save(update_fields=form.changed_columns() if change else None)
        self.after_save(obj, is_new=not change, has_other_vendor="vendor" in form.changed_data)

    def after_save(self, olt: Olt, *, is_new: bool, has_other_vendor: bool) -> None:
        """Do what rooms above need; nothing here."""
