"""Admin page of pollers; only the engine writes them."""

from django.contrib import admin

from facho.infrastructure.admin_pages import ReadOnlyAdmin
from facho.zabbix_pollers.models import Poller


@admin.register(Poller)
class PollerAdmin(ReadOnlyAdmin):
    list_display = [
        "poller_id",
        "status",
        "current_node_id",
        "tasks_completed",
        "tasks_delayed",
        "busy_time",
        "total_time",
    ]
    list_filter = ["status"]
    olt_path = ""
