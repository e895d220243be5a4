"""The pages that people look at, and the parts of them that refresh themselves."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from facho.dashboard.account.factors import change_factor, own_factor, second_step
from facho.dashboard.account.passkeys import (
    passkey_add,
    passkey_login,
    passkey_question,
    passkey_remove,
    passkey_save,
)
from facho.dashboard.account.sign_on import sign_on, sign_on_back
from facho.dashboard.account.views import (
    Login,
    account,
    add_token,
    change_password,
    change_preferences,
    end_other_sessions,
    end_session,
    revoke_token,
    setup,
)
from facho.dashboard.alerts.setup import (
    channel_add,
    channel_delete,
    channel_page,
    channel_revoke,
    channel_switch,
    channel_test,
    channel_test_result,
    channels_page,
    public_address_save,
    rule_add,
    rule_delete,
    rule_save,
    rules_page,
)
from facho.dashboard.alerts.views import acknowledge_link, alert_acknowledge, alert_page, alerts_page
from facho.dashboard.events.views import events_page
from facho.dashboard.first_run.views import add, choose_jobs, choose_vendor, correct, setup_step, test_again
from facho.dashboard.first_run.views import setup as setup_olt
from facho.dashboard.light.tree import tree_box, tree_correct
from facho.dashboard.light.views import finding_page, light_page
from facho.dashboard.olt.history import olt_csv, olt_history
from facho.dashboard.olt.jobs import olt_job, olt_job_cost
from facho.dashboard.olt.list import olts_act, olts_page
from facho.dashboard.olt.views import olt_page, olt_part, olt_pause, olt_pause_end, olt_resume, olt_run
from facho.dashboard.onu.views import (
    customers_page,
    onu_csv,
    onu_customer,
    onu_page,
    onu_part,
    onu_read,
    onu_reading,
    onus,
    onus_act,
)
from facho.dashboard.outage.views import outage_acknowledge, outage_page, outage_part, outages_page
from facho.dashboard.overview.views import overview, overview_hour, overview_live, wall, wall_live
from facho.dashboard.plant.map import map_features, map_page
from facho.dashboard.plant.views import (
    box_delete,
    box_edit,
    box_page,
    boxes_page,
    inferred_boxes,
    onu_box,
    plant_export,
    plant_import,
    zones_page,
)
from facho.dashboard.pollers.views import executions_page, pollers_page
from facho.dashboard.port.views import port_csv, port_page, port_part
from facho.dashboard.reports.views import report_pdf, report_renew, reports_page
from facho.dashboard.search.views import search_page, search_suggestions
from facho.dashboard.settings.maintenance import maintenance, maintenance_end
from facho.dashboard.settings.olts import groups, olt_delete, olt_settings, olt_switch, olts, settings_page
from facho.dashboard.settings.people import (
    duties_save,
    invitation,
    people_page,
    person,
    person_add,
    person_link,
    person_reset,
    person_session_end,
    person_sessions_end,
)
from facho.dashboard.settings.webhooks import (
    webhook_add,
    webhook_delete,
    webhook_page,
    webhook_replay,
    webhook_switch,
    webhook_test,
    webhook_test_result,
    webhooks_page,
)
from facho.dashboard.shared.table import delete_view, saved_views
from facho.dashboard.status.views import status_page
from facho.dashboard.traps.views import traps_page, traps_switch
from facho.dashboard.violations.views import violation_acknowledge, violation_page, violations_page
from facho.dashboard.waiting.views import waiting_export, waiting_page
from facho.dashboard.workbench.views import workbench_page

urlpatterns = [
    path("", overview, name="dashboard"),
    path("live/", overview_live, name="dashboard-live"),
    path("live/hour/", overview_hour, name="dashboard-hour"),
    path("olts/", olts_page, name="olts"),
    path("olts/act/", olts_act, name="olts-act"),
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
    path("olts/<int:olt_id>/jobs/<int:node_id>/", olt_job, name="olt-job"),
    path("olts/<int:olt_id>/jobs/<int:node_id>/cost/", olt_job_cost, name="olt-job-cost"),
    path("olts/<int:olt_id>/history/", olt_history, name="olt-history"),
    path("olts/<int:olt_id>/history.csv", olt_csv, name="olt-csv"),
    path("olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/", port_page, name="port"),
    path("olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/history.csv", port_csv, name="port-csv"),
    path("olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/<slug:name>/", port_part, name="port-part"),
    path("olts/<int:olt_id>/<slug:name>/", olt_part, name="olt-part"),
    path("executions/", executions_page, name="executions"),
    path("pollers/", pollers_page, name="poller-load"),
    path("wall/", wall, name="wall"),
    path("wall/live/", wall_live, name="wall-live"),
    path("search/", search_page, name="search"),
    path("search/suggestions/", search_suggestions, name="search-suggestions"),
    path("onus/", onus, name="onus"),
    path("onus/act/", onus_act, name="onus-act"),
    path("onus/<int:onu_id>/", onu_page, name="onu"),
    path("onus/<int:onu_id>/history.csv", onu_csv, name="onu-csv"),
    path("onus/<int:onu_id>/read/", onu_read, name="onu-read"),
    path("onus/<int:onu_id>/customer/", onu_customer, name="onu-customer"),
    path("onus/<int:onu_id>/box/", onu_box, name="onu-box"),
    path("onus/<int:onu_id>/reading/", onu_reading, name="onu-reading"),
    path("onus/<int:onu_id>/<slug:name>/", onu_part, name="onu-part"),
    path("map/", map_page, name="map"),
    path("map/features/", map_features, name="map-features"),
    path("boxes/", boxes_page, name="boxes"),
    path("boxes/add/", box_edit, name="box-add"),
    path("boxes/import/", plant_import, name="plant-import"),
    path("boxes/export/<slug:kind>/", plant_export, name="plant-export"),
    path("boxes/inferred/<int:pon_port_id>/", inferred_boxes, name="boxes-inferred"),
    path("boxes/<int:box_id>/", box_page, name="box"),
    path("boxes/<int:box_id>/edit/", box_edit, name="box-edit"),
    path("boxes/<int:box_id>/delete/", box_delete, name="box-delete"),
    path("zones/", zones_page, name="zones"),
    path("alerts/", alerts_page, name="alerts"),
    path("alerts/<int:alert_id>/", alert_page, name="alert"),
    path("alerts/<int:alert_id>/acknowledge/", alert_acknowledge, name="acknowledge-alert"),
    path("acknowledge/<str:token>/", acknowledge_link, name="acknowledge-link"),
    path("outages/", outages_page, name="outages"),
    path("outages/<int:outage_id>/", outage_page, name="outage"),
    path("outages/<int:outage_id>/acknowledge/", outage_acknowledge, name="acknowledge-outage"),
    path("outages/<int:outage_id>/<slug:name>/", outage_part, name="outage-part"),
    path("events/", events_page, name="events"),
    path("light/", light_page, name="light"),
    path("light/<int:finding_id>/", finding_page, name="light-finding"),
    path("ports/<int:pon_port_id>/tree/", tree_correct, name="port-tree"),
    path("ports/<int:pon_port_id>/tree/<int:number>/", tree_box, name="tree-box"),
    path("reports/", reports_page, name="reports"),
    path("reports/pdf/", report_pdf, name="report-pdf"),
    path("reports/renew/", report_renew, name="report-renew"),
    path("violations/", violations_page, name="violations"),
    path("violations/<int:violation_id>/", violation_page, name="violation"),
    path("violations/<int:violation_id>/acknowledge/", violation_acknowledge, name="acknowledge-violation"),
    path("settings/channels/", channels_page, name="settings-channels"),
    path("settings/channels/address/", public_address_save, name="settings-address"),
    path("settings/channels/add/<slug:code>/", channel_add, name="settings-channel-add"),
    path("settings/channels/<int:channel_id>/", channel_page, name="settings-channel"),
    path("settings/channels/<int:channel_id>/test/", channel_test, name="settings-channel-test"),
    path(
        "settings/channels/<int:channel_id>/test/<int:notice_id>/", channel_test_result, name="settings-channel-result"
    ),
    path("settings/channels/<int:channel_id>/switch/", channel_switch, name="settings-channel-switch"),
    path("settings/channels/<int:channel_id>/revoke/", channel_revoke, name="settings-channel-revoke"),
    path("settings/channels/<int:channel_id>/delete/", channel_delete, name="settings-channel-delete"),
    path("settings/rules/", rules_page, name="settings-rules"),
    path("settings/rules/add/", rule_add, name="settings-rule-add"),
    path("settings/rules/<int:rule_id>/", rule_save, name="settings-rule"),
    path("settings/rules/<int:rule_id>/delete/", rule_delete, name="settings-rule-delete"),
    path("settings/webhooks/", webhooks_page, name="settings-webhooks"),
    path("settings/webhooks/add/", webhook_add, name="settings-webhook-add"),
    path("settings/webhooks/<int:webhook_id>/", webhook_page, name="settings-webhook"),
    path("settings/webhooks/<int:webhook_id>/test/", webhook_test, name="settings-webhook-test"),
    path(
        "settings/webhooks/<int:webhook_id>/test/<int:delivery_id>/",
        webhook_test_result,
        name="settings-webhook-result",
    ),
    path("settings/webhooks/<int:webhook_id>/replay/", webhook_replay, name="settings-webhook-replay"),
    path("settings/webhooks/<int:webhook_id>/switch/", webhook_switch, name="settings-webhook-switch"),
    path("settings/webhooks/<int:webhook_id>/delete/", webhook_delete, name="settings-webhook-delete"),
    path("status/", status_page, name="status"),
    path("traps/", traps_page, name="traps"),
    path("traps/switch/", traps_switch, name="traps-switch"),
    path("waiting/", waiting_page, name="waiting"),
    path("waiting/export/", waiting_export, name="waiting-export"),
    path("views/", saved_views, name="views"),
    path("views/<int:view_id>/delete/", delete_view, name="view-delete"),
    path("settings/customers/", customers_page, name="settings-customers"),
    path("workbench/", workbench_page, name="workbench"),
    path("settings/", settings_page, name="settings"),
    path("settings/olts/", olts, name="settings-olts"),
    path("settings/olts/<int:olt_id>/", olt_settings, name="settings-olt"),
    path("settings/olts/<int:olt_id>/switch/", olt_switch, name="settings-olt-switch"),
    path("settings/olts/<int:olt_id>/delete/", olt_delete, name="settings-olt-delete"),
    path("settings/groups/", groups, name="settings-groups"),
    path("settings/maintenance/", maintenance, name="settings-maintenance"),
    path("settings/maintenance/<int:pause_id>/end/", maintenance_end, name="settings-maintenance-end"),
    path("settings/people/", people_page, name="settings-people"),
    path("settings/people/add/", person_add, name="settings-person-add"),
    path("settings/people/<int:user_id>/", person, name="settings-person"),
    path("settings/people/factors/", duties_save, name="settings-people-factors"),
    path("settings/people/<int:user_id>/factor/", person_reset, name="settings-person-reset"),
    path("settings/people/<int:user_id>/sessions/end/", person_sessions_end, name="settings-person-sessions-end"),
    path(
        "settings/people/<int:user_id>/sessions/<int:session_id>/end/",
        person_session_end,
        name="settings-person-session-end",
    ),
    path("settings/people/<int:user_id>/link/", person_link, name="settings-person-link"),
    path("invitation/<str:token>/", invitation, name="invitation"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", setup, name="setup"),
    path("sign-on/", sign_on, name="sign-on"),
    path("sign-on/back/", sign_on_back, name="sign-on-back"),
    path("account/", account, name="account"),
    path("account/sessions/end/", end_other_sessions, name="account-sessions-end"),
    path("account/sessions/<int:session_id>/end/", end_session, name="account-session-end"),
    path("account/password/", change_password, name="account-password"),
    path("login/second/", second_step, name="second-step"),
    path("login/passkey/", passkey_login, name="passkey-login"),
    path("login/passkey/question/", passkey_question, name="passkey-question"),
    path("account/passkeys/add/", passkey_add, name="passkey-add"),
    path("account/passkeys/save/", passkey_save, name="passkey-save"),
    path("account/passkeys/<int:passkey_id>/remove/", passkey_remove, name="passkey-remove"),
    path("account/factor/", own_factor, name="account-factor"),
    path("account/factor/change/", change_factor, name="account-factor-change"),
    path("account/reading/", change_preferences, name="account-reading"),
    path("account/tokens/", add_token, name="account-tokens"),
    path("account/tokens/<int:token_id>/revoke/", revoke_token, name="account-revoke"),
]
