"""Admin pages of PON ports, ONUs, their events and outages; only the engine writes them, but for the customers."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin, RecentFilter
from facho.onus.customers import FIELDS, tidy_tags
from facho.onus.models import Onu, OnuCustomer, OnuData, OnuEvent, Outage, PonPort
from facho.onus.search import of_state, of_text
from facho.onus.shown_state import shown_state
from facho.onus.words import ShownState


class OnuSearch(ReadOnlyAdmin):
    """A list that is searched by what the OLT or people wrote about an ONU, by the indexes made for it."""

    # The path from a row to its ONU; empty for ONUs themselves.
    onu_path = "onu__in"
    search_help_text = _("Serial, description, name or customer; at least three letters.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Narrow to the ONUs that the words are about."""
        if not search_term.strip():
            return queryset, False
        try:
            found = of_text(search_term)
        except ValueError as error:
            self.message_user(request, str(error), messages.WARNING)
            return queryset.none(), False
        is_meant = Q(**{self.onu_path: Onu.objects.filter(found).values("pk")}) if self.onu_path else found
        return queryset.filter(is_meant), False


@admin.register(PonPort)
class PonPortAdmin(ReadOnlyAdmin):
    """PON ports by their place."""

    list_display = ["__str__", "olt", "created_at"]
    list_filter = [OltFilter]
    search_fields = ["olt__name"]


class StateFilter(admin.SimpleListFilter):
    """Narrows to the ONUs of which one thing may be said now."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer every state."""
        return list(ShownState.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Onu]) -> QuerySet[Onu]:
        """Narrow to the chosen state."""
        value = self.value()
        return queryset.filter(of_state(value)) if value in ShownState.values else queryset


class CustomerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """A customer as people type it."""

    class Meta:
        model = OnuCustomer
        fields = FIELDS

    def clean_tags(self) -> str:
        """Write the tags one way."""
        return tidy_tags(self.cleaned_data["tags"])


class CustomerInline(admin.StackedInline):  # type: ignore[type-arg]
    """The part of an ONU that people write."""

    model = OnuCustomer
    form = CustomerForm
    can_delete = False


@admin.register(Onu)
class OnuAdmin(OnuSearch):
    """ONUs with their latest state and light; their customers can be edited, and who has left can be deleted."""

    list_display = ["serial", "description", "olt", "pon_port", "onu_id", "run_state", "rx_power_dbm", "is_present"]
    list_filter = [StateFilter, OltFilter]
    search_fields = ["serial"]
    onu_path = ""
    ordering = ["serial", "id"]
    sortable_by = ["serial", "description"]
    inlines = [CustomerInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Onu]:
        """Load port and reading along."""
        return super().get_queryset(request).select_related("pon_port", "reading")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Show everything that polls write as text."""
        return [*(field.name for field in Onu._meta.concrete_fields), "run_state", "rx_power_dbm"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let customers be edited; all else is read-only."""
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let a person delete an ONU that has left, one by one: its history goes with it."""
        has_left = obj is not None and not obj.is_present
        return has_left and admin.ModelAdmin.has_delete_permission(self, request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, set[str], Any]:
        """Ask no permission for its events, which nobody may delete by themselves."""
        deleted, counts, _permissions, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    @admin.display(description=_("state"), ordering="reading__run_state")
    def run_state(self, onu: Onu) -> str:
        """Tell in words what may be said of it now."""
        return str(shown_state(onu).label)

    @admin.display(description=_("receive power (dBm)"), ordering="reading__rx_power_cdbm")
    def rx_power_dbm(self, onu: Onu) -> float | None:
        """Tell the light."""
        reading = getattr(onu, "reading", None)
        return reading.rx_power_dbm if reading else None


@admin.register(OnuData)
class OnuDataAdmin(OnuSearch):
    """The latest raw value of each ONU and OID."""

    olt_path = "onu__olt"
    list_display = ["onu", "oid", "value", "updated_at"]
    search_fields = ["onu__serial"]
    ordering = ["onu_id", "oid"]
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[OnuData]:
        """Load the place of each ONU along."""
        return super().get_queryset(request).select_related("onu__pon_port")


class EventTimeFilter(RecentFilter):
    """Narrows the timeline to its end."""

    time_field = "at"


@admin.register(OnuEvent)
class OnuEventAdmin(OnuSearch):
    """The timeline of all ONUs."""

    list_display = ["at", "kind", "onu", "olt", "pon_port", "onu_number", "cause", "before", "after"]
    list_filter = [EventTimeFilter, "kind", "cause", OltFilter]
    search_fields = ["onu__serial"]
    sortable_by = ["at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[OnuEvent]:
        """Load ONU and ports along."""
        return super().get_queryset(request).select_related("onu__pon_port", "pon_port", "other_port")


@admin.register(Outage)
class OutageAdmin(ReadOnlyAdmin):
    """What is out and what was."""

    list_display = ["started_at", "ended_at", "scope", "olt", "place", "cause", "affected", "down", "affected_olts"]
    list_filter = [("ended_at", admin.EmptyFieldListFilter), "scope", "cause", OltFilter]
    search_fields = ["olt__name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Outage]:
        """Load the larger outage along."""
        return super().get_queryset(request).select_related("part_of")
