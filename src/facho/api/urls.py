"""Every address below /api/v1/."""

from django.urls import include, path
from django.views.generic import RedirectView
from rest_framework.routers import SimpleRouter

from facho.api import alerts, coordinator, events, history, jobs, light, nodes, olts, onus, people, reports
from facho.api.shared.schema import docs, schema

router = SimpleRouter()
router.register("olts", olts.OltViewSet, basename="olt")
router.register("jobs", jobs.JobViewSet, basename="job")
router.register("nodes", nodes.NodeViewSet, basename="node")
router.register("executions", nodes.ExecutionViewSet, basename="execution")
router.register("pauses", olts.PauseViewSet, basename="pause")
router.register("pon-ports", onus.PonPortViewSet, basename="pon-port")
router.register("onus", onus.OnuViewSet, basename="onu")
router.register("waiting-onus", olts.WaitingOnuViewSet, basename="waiting-onu")
router.register("events", events.EventViewSet, basename="event")
router.register("outages", events.OutageViewSet, basename="outage")
router.register("light-findings", light.LightFindingViewSet, basename="light-finding")
router.register("alerts", alerts.AlertViewSet, basename="alert")
router.register("alert-rules", alerts.AlertRuleViewSet, basename="alert-rule")
router.register("quotas", coordinator.QuotaViewSet, basename="quota")
router.register("violations", coordinator.ViolationViewSet, basename="violation")
router.register("plans", coordinator.PlanViewSet, basename="plan")
router.register("alert-channels", alerts.AlertChannelViewSet, basename="alert-channel")
router.register("users", people.UserViewSet, basename="user")
router.register("olt-groups", people.OltGroupViewSet, basename="olt-group")
router.register("tokens", people.TokenViewSet, basename="token")
router.register("coordinator/logs", coordinator.LogViewSet, basename="coordinator-log")

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs"), name="api"),
    path("", include(router.urls)),
    path("olts/<int:olt_id>/feasibility/", coordinator.FeasibilityView.as_view(), name="olt-feasibility"),
    path("olts/<int:olt_id>/data/", olts.OltDataView.as_view(), name="olt-data"),
    path("olts/<int:olt_id>/data/history/", history.OltValueHistoryView.as_view(), name="olt-data-history"),
    path("onus/<int:onu_id>/data/history/", history.OnuValueHistoryView.as_view(), name="onu-data-history"),
    path("onus/<int:onu_id>/data/", olts.OnuDataView.as_view(), name="onu-data"),
    path("onus/<int:onu_id>/read/", onus.OnuReadView.as_view(), name="onu-read-api"),
    path("onus/<int:onu_id>/history/", history.OnuHistoryView.as_view(), name="onu-history"),
    path("customers/", onus.CustomersView.as_view(), name="customers"),
    path("pon-ports/<int:pon_port_id>/tree/", light.PortTreeView.as_view(), name="pon-port-tree"),
    path("pon-ports/<int:pon_port_id>/history/", history.PortHistoryView.as_view(), name="pon-port-history"),
    path(
        "alert-channels/<int:channel_id>/notices/",
        alerts.ChannelNoticeViewSet.as_view({"get": "list"}),
        name="alert-channel-notices",
    ),
    path("outages/<int:outage_id>/onus/", events.OutageOnusView.as_view(), name="outage-onus"),
    path("reports/", reports.ReportMonthsView.as_view(), name="report-months"),
    path("reports/<str:month>/", reports.ReportView.as_view(), name="report"),
    path("reports/<str:month>/onus/", reports.ReportOnusView.as_view(), name="report-onus"),
    path("coordinator/state/", coordinator.StateView.as_view(), name="coordinator-state"),
    path("pollers/", nodes.PollersEndpoint.as_view(), name="pollers"),
    path("pollers/queue/", nodes.QueueEndpoint.as_view(), name="pollers-queue"),
    path("pollers/stats/", nodes.StatsEndpoint.as_view(), name="pollers-stats"),
    path("pollers/stats/history/", history.PollerHistoryView.as_view(), name="pollers-stats-history"),
    path("pollers/nodes/<int:node_id>/run/", nodes.RunNodeOnceView.as_view(), name="pollers-run"),
    path("schema/", schema, name="schema"),
    path("docs/", docs, name="api-docs"),
]
