"""The pages that people look at, and the parts of them that refresh themselves."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from facho.dashboard.account.views import (
    Login,
    account,
    add_token,
    change_password,
    change_preferences,
    revoke_token,
    setup,
)
from facho.dashboard.alerts.views import alert_acknowledge, alert_page, alerts_page
from facho.dashboard.events.views import events_page
from facho.dashboard.first_run.views import add, choose_jobs, choose_vendor, correct, setup_step, test_again
from facho.dashboard.first_run.views import setup as setup_olt
from facho.dashboard.olt.views import olt_page, olt_part, olt_pause, olt_pause_end, olt_resume, olt_run
from facho.dashboard.onu.views import onu_page, onu_part, onu_read, onu_reading, onus
from facho.dashboard.outage.views import outage_acknowledge, outage_page, outage_part, outages_page
from facho.dashboard.overview.views import overview, overview_hour, overview_live
from facho.dashboard.pollers.views import pollers_page
from facho.dashboard.search.views import search_page, search_suggestions
from facho.dashboard.traps.views import traps_page, traps_switch
from facho.dashboard.violations.views import violation_acknowledge, violation_page, violations_page
from facho.dashboard.waiting.views import waiting_export, waiting_page
from facho.dashboard.workbench.views import workbench_page

urlpatterns = [
    path("", overview, name="dashboard"),
    path("live/", overview_live, name="dashboard-live"),
    path("live/hour/", overview_hour, name="dashboard-hour"),
    path("olts/add/", add, name="olt-add"),
    path("olts/add/<int:olt_id>/", setup_olt, name="olt-setup"),
    path("olts/add/<int:olt_id>/step/", setup_step, name="olt-setup-step"),
    path("olts/add/<int:olt_id>/correct/", correct, name="olt-setup-correct"),
    path("olts/add/<int:olt_id>/test/", test_again, name="olt-setup-test"),
    path("olts/add/<int:olt_id>/vendor/", choose_vendor, name="olt-setup-vendor"),
    path("olts/add/<int:olt_id>/jobs/", choose_jobs, name="olt-setup-jobs"),
    path("olts/<int:olt_id>/", olt_page, name="olt"),
    path("olts/<int:olt_id>/pause/", olt_pause, name="olt-pause"),
    path("olts/<int:olt_id>/pause/end/", olt_pause_end, name="olt-pause-end"),
    path("olts/<int:olt_id>/nodes/<int:node_id>/run/", olt_run, name="olt-run"),
    path("olts/<int:olt_id>/nodes/<int:node_id>/resume/", olt_resume, name="olt-resume"),
    path("olts/<int:olt_id>/<slug:name>/", olt_part, name="olt-part"),
    path("pollers/", pollers_page, name="poller-load"),
    path("search/", search_page, name="search"),
    path("search/suggestions/", search_suggestions, name="search-suggestions"),
    path("onus/", onus, name="onus"),
    path("onus/<int:onu_id>/", onu_page, name="onu"),
    path("onus/<int:onu_id>/read/", onu_read, name="onu-read"),
    path("onus/<int:onu_id>/reading/", onu_reading, name="onu-reading"),
    path("onus/<int:onu_id>/<slug:name>/", onu_part, name="onu-part"),
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
    path("traps/", traps_page, name="traps"),
    path("traps/switch/", traps_switch, name="traps-switch"),
    path("waiting/", waiting_page, name="waiting"),
    path("waiting/export/", waiting_export, name="waiting-export"),
    path("workbench/", workbench_page, name="workbench"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", setup, name="setup"),
    path("account/", account, name="account"),
    path("account/password/", change_password, name="account-password"),
    path("account/reading/", change_preferences, name="account-reading"),
    path("account/tokens/", add_token, name="account-tokens"),
    path("account/tokens/<int:token_id>/revoke/", revoke_token, name="account-revoke"),
]
