"""The pages that people look at, and the parts of them that refresh themselves."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from facho.dashboard.account import factors, passkeys, sign_on
from facho.dashboard.account import views as account
from facho.dashboard.alerts import setup as alert_setup
from facho.dashboard.alerts import views as alerts
from facho.dashboard.events import views as events
from facho.dashboard.first_run import views as first_run
from facho.dashboard.light import tree
from facho.dashboard.light import views as light
from facho.dashboard.olt import history as olt_history
from facho.dashboard.olt import jobs as olt_jobs
from facho.dashboard.olt import list as olt_list
from facho.dashboard.olt import views as olt
from facho.dashboard.onu import views as onu
from facho.dashboard.outage import views as outage
from facho.dashboard.overview import views as overview
from facho.dashboard.plant import map as plant_map
from facho.dashboard.plant import views as plant
from facho.dashboard.pollers import views as pollers
from facho.dashboard.port import views as port
from facho.dashboard.reports import views as reports
from facho.dashboard.search import views as search
from facho.dashboard.settings import maintenance, olts, people, webhooks
from facho.dashboard.shared import table
from facho.dashboard.status import views as status
from facho.dashboard.traps import views as traps
from facho.dashboard.violations import views as violations
from facho.dashboard.waiting import views as waiting
from facho.dashboard.workbench import views as workbench

urlpatterns = [
    path("", overview.overview, name="dashboard"),
    path("live/", overview.overview_live, name="dashboard-live"),
    path("live/hour/", overview.overview_hour, name="dashboard-hour"),
    path("olts/", olt_list.olts_page, name="olts"),
    path("olts/act/", olt_list.olts_act, name="olts-act"),
    path("olts/add/", first_run.add, name="olt-add"),
    path("olts/add/<int:olt_id>/", first_run.setup, name="olt-setup"),
    path("olts/add/<int:olt_id>/step/", first_run.setup_step, name="olt-setup-step"),
    path("olts/add/<int:olt_id>/correct/", first_run.correct, name="olt-setup-correct"),
    path("olts/add/<int:olt_id>/test/", first_run.test_again, name="olt-setup-test"),
    path("olts/add/<int:olt_id>/vendor/", first_run.choose_vendor, name="olt-setup-vendor"),
    path("olts/add/<int:olt_id>/jobs/", first_run.choose_jobs, name="olt-setup-jobs"),
    path("olts/<int:olt_id>/", olt.olt_page, name="olt"),
    path("olts/<int:olt_id>/pause/", olt.olt_pause, name="olt-pause"),
    path("olts/<int:olt_id>/pause/end/", olt.olt_pause_end, name="olt-pause-end"),
    path("olts/<int:olt_id>/nodes/<int:node_id>/run/", olt.olt_run, name="olt-run"),
    path("olts/<int:olt_id>/nodes/<int:node_id>/resume/", olt.olt_resume, name="olt-resume"),
    path("olts/<int:olt_id>/jobs/<int:node_id>/", olt_jobs.olt_job, name="olt-job"),
    path("olts/<int:olt_id>/jobs/<int:node_id>/cost/", olt_jobs.olt_job_cost, name="olt-job-cost"),
    path("olts/<int:olt_id>/history/", olt_history.olt_history, name="olt-history"),
    path("olts/<int:olt_id>/history.csv", olt_history.olt_csv, name="olt-csv"),
    path("olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/", port.port_page, name="port"),
    path("olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/history.csv", port.port_csv, name="port-csv"),
    path("olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/<slug:name>/", port.port_part, name="port-part"),
    path("olts/<int:olt_id>/<slug:name>/", olt.olt_part, name="olt-part"),
    path("executions/", pollers.executions_page, name="executions"),
    path("pollers/", pollers.pollers_page, name="poller-load"),
    path("wall/", overview.wall, name="wall"),
    path("wall/live/", overview.wall_live, name="wall-live"),
    path("search/", search.search_page, name="search"),
    path("search/suggestions/", search.search_suggestions, name="search-suggestions"),
    path("onus/", onu.onus, name="onus"),
    path("onus/act/", onu.onus_act, name="onus-act"),
    path("onus/<int:onu_id>/", onu.onu_page, name="onu"),
    path("onus/<int:onu_id>/history.csv", onu.onu_csv, name="onu-csv"),
    path("onus/<int:onu_id>/read/", onu.onu_read, name="onu-read"),
    path("onus/<int:onu_id>/customer/", onu.onu_customer, name="onu-customer"),
    path("onus/<int:onu_id>/box/", plant.onu_box, name="onu-box"),
    path("onus/<int:onu_id>/reading/", onu.onu_reading, name="onu-reading"),
    path("onus/<int:onu_id>/<slug:name>/", onu.onu_part, name="onu-part"),
    path("map/", plant_map.map_page, name="map"),
    path("map/features/", plant_map.map_features, name="map-features"),
    path("boxes/", plant.boxes_page, name="boxes"),
    path("boxes/add/", plant.box_edit, name="box-add"),
    path("boxes/import/", plant.plant_import, name="plant-import"),
    path("boxes/export/<slug:kind>/", plant.plant_export, name="plant-export"),
    path("boxes/inferred/<int:pon_port_id>/", plant.inferred_boxes, name="boxes-inferred"),
    path("boxes/<int:box_id>/", plant.box_page, name="box"),
    path("boxes/<int:box_id>/edit/", plant.box_edit, name="box-edit"),
    path("boxes/<int:box_id>/delete/", plant.box_delete, name="box-delete"),
    path("zones/", plant.zones_page, name="zones"),
    path("alerts/", alerts.alerts_page, name="alerts"),
    path("alerts/<int:alert_id>/", alerts.alert_page, name="alert"),
    path("alerts/<int:alert_id>/acknowledge/", alerts.alert_acknowledge, name="acknowledge-alert"),
    path("acknowledge/<str:token>/", alerts.acknowledge_link, name="acknowledge-link"),
    path("outages/", outage.outages_page, name="outages"),
    path("outages/<int:outage_id>/", outage.outage_page, name="outage"),
    path("outages/<int:outage_id>/acknowledge/", outage.outage_acknowledge, name="acknowledge-outage"),
    path("outages/<int:outage_id>/<slug:name>/", outage.outage_part, name="outage-part"),
    path("events/", events.events_page, name="events"),
    path("light/", light.light_page, name="light"),
    path("light/<int:finding_id>/", light.finding_page, name="light-finding"),
    path("ports/<int:pon_port_id>/tree/", tree.tree_correct, name="port-tree"),
    path("ports/<int:pon_port_id>/tree/<int:number>/", tree.tree_box, name="tree-box"),
    path("reports/", reports.reports_page, name="reports"),
    path("reports/pdf/", reports.report_pdf, name="report-pdf"),
    path("reports/renew/", reports.report_renew, name="report-renew"),
    path("violations/", violations.violations_page, name="violations"),
    path("violations/<int:violation_id>/", violations.violation_page, name="violation"),
    path("violations/<int:violation_id>/acknowledge/", violations.violation_acknowledge, name="acknowledge-violation"),
    path("settings/channels/", alert_setup.channels_page, name="settings-channels"),
    path("settings/channels/address/", alert_setup.public_address_save, name="settings-address"),
    path("settings/channels/add/<slug:code>/", alert_setup.channel_add, name="settings-channel-add"),
    path("settings/channels/<int:channel_id>/", alert_setup.channel_page, name="settings-channel"),
    path("settings/channels/<int:channel_id>/test/", alert_setup.channel_test, name="settings-channel-test"),
    path(
        "settings/channels/<int:channel_id>/test/<int:notice_id>/",
        alert_setup.channel_test_result,
        name="settings-channel-result",
    ),
    path("settings/channels/<int:channel_id>/switch/", alert_setup.channel_switch, name="settings-channel-switch"),
    path("settings/channels/<int:channel_id>/revoke/", alert_setup.channel_revoke, name="settings-channel-revoke"),
    path("settings/channels/<int:channel_id>/delete/", alert_setup.channel_delete, name="settings-channel-delete"),
    path("settings/rules/", alert_setup.rules_page, name="settings-rules"),
    path("settings/rules/add/", alert_setup.rule_add, name="settings-rule-add"),
    path("settings/rules/<int:rule_id>/", alert_setup.rule_save, name="settings-rule"),
    path("settings/rules/<int:rule_id>/delete/", alert_setup.rule_delete, name="settings-rule-delete"),
    path("settings/webhooks/", webhooks.webhooks_page, name="settings-webhooks"),
    path("settings/webhooks/add/", webhooks.webhook_add, name="settings-webhook-add"),
    path("settings/webhooks/<int:webhook_id>/", webhooks.webhook_page, name="settings-webhook"),
    path("settings/webhooks/<int:webhook_id>/test/", webhooks.webhook_test, name="settings-webhook-test"),
    path(
        "settings/webhooks/<int:webhook_id>/test/<int:delivery_id>/",
        webhooks.webhook_test_result,
        name="settings-webhook-result",
    ),
    path("settings/webhooks/<int:webhook_id>/replay/", webhooks.webhook_replay, name="settings-webhook-replay"),
    path("settings/webhooks/<int:webhook_id>/switch/", webhooks.webhook_switch, name="settings-webhook-switch"),
    path("settings/webhooks/<int:webhook_id>/delete/", webhooks.webhook_delete, name="settings-webhook-delete"),
    path("status/", status.status_page, name="status"),
    path("traps/", traps.traps_page, name="traps"),
    path("traps/switch/", traps.traps_switch, name="traps-switch"),
    path("waiting/", waiting.waiting_page, name="waiting"),
    path("waiting/export/", waiting.waiting_export, name="waiting-export"),
    path("views/", table.saved_views, name="views"),
    path("views/<int:view_id>/delete/", table.delete_view, name="view-delete"),
    path("settings/customers/", onu.customers_page, name="settings-customers"),
    path("workbench/", workbench.workbench_page, name="workbench"),
    path("settings/", olts.settings_page, name="settings"),
    path("settings/olts/", olts.olts, name="settings-olts"),
    path("settings/olts/<int:olt_id>/", olts.olt_settings, name="settings-olt"),
    path("settings/olts/<int:olt_id>/switch/", olts.olt_switch, name="settings-olt-switch"),
    path("settings/olts/<int:olt_id>/delete/", olts.olt_delete, name="settings-olt-delete"),
    path("settings/groups/", olts.groups, name="settings-groups"),
    path("settings/maintenance/", maintenance.maintenance, name="settings-maintenance"),
    path("settings/maintenance/<int:pause_id>/end/", maintenance.maintenance_end, name="settings-maintenance-end"),
    path("settings/people/", people.people_page, name="settings-people"),
    path("settings/people/add/", people.person_add, name="settings-person-add"),
    path("settings/people/<int:user_id>/", people.person, name="settings-person"),
    path("settings/people/factors/", people.duties_save, name="settings-people-factors"),
    path("settings/people/<int:user_id>/factor/", people.person_reset, name="settings-person-reset"),
    path(
        "settings/people/<int:user_id>/sessions/end/", people.person_sessions_end, name="settings-person-sessions-end"
    ),
    path(
        "settings/people/<int:user_id>/sessions/<int:session_id>/end/",
        people.person_session_end,
        name="settings-person-session-end",
    ),
    path("settings/people/<int:user_id>/link/", people.person_link, name="settings-person-link"),
    path("invitation/<str:token>/", people.invitation, name="invitation"),
    path("login/", account.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", account.setup, name="setup"),
    path("sign-on/", sign_on.sign_on, name="sign-on"),
    path("sign-on/back/", sign_on.sign_on_back, name="sign-on-back"),
    path("account/", account.account, name="account"),
    path("account/sessions/end/", account.end_other_sessions, name="account-sessions-end"),
    path("account/sessions/<int:session_id>/end/", account.end_session, name="account-session-end"),
    path("account/password/", account.change_password, name="account-password"),
    path("login/second/", factors.second_step, name="second-step"),
    path("login/passkey/", passkeys.passkey_login, name="passkey-login"),
    path("login/passkey/question/", passkeys.passkey_question, name="passkey-question"),
    path("account/passkeys/add/", passkeys.passkey_add, name="passkey-add"),
    path("account/passkeys/save/", passkeys.passkey_save, name="passkey-save"),
    path("account/passkeys/<int:passkey_id>/remove/", passkeys.passkey_remove, name="passkey-remove"),
    path("account/factor/", factors.own_factor, name="account-factor"),
    path("account/factor/change/", factors.change_factor, name="account-factor-change"),
    path("account/reading/", account.change_preferences, name="account-reading"),
    path("account/tokens/", account.add_token, name="account-tokens"),
    path("account/tokens/<int:token_id>/revoke/", account.revoke_token, name="account-revoke"),
]
