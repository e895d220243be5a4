"""The pages of what went wrong and what waits for somebody: outages."""

from django.urls import path

from facho.dashboard.outage_page import outage_acknowledge, outage_page, outage_part
from facho.dashboard.outages_page import outages_page

urlpatterns = [
    path("outages/", outages_page, name="outages"),
    path("outages/<int:outage_id>/", outage_page, name="outage"),
    path("outages/<int:outage_id>/acknowledge/", outage_acknowledge, name="outage-acknowledge"),
    path("outages/<int:outage_id>/<slug:name>/", outage_part, name="outage-part"),
]
