"""Every address below /api/v1/."""

from django.urls import include, path
from django.views.generic import RedirectView
from rest_framework.routers import SimpleRouter

from facho.api import coordinator
from facho.api.alerts import AlertChannelViewSet, AlertRuleViewSet, AlertViewSet, ChannelNoticeViewSet
from facho.api.coordinator import FeasibilityView
from facho.api.events import EventViewSet, OutageOnusView, OutageViewSet
from facho.api.history import (
    OltValueHistoryView,
    OnuHistoryView,
    OnuValueHistoryView,
    PollerHistoryView,
    PortHistoryView,
)
from facho.api.jobs import JobViewSet
from facho.api.light import LightFindingViewSet, PortTreeView
from facho.api.nodes import (
    ExecutionViewSet,
    NodeViewSet,
    PollersEndpoint,
    QueueEndpoint,
    RunNodeOnceView,
    StatsEndpoint,
)
from facho.api.olts import OltDataView, OltViewSet, OnuDataView, PauseViewSet, WaitingOnuViewSet
from facho.api.onus import CustomersView, OnuReadView, OnuViewSet, PonPortViewSet
from facho.api.people import OltGroupViewSet, TokenViewSet, UserViewSet
from facho.api.reports import ReportMonthsView, ReportOnusView, ReportView
from facho.api.shared.schema import docs, schema

router = SimpleRouter()
router.register("olts", OltViewSet, basename="olt")
router.register("jobs", JobViewSet, basename="job")
router.register("nodes", NodeViewSet, basename="node")
router.register("executions", ExecutionViewSet, basename="execution")
router.register("pauses", PauseViewSet, basename="pause")
router.register("pon-ports", PonPortViewSet, basename="pon-port")
router.register("onus", OnuViewSet, basename="onu")
router.register("waiting-onus", WaitingOnuViewSet, basename="waiting-onu")
router.register("events", EventViewSet, basename="event")
router.register("outages", OutageViewSet, basename="outage")
router.register("light-findings", LightFindingViewSet, basename="light-finding")
router.register("alerts", AlertViewSet, basename="alert")
router.register("alert-rules", AlertRuleViewSet, basename="alert-rule")
router.register("quotas", coordinator.QuotaViewSet, basename="quota")
router.register("violations", coordinator.ViolationViewSet, basename="violation")
router.register("plans", coordinator.PlanViewSet, basename="plan")
router.register("alert-channels", AlertChannelViewSet, basename="alert-channel")
router.register("users", UserViewSet, basename="user")
router.register("olt-groups", OltGroupViewSet, basename="olt-group")
router.register("tokens", TokenViewSet, basename="token")
router.register("coordinator/logs", coordinator.LogViewSet, basename="coordinator-log")

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs"), name="api"),
    path("", include(router.urls)),
    path("olts/<int:olt_id>/feasibility/", FeasibilityView.as_view(), name="olt-feasibility"),
    path("olts/<int:olt_id>/data/", OltDataView.as_view(), name="olt-data"),
    path("olts/<int:olt_id>/data/history/", OltValueHistoryView.as_view(), name="olt-data-history"),
    path("onus/<int:onu_id>/data/history/", OnuValueHistoryView.as_view(), name="onu-data-history"),
    path("onus/<int:onu_id>/data/", OnuDataView.as_view(), name="onu-data"),
    path("onus/<int:onu_id>/read/", OnuReadView.as_view(), name="onu-read-api"),
    path("onus/<int:onu_id>/history/", OnuHistoryView.as_view(), name="onu-history"),
    path("customers/", CustomersView.as_view(), name="customers"),
    path("pon-ports/<int:pon_port_id>/tree/", PortTreeView.as_view(), name="pon-port-tree"),
    path("pon-ports/<int:pon_port_id>/history/", PortHistoryView.as_view(), name="pon-port-history"),
    path(
        "alert-channels/<int:channel_id>/notices/",
        ChannelNoticeViewSet.as_view({"get": "list"}),
        name="alert-channel-notices",
    ),
    path("outages/<int:outage_id>/onus/", OutageOnusView.as_view(), name="outage-onus"),
    path("reports/", ReportMonthsView.as_view(), name="report-months"),
    path("reports/<str:month>/", ReportView.as_view(), name="report"),
    path("reports/<str:month>/onus/", ReportOnusView.as_view(), name="report-onus"),
    path("coordinator/state/", coordinator.StateView.as_view(), name="coordinator-state"),
    path("pollers/", PollersEndpoint.as_view(), name="pollers"),
    path("pollers/queue/", QueueEndpoint.as_view(), name="pollers-queue"),
    path("pollers/stats/", StatsEndpoint.as_view(), name="pollers-stats"),
    path("pollers/stats/history/", PollerHistoryView.as_view(), name="pollers-stats-history"),
    path("pollers/nodes/<int:node_id>/run/", RunNodeOnceView.as_view(), name="pollers-run"),
    path("schema/", schema, name="schema"),
    path("docs/", docs, name="api-docs"),
]
