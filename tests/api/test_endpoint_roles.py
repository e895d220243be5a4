"""Every address of the product, and who gets what there: one table, which fails when an address is not in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie

import pytest
from django.db import transaction
from django.test import Client

from accounts.two_groups import Route, World, all_routes, make_limited, make_world, token_of, value_question
from api.rows import make_user
from facho.accounts.roles import Role

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OUTSIDE = "192.0.2.7"
PEOPLE = ("anonymous", "no role", "viewer", "operator", "admin", "viewer token of an admin", "limited operator")

# Who gets there at least, by which method, what an admin is answered with an empty body, and where.
# ANY: also nobody. GUEST: nobody; who is logged in is sent on. LOGIN: also an account without a role.
# WHOLE: an operator who sees every OLT.
# Whoever is less gets 401 or 403 of the API, the login page or 403 of pages.
# Who is limited to other OLTs gets 404 where an OLT, or what belongs to one, is addressed.
TABLE = r"""
USER     GET    200
LOGIN    GET    200 account/
LOGIN    POST   200 account/password/
LOGIN    GET    200 account/factor/
LOGIN    POST   200 account/factor/
LOGIN    POST   302 account/factor/change/
LOGIN    POST   302 account/reading/
LOGIN    POST   302 account/sessions/end/
LOGIN    POST   404 account/sessions/<int:session_id>/end/
ANY      POST   404 account/passkeys/add/
LOGIN    POST   302 account/passkeys/save/
LOGIN    POST   404 account/passkeys/<int:passkey_id>/remove/
LOGIN    POST   200 account/tokens/
LOGIN    POST   404 account/tokens/<int:token_id>/revoke/
USER     GET    200 live/
USER     GET    200 live/hour/
ADMIN    GET    200 olts/add/
ADMIN    POST   200 olts/add/
ADMIN    GET    200 olts/add/<int:olt_id>/
ADMIN    GET    200 olts/add/<int:olt_id>/step/
ADMIN    GET    302 olts/add/<int:olt_id>/correct/
ADMIN    POST   302 olts/add/<int:olt_id>/correct/
ADMIN    POST   302 olts/add/<int:olt_id>/test/
ADMIN    POST   302 olts/add/<int:olt_id>/vendor/
ADMIN    GET    302 olts/add/<int:olt_id>/jobs/
ADMIN    POST   302 olts/add/<int:olt_id>/jobs/
USER     GET    200 olts/<int:olt_id>/
OPERATOR POST   302 olts/<int:olt_id>/pause/
OPERATOR POST   302 olts/<int:olt_id>/pause/end/
OPERATOR POST   302 olts/<int:olt_id>/nodes/<int:node_id>/run/
OPERATOR POST   302 olts/<int:olt_id>/nodes/<int:node_id>/resume/
OPERATOR GET    200 olts/<int:olt_id>/jobs/<int:node_id>/
OPERATOR POST   200 olts/<int:olt_id>/jobs/<int:node_id>/
OPERATOR GET    200 olts/<int:olt_id>/jobs/<int:node_id>/cost/
USER     GET    200 olts/<int:olt_id>/history/
USER     GET    200 olts/<int:olt_id>/history.csv
USER     GET    200 olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/
USER     GET    200 olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/history.csv
USER     GET    200 olts/<int:olt_id>/ports/<int:frame>/<int:slot>/<int:port>/<slug:name>/
USER     GET    200 onus/<int:onu_id>/history.csv
USER     GET    200 olts/<int:olt_id>/<slug:name>/
USER     GET    200 pollers/
USER     GET    200 wall/
USER     GET    200 wall/live/
USER     GET    200 search/
USER     GET    200 search/suggestions/
ANY      GET    410 acknowledge/<str:token>/
ANY      POST   410 acknowledge/<str:token>/
USER     GET    200 light/
USER     GET    200 light/<int:finding_id>/
OPERATOR POST   302 ports/<int:pon_port_id>/tree/
USER     GET    200 ports/<int:pon_port_id>/tree/<int:number>/
USER     GET    200 reports/
USER     GET    404 reports/pdf/
OPERATOR POST   404 reports/renew/
USER     GET    200 map/
USER     GET    400 map/features/
USER     GET    200 boxes/
OPERATOR GET    200 boxes/add/
OPERATOR POST   200 boxes/add/
OPERATOR GET    200 boxes/import/
OPERATOR POST   200 boxes/import/
USER     GET    200 boxes/export/<slug:kind>/
OPERATOR GET    200 boxes/inferred/<int:pon_port_id>/
OPERATOR POST   302 boxes/inferred/<int:pon_port_id>/
USER     GET    200 boxes/<int:box_id>/
OPERATOR GET    200 boxes/<int:box_id>/edit/
OPERATOR POST   200 boxes/<int:box_id>/edit/
OPERATOR GET    200 boxes/<int:box_id>/delete/
OPERATOR POST   302 boxes/<int:box_id>/delete/
USER     GET    200 zones/
WHOLE    POST   200 zones/
ADMIN    GET    200 settings/channels/
ADMIN    POST   200 settings/channels/address/
ADMIN    GET    302 settings/channels/add/<slug:code>/
ADMIN    POST   302 settings/channels/add/<slug:code>/
ADMIN    GET    200 settings/channels/<int:channel_id>/
ADMIN    POST   200 settings/channels/<int:channel_id>/
ADMIN    POST   302 settings/channels/<int:channel_id>/test/
ADMIN    GET    404 settings/channels/<int:channel_id>/test/<int:notice_id>/
ADMIN    POST   302 settings/channels/<int:channel_id>/switch/
ADMIN    POST   302 settings/channels/<int:channel_id>/revoke/
ADMIN    GET    200 settings/channels/<int:channel_id>/delete/
ADMIN    POST   302 settings/channels/<int:channel_id>/delete/
ADMIN    GET    200 settings/webhooks/
ADMIN    GET    200 settings/webhooks/add/
ADMIN    POST   200 settings/webhooks/add/
ADMIN    GET    200 settings/webhooks/<int:webhook_id>/
ADMIN    POST   200 settings/webhooks/<int:webhook_id>/
ADMIN    POST   302 settings/webhooks/<int:webhook_id>/test/
ADMIN    GET    200 settings/webhooks/<int:webhook_id>/test/<int:delivery_id>/
ADMIN    POST   200 settings/webhooks/<int:webhook_id>/replay/
ADMIN    POST   302 settings/webhooks/<int:webhook_id>/switch/
ADMIN    GET    200 settings/webhooks/<int:webhook_id>/delete/
ADMIN    POST   302 settings/webhooks/<int:webhook_id>/delete/
ADMIN    GET    200 settings/rules/
ADMIN    POST   200 settings/rules/add/
ADMIN    POST   200 settings/rules/<int:rule_id>/
ADMIN    GET    200 settings/rules/<int:rule_id>/delete/
ADMIN    POST   302 settings/rules/<int:rule_id>/delete/
OPERATOR GET    302 settings/
ADMIN    GET    200 settings/olts/
ADMIN    POST   302 settings/olts/
ADMIN    GET    200 settings/olts/<int:olt_id>/
ADMIN    POST   200 settings/olts/<int:olt_id>/
ADMIN    POST   302 settings/olts/<int:olt_id>/switch/
ADMIN    GET    200 settings/olts/<int:olt_id>/delete/
ADMIN    POST   200 settings/olts/<int:olt_id>/delete/
ADMIN    GET    200 settings/groups/
ADMIN    POST   200 settings/groups/
OPERATOR GET    200 settings/maintenance/
OPERATOR POST   200 settings/maintenance/
OPERATOR POST   302 settings/maintenance/<int:pause_id>/end/
ADMIN    GET    200 settings/people/
ADMIN    GET    200 settings/people/add/
ADMIN    POST   200 settings/people/add/
ADMIN    GET    200 settings/people/<int:user_id>/
ADMIN    POST   200 settings/people/<int:user_id>/
ADMIN    POST   302 settings/people/<int:user_id>/link/
ADMIN    POST   302 settings/people/<int:user_id>/factor/
ADMIN    POST   302 settings/people/<int:user_id>/sessions/end/
ADMIN    POST   302 settings/people/<int:user_id>/sessions/<int:session_id>/end/
ADMIN    POST   302 settings/people/factors/
ANY      GET    410 invitation/<str:token>/
ANY      POST   410 invitation/<str:token>/
OPERATOR GET    200 settings/customers/
OPERATOR POST   200 settings/customers/
USER     GET    200 olts/
OPERATOR POST   302 olts/act/
USER     GET    200 executions/
USER     GET    404 views/
USER     POST   404 views/
USER     POST   404 views/<int:view_id>/delete/
OPERATOR POST   302 onus/act/
USER     GET    200 onus/
USER     GET    200 onus/<int:onu_id>/
OPERATOR POST   302 onus/<int:onu_id>/read/
OPERATOR GET    200 onus/<int:onu_id>/customer/
OPERATOR POST   200 onus/<int:onu_id>/customer/
OPERATOR GET    200 onus/<int:onu_id>/box/
OPERATOR POST   302 onus/<int:onu_id>/box/
USER     GET    200 onus/<int:onu_id>/reading/
USER     GET    200 onus/<int:onu_id>/<slug:name>/
USER     GET    200 alerts/
USER     GET    200 alerts/<int:alert_id>/
OPERATOR POST   302 alerts/<int:alert_id>/acknowledge/
USER     GET    200 outages/
USER     GET    200 outages/<int:outage_id>/
OPERATOR POST   302 outages/<int:outage_id>/acknowledge/
USER     GET    200 outages/<int:outage_id>/<slug:name>/
USER     GET    200 events/
USER     GET    200 violations/
USER     GET    200 violations/<int:violation_id>/
OPERATOR POST   302 violations/<int:violation_id>/acknowledge/
USER     GET    200 traps/
ADMIN    POST   302 traps/switch/
USER     GET    200 waiting/
USER     GET    200 waiting/export/
ADMIN    GET    200 workbench/
ADMIN    POST   200 workbench/
ANY      GET    302 api/v1/
ANY      POST   302 api/v1/
ANY      PUT    302 api/v1/
ANY      PATCH  302 api/v1/
ANY      DELETE 302 api/v1/
USER     GET    200 api/v1/^olts/$
ADMIN    POST   400 api/v1/^olts/$
USER     GET    200 api/v1/^olts/(?P<pk>[^/.]+)/$
OPERATOR PATCH  200 api/v1/^olts/(?P<pk>[^/.]+)/$
ADMIN    DELETE 409 api/v1/^olts/(?P<pk>[^/.]+)/$
ADMIN    PUT    400 api/v1/^olts/(?P<pk>[^/.]+)/connection/$
USER     GET    200 api/v1/^jobs/$
ADMIN    POST   400 api/v1/^jobs/$
USER     GET    200 api/v1/^jobs/(?P<pk>[^/.]+)/$
ADMIN    PATCH  200 api/v1/^jobs/(?P<pk>[^/.]+)/$
ADMIN    DELETE 204 api/v1/^jobs/(?P<pk>[^/.]+)/$
ADMIN    POST   400 api/v1/^jobs/(?P<pk>[^/.]+)/apply/$
USER     GET    200 api/v1/^nodes/$
USER     GET    200 api/v1/^nodes/(?P<pk>[^/.]+)/$
OPERATOR PATCH  200 api/v1/^nodes/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^nodes/(?P<pk>[^/.]+)/explain/$
OPERATOR POST   409 api/v1/^nodes/(?P<pk>[^/.]+)/resume/$
USER     GET    200 api/v1/^executions/$
USER     GET    200 api/v1/^executions/(?P<pk>[^/.]+)/$
OPERATOR POST   202 api/v1/^executions/(?P<pk>[^/.]+)/cancel/$
USER     GET    200 api/v1/^pauses/$
OPERATOR POST   400 api/v1/^pauses/$
USER     GET    200 api/v1/^pauses/(?P<pk>[^/.]+)/$
OPERATOR POST   204 api/v1/^pauses/(?P<pk>[^/.]+)/end/$
USER     GET    200 api/v1/^pon-ports/$
USER     GET    200 api/v1/^pon-ports/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/pon-ports/<int:pon_port_id>/tree/
USER     GET    200 api/v1/^light-findings/$
USER     GET    200 api/v1/^light-findings/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^onus/$
USER     GET    200 api/v1/^onus/export/$
USER     GET    200 api/v1/^onus/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^waiting-onus/$
USER     GET    200 api/v1/^waiting-onus/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^events/$
USER     GET    200 api/v1/^events/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^outages/$
USER     GET    200 api/v1/^outages/(?P<pk>[^/.]+)/$
OPERATOR POST   200 api/v1/^outages/(?P<pk>[^/.]+)/acknowledge/$
OPERATOR DELETE 409 api/v1/^outages/(?P<pk>[^/.]+)/acknowledge/$
USER     GET    200 api/v1/^alerts/$
USER     GET    200 api/v1/^alerts/(?P<pk>[^/.]+)/$
OPERATOR POST   200 api/v1/^alerts/(?P<pk>[^/.]+)/acknowledge/$
OPERATOR DELETE 409 api/v1/^alerts/(?P<pk>[^/.]+)/acknowledge/$
USER     GET    200 api/v1/^alert-rules/$
ADMIN    POST   400 api/v1/^alert-rules/$
USER     GET    200 api/v1/^alert-rules/(?P<pk>[^/.]+)/$
ADMIN    PATCH  200 api/v1/^alert-rules/(?P<pk>[^/.]+)/$
ADMIN    DELETE 204 api/v1/^alert-rules/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^quotas/$
USER     GET    200 api/v1/^quotas/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^violations/$
USER     GET    200 api/v1/^violations/(?P<pk>[^/.]+)/$
OPERATOR POST   200 api/v1/^violations/(?P<pk>[^/.]+)/acknowledge/$
OPERATOR DELETE 409 api/v1/^violations/(?P<pk>[^/.]+)/acknowledge/$
USER     GET    200 api/v1/^plans/$
USER     GET    200 api/v1/^plans/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^alert-channels/$
ADMIN    POST   400 api/v1/^alert-channels/$
USER     GET    200 api/v1/^alert-channels/(?P<pk>[^/.]+)/$
ADMIN    PATCH  200 api/v1/^alert-channels/(?P<pk>[^/.]+)/$
ADMIN    DELETE 204 api/v1/^alert-channels/(?P<pk>[^/.]+)/$
ADMIN    POST   202 api/v1/^alert-channels/(?P<pk>[^/.]+)/test/$
ADMIN    GET    200 api/v1/^users/$
ADMIN    POST   400 api/v1/^users/$
ADMIN    GET    200 api/v1/^users/(?P<pk>[^/.]+)/$
ADMIN    PATCH  200 api/v1/^users/(?P<pk>[^/.]+)/$
ADMIN    POST   200 api/v1/^users/(?P<pk>[^/.]+)/link/$
ADMIN    GET    200 api/v1/^olt-groups/$
ADMIN    POST   400 api/v1/^olt-groups/$
ADMIN    GET    200 api/v1/^olt-groups/(?P<pk>[^/.]+)/$
ADMIN    PATCH  200 api/v1/^olt-groups/(?P<pk>[^/.]+)/$
ADMIN    DELETE 409 api/v1/^olt-groups/(?P<pk>[^/.]+)/$
ADMIN    GET    200 api/v1/^tokens/$
ADMIN    POST   400 api/v1/^tokens/$
ADMIN    GET    200 api/v1/^tokens/(?P<pk>[^/.]+)/$
ADMIN    DELETE 204 api/v1/^tokens/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/^coordinator/logs/$
USER     GET    200 api/v1/^coordinator/logs/(?P<pk>[^/.]+)/$
USER     GET    200 api/v1/olts/<int:olt_id>/feasibility/
USER     GET    200 api/v1/olts/<int:olt_id>/data/
USER     GET    200 api/v1/olts/<int:olt_id>/data/history/
USER     GET    200 api/v1/onus/<int:onu_id>/data/history/
USER     GET    200 api/v1/onus/<int:onu_id>/data/
USER     GET    404 api/v1/onus/<int:onu_id>/read/
OPERATOR POST   202 api/v1/onus/<int:onu_id>/read/
USER     GET    200 api/v1/onus/<int:onu_id>/history/
USER     GET    200 api/v1/pon-ports/<int:pon_port_id>/history/
USER     GET    200 api/v1/alert-channels/<int:channel_id>/notices/
USER     GET    200 api/v1/^webhooks/$
ADMIN    POST   400 api/v1/^webhooks/$
USER     GET    200 api/v1/^webhooks/(?P<pk>[^/.]+)/$
ADMIN    PATCH  200 api/v1/^webhooks/(?P<pk>[^/.]+)/$
ADMIN    DELETE 204 api/v1/^webhooks/(?P<pk>[^/.]+)/$
ADMIN    POST   202 api/v1/^webhooks/(?P<pk>[^/.]+)/test/$
ADMIN    POST   400 api/v1/^webhooks/(?P<pk>[^/.]+)/replay/$
USER     GET    200 api/v1/webhooks/<int:webhook_id>/deliveries/
OPERATOR PUT    400 api/v1/customers/
USER     GET    200 api/v1/outages/<int:outage_id>/onus/
USER     GET    200 api/v1/reports/
USER     GET    200 api/v1/reports/<str:month>/
USER     GET    200 api/v1/reports/<str:month>/onus/
USER     GET    200 api/v1/coordinator/state/
USER     GET    200 api/v1/pollers/
USER     GET    200 api/v1/pollers/queue/
USER     GET    200 api/v1/pollers/stats/
USER     GET    200 api/v1/pollers/stats/history/
OPERATOR POST   202 api/v1/pollers/nodes/<int:node_id>/run/
ANY      GET    200 api/v1/schema/
ANY      GET    200 api/v1/docs/
GUEST    GET    200 login/
GUEST    POST   200 login/
ANY      POST   403 login/passkey/
ANY      GET    404 login/passkey/question/
ANY      GET    302 login/second/
ANY      POST   302 login/second/
ANY      GET    404 sign-on/
ANY      GET    404 sign-on/back/
ANY      POST   302 logout/
ANY      GET    410 setup/<str:token>/
ANY      POST   410 setup/<str:token>/
ANY      GET    404 status/
ANY      GET    200 livez
ANY      GET    503 readyz
USER     GET    200 metrics
USER     GET    200 metrics/onus
USER     GET    200 smartolt/api/system/get_olts
USER     GET    200 smartolt/api/system/get_zones
USER     GET    200 smartolt/api/system/get_odbs/<int:zone_id>
USER     GET    200 smartolt/api/system/get_olt_pon_ports_details/<int:olt_id>
USER     GET    200 smartolt/api/system/get_outage_pons/<int:olt_id>
USER     GET    200 smartolt/api/olt/get_olts_uptime_and_env_temperature
USER     GET    200 smartolt/api/onu/get_onus_statuses
USER     GET    200 smartolt/api/onu/get_onus_signals
USER     GET    200 smartolt/api/onu/get_onus_administrative_statuses
USER     GET    200 smartolt/api/onu/get_all_onus_details
USER     GET    200 smartolt/api/onu/get_all_onus_gps_coordinates
USER     GET    200 smartolt/api/onu/unconfigured_onus
USER     GET    200 smartolt/api/onu/unconfigured_onus_for_olt/<int:olt_id>
USER     GET    200 smartolt/api/onu/get_onu_status/<str:external_id>
USER     GET    200 smartolt/api/onu/get_onu_signal/<str:external_id>
USER     GET    200 smartolt/api/onu/get_onu_administrative_status/<str:external_id>
USER     GET    200 smartolt/api/onu/get_onu_details/<str:external_id>
USER     GET    200 smartolt/api/onu/get_onus_details_by_sn/<str:external_id>
USER     GET    405 smartolt/api/<path:call>
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table."""

    least: str
    method: str
    status: int
    pattern: str

    @property
    def is_api(self) -> bool:
        """Tell whether programs are answered: they have tokens, and no login page."""
        return self.pattern.startswith(("api/", "metrics", "smartolt/"))

    def expected(self, who: str, *, is_of_an_olt: bool) -> int:
        """Return the status that somebody gets."""
        role = {"viewer token of an admin": "viewer", "limited operator": "operator"}.get(who, who)
        is_known = who != "anonymous" and (self.is_api or "token" not in who)
        if self.least == "ANY" or (self.least == "LOGIN" and is_known):
            return self.status
        if self.least == "GUEST":
            return 302 if is_known else self.status
        if not is_known:
            return 401 if self.is_api else 302
        least = {"USER": Role.VIEWER, "WHOLE": Role.OPERATOR}.get(self.least) or Role(self.least.lower())
        if who == "no role" or not Role(role).includes(least) or (self.least == "WHOLE" and who.startswith("limited")):
            return 403
        return 404 if who == "limited operator" and is_of_an_olt else self.status


def lines() -> Iterator[Line]:
    for text in TABLE.strip().splitlines():
        least, method, status, *pattern = text.split()
        yield Line(least, method, int(status), "".join(pattern))


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def clients(world: World) -> dict[str, Client]:
    admin = make_user(Role.ADMIN)
    people = {"viewer": make_user(Role.VIEWER), "operator": make_user(Role.OPERATOR), "admin": admin}
    # With the mark that lets Django's own admin in.
    people["no role"] = make_user(None, is_staff=True)
    found = {who: Client() for who in PEOPLE}
    for who, user in {**people, "limited operator": make_limited(world)}.items():
        found[who].force_login(user)
    found["viewer token of an admin"] = Client(headers={"Authorization": token_of(admin, Role.VIEWER)})
    return found


def ask(client: Client, method: str, path: str) -> int:
    """Ask and undo what it did, so that everyone meets the same rows."""
    cookies = SimpleCookie(client.cookies.output(header="", sep=";"))
    with transaction.atomic():
        body = {} if method == "GET" else {"data": "{}", "content_type": "application/json"}
        answer = client.generic(method, path, **body, REMOTE_ADDR=OUTSIDE)
        transaction.set_rollback(True)
    client.cookies = cookies
    return answer.status_code


def address(world: World, route: Route) -> str:
    path = world.path(route, world.hidden)
    return path + value_question(path)


def own_routes() -> dict[str, Route]:
    return {route.pattern: route for route in all_routes() if not route.pattern.startswith("admin/")}


def test_every_address_is_in_the_table() -> None:
    assert {line.pattern for line in lines()} == set(own_routes())


def test_everyone_gets_what_the_table_says(world: World, clients: dict[str, Client]) -> None:
    wrong, routes = [], own_routes()
    for line in lines():
        route = routes[line.pattern]
        is_of_an_olt = bool(set(route.names) & world.hidden.ids.keys())
        for who in PEOPLE:
            status = ask(clients[who], line.method, address(world, route))
            expected = line.expected(who, is_of_an_olt=is_of_an_olt)
            if status != expected:
                wrong.append(f"{line.method} {line.pattern} as {who}: {status} instead of {expected}")

    assert not wrong


def test_no_address_answers_to_other_methods(world: World, clients: dict[str, Client]) -> None:
    known = {(line.pattern, line.method) for line in lines()}
    known |= {("login/", method) for method in METHODS}  # who is logged in is sent on before
    answered = [
        (method, pattern, status)
        for pattern, route in own_routes().items()
        for method in METHODS
        if (pattern, method) not in known and (status := ask(clients["admin"], method, address(world, route))) != 405
    ]

    assert not answered


def test_nobody_but_admins_enters_the_admin(world: World, clients: dict[str, Client]) -> None:
    admin_routes = [route for route in all_routes() if route.pattern.startswith("admin/")]
    entered = [
        (method, who, route.pattern, status)
        for route in admin_routes
        for who in ("anonymous", "operator", "no role")
        for method in ("GET", "POST")
        if (status := ask(clients[who], method, address(world, route))) not in (302, 403, 404, 405)
    ]

    assert len(admin_routes) > 100
    assert not entered
    assert ask(clients["admin"], "GET", "/admin/") == 200
