"""Admin pages of PON ports, ONUs, their events and outages; only the engine writes them, but for the customers."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.hosts.admin import OltFilter
from facho.infrastructure.admin_pages import ReadOnlyAdmin, RecentFilter
from facho.onus.customers import CustomerForm
from facho.onus.models import Onu, OnuCustomer, OnuData, OnuEvent, Outage, PonPort
from facho.onus.search import of_state, of_text
from facho.onus.shown_state import shown_state
from facho.onus.words import ShownState


class OnuSearch(ReadOnlyAdmin):
    # The path from a row to its ONU; empty for ONUs themselves.
    onu_path = "onu__in"
    search_help_text = _("Serial, description, name or customer; at least three characters.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
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
    list_display = ["__str__", "olt", "created_at"]
    list_filter = [OltFilter]
    search_fields = ["olt__name"]


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(ShownState.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Onu]) -> QuerySet[Onu]:
        value = self.value()
        return queryset.filter(of_state(value)) if value in ShownState.values else queryset


class CustomerInline(admin.StackedInline):  # type: ignore[type-arg]
    model = OnuCustomer
    form = CustomerForm
    can_delete = False


@admin.register(Onu)
class OnuAdmin(OnuSearch):
    """ONUs with their latest state and light; customers can be edited, ONUs that have left can be deleted."""

    list_display = ["serial", "description", "olt", "pon_port", "onu_id", "run_state", "rx_power_dbm", "is_present"]
    list_filter = [StateFilter, OltFilter]
    search_fields = ["serial"]
    onu_path = ""
    ordering = ["serial", "id"]
    sortable_by = ["serial", "description"]
    inlines = [CustomerInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Onu]:
        return super().get_queryset(request).select_related("pon_port", "reading")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*(field.name for field in Onu._meta.concrete_fields), "run_state", "rx_power_dbm"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow deleting a single ONU that has left; its history goes with it."""
        has_left = obj is not None and not obj.is_present
        return has_left and admin.ModelAdmin.has_delete_permission(self, request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, set[str], Any]:
        """Ask for no permission on its events, which cannot be deleted on their own."""
        deleted, counts, _permissions, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    @admin.display(description=_("state"), ordering="reading__run_state")
    def run_state(self, onu: Onu) -> str:
        return str(shown_state(onu).label)

    @admin.display(description=_("receive power (dBm)"), ordering="reading__rx_power_cdbm")
    def rx_power_dbm(self, onu: Onu) -> float | None:
        reading = getattr(onu, "reading", None)
        return reading.rx_power_dbm if reading else None


@admin.register(OnuData)
class OnuDataAdmin(ReadOnlyAdmin):
    """One line per OLT and OID; the values of an ONU are on its page."""

    list_display = ["olt", "oid", "onus", "updated_at"]
    list_filter = [OltFilter]
    search_fields = ["olt__name", "oid"]
    ordering = ["olt_id", "oid"]
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[OnuData]:
        return super().get_queryset(request).defer("block")


class EventTimeFilter(RecentFilter):
    time_field = "at"


@admin.register(OnuEvent)
class OnuEventAdmin(OnuSearch):
    list_display = ["at", "kind", "onu", "olt", "pon_port", "onu_number", "cause", "before", "after"]
    list_filter = [EventTimeFilter, "kind", "cause", OltFilter]
    search_fields = ["onu__serial"]
    sortable_by = ["at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[OnuEvent]:
        return super().get_queryset(request).select_related("onu__pon_port", "pon_port", "other_port")


@admin.register(Outage)
class OutageAdmin(ReadOnlyAdmin):
    list_display = ["started_at", "ended_at", "scope", "olt", "place", "cause", "affected", "down", "affected_olts"]
    list_filter = [("ended_at", admin.EmptyFieldListFilter), "scope", "cause", OltFilter]
    search_fields = ["olt__name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Outage]:
        return super().get_queryset(request).select_related("part_of")
