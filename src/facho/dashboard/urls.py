"""The pages that people look at, and the parts of them that refresh themselves."""

from django.urls import include, path

from facho.dashboard.olt_acts import olt_pause, olt_pause_end, olt_resume, olt_run
from facho.dashboard.olt_page import olt_page, olt_part
from facho.dashboard.onu_page import onu_page, onu_part
from facho.dashboard.onu_reading import onu_read, onu_reading
from facho.dashboard.search_page import search_page, search_suggestions
from facho.dashboard.views import onus, overview, overview_hour, overview_live

urlpatterns = [
    path("", overview, name="dashboard"),
    path("live/", overview_live, name="dashboard-live"),
    path("live/hour/", overview_hour, name="dashboard-hour"),
    path("olts/add/", include("facho.dashboard.first_run.urls")),
    path("olts/<int:olt_id>/", olt_page, name="olt"),
    path("olts/<int:olt_id>/pause/", olt_pause, name="olt-pause"),
    path("olts/<int:olt_id>/pause/end/", olt_pause_end, name="olt-pause-end"),
    path("olts/<int:olt_id>/nodes/<int:node_id>/run/", olt_run, name="olt-run"),
    path("olts/<int:olt_id>/nodes/<int:node_id>/resume/", olt_resume, name="olt-resume"),
    path("olts/<int:olt_id>/<slug:name>/", olt_part, name="olt-part"),
    path("search/", search_page, name="search"),
    path("search/suggestions/", search_suggestions, name="search-suggestions"),
    path("onus/", onus, name="onus"),
    path("onus/<int:onu_id>/", onu_page, name="onu"),
    path("onus/<int:onu_id>/read/", onu_read, name="onu-read"),
    path("onus/<int:onu_id>/reading/", onu_reading, name="onu-reading"),
    path("onus/<int:onu_id>/<slug:name>/", onu_part, name="onu-part"),
    path("", include("facho.dashboard.trouble_urls")),
]
