"""The pages of what went wrong and of what waits for somebody: alerts, outages, events, violations, waiting ONUs."""

from django.urls import path

from facho.dashboard.alerts_page import alert_acknowledge, alert_page, alerts_page
from facho.dashboard.events_page import events_page
from facho.dashboard.outage_page import outage_acknowledge, outage_page, outage_part
from facho.dashboard.outages_page import outages_page
from facho.dashboard.violations_page import violation_acknowledge, violation_page, violations_page
from facho.dashboard.waiting_page import waiting_export, waiting_page

urlpatterns = [
    path("alerts/", alerts_page, name="alerts"),
    path("alerts/<int:alert_id>/", alert_page, name="alert"),
    path("alerts/<int:alert_id>/acknowledge/", alert_acknowledge, name="acknowledge-alert"),
    path("outages/", outages_page, name="outages"),
    path("outages/<int:outage_id>/", outage_page, name="outage"),
    path("outages/<int:outage_id>/acknowledge/", outage_acknowledge, name="acknowledge-outage"),
    path("outages/<int:outage_id>/<slug:name>/", outage_part, name="outage-part"),
    path("events/", events_page, name="events"),
    path("violations/", violations_page, name="violations"),
    path("violations/<int:violation_id>/", violation_page, name="violation"),
    path("violations/<int:violation_id>/acknowledge/", violation_acknowledge, name="acknowledge-violation"),
    path("waiting/", waiting_page, name="waiting"),
    path("waiting/export/", waiting_export, name="waiting-export"),
]
