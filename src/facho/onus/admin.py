"""Admin pages of PON ports and ONUs; only the engine writes them."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin
from facho.onus.models import Onu, PonPort


@admin.register(PonPort)
class PonPortAdmin(ReadOnlyAdmin):
    """PON ports by their place."""

    list_display = ["__str__", "olt", "created_at"]
    list_filter = [OltFilter]
    search_fields = ["olt__name"]


@admin.register(Onu)
class OnuAdmin(ReadOnlyAdmin):
    """ONUs with their latest state and light."""

    list_display = ["serial", "description", "olt", "pon_port", "onu_id", "run_state", "rx_power_dbm", "is_present"]
    list_filter = ["is_present", "reading__run_state", OltFilter]
    search_fields = ["serial", "description"]
    readonly_fields = ["run_state", "rx_power_dbm"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Onu]:
        """Load port and reading along."""
        return super().get_queryset(request).select_related("pon_port", "reading")

    @admin.display(description=_("state"), ordering="reading__run_state")
    def run_state(self, onu: Onu) -> str:
        """Tell the state in words."""
        reading = getattr(onu, "reading", None)
        return reading.get_run_state_display() if reading else ""

    @admin.display(description=_("receive power (dBm)"), ordering="reading__rx_power_cdbm")
    def rx_power_dbm(self, onu: Onu) -> float | None:
        """Tell the light."""
        reading = getattr(onu, "reading", None)
        return reading.rx_power_dbm if reading else None
