"""Addresses that other systems ask."""

from django.urls import include, path

from facho.neighbours import smartolt_views as smartolt
from facho.neighbours.onu_metrics import OnuMetricsView

# As SmartOLT has them, without a slash at the end.
smartolt_calls = [
    path("system/get_olts", smartolt.OltsView.as_view(), name="smartolt-olts"),
    path("system/get_zones", smartolt.ZonesView.as_view(), name="smartolt-zones"),
    path("system/get_odbs/<int:zone_id>", smartolt.BoxesView.as_view(), name="smartolt-odbs"),
    path("system/get_olt_pon_ports_details/<int:olt_id>", smartolt.PortsView.as_view(), name="smartolt-ports"),
    path("system/get_outage_pons/<int:olt_id>", smartolt.OutagePortsView.as_view(), name="smartolt-outage-ports"),
    path("olt/get_olts_uptime_and_env_temperature", smartolt.UptimesView.as_view(), name="smartolt-uptimes"),
    path("onu/get_onus_statuses", smartolt.StatusesView.as_view(), name="smartolt-statuses"),
    path("onu/get_onus_signals", smartolt.SignalsView.as_view(), name="smartolt-signals"),
    path("onu/get_onus_administrative_statuses", smartolt.AdminStatusesView.as_view(), name="smartolt-admin-statuses"),
    path("onu/get_all_onus_details", smartolt.AllDetailsView.as_view(), name="smartolt-all-details"),
    path("onu/get_all_onus_gps_coordinates", smartolt.PointsView.as_view(), name="smartolt-points"),
    path("onu/unconfigured_onus", smartolt.WaitingView.as_view(), name="smartolt-waiting"),
    path("onu/unconfigured_onus_for_olt/<int:olt_id>", smartolt.WaitingView.as_view(), name="smartolt-waiting-of-olt"),
    path("onu/get_onu_status/<str:external_id>", smartolt.StatusView.as_view(), name="smartolt-status"),
    path("onu/get_onu_signal/<str:external_id>", smartolt.SignalView.as_view(), name="smartolt-signal"),
    path(
        "onu/get_onu_administrative_status/<str:external_id>",
        smartolt.AdminStatusView.as_view(),
        name="smartolt-admin-status",
    ),
    path("onu/get_onu_details/<str:external_id>", smartolt.DetailsView.as_view(), name="smartolt-details"),
    path(
        "onu/get_onus_details_by_sn/<str:external_id>",
        smartolt.DetailsBySerialView.as_view(),
        name="smartolt-by-serial",
    ),
    path("<path:call>", smartolt.OtherCallView.as_view(), name="smartolt-other"),
]

urlpatterns = [
    path("smartolt/api/", include(smartolt_calls)),
    path("metrics/onus", OnuMetricsView.as_view(), name="onu-metrics"),
]
