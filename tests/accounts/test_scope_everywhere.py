"""Who is limited to a group meets nothing of the OLTs of others, wherever they look."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from accounts.two_groups import Route, World, all_routes, make_limited, make_world, token_of, value_question
from api.rows import make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.accounts.scope import EVERYTHING, NOTHING, scope_of
from facho.api.tokens import create_token, verify_token
from facho.hosts.models import Olt, OltGroup, Pause
from facho.snmp_jobs.models import WorkflowNode
from web.every_address import body_of

pytestmark = pytest.mark.django_db

LISTS = (
    *("olts", "nodes", "executions", "pauses", "pon-ports", "onus", "waiting-onus", "events", "outages", "alerts"),
    *("quotas", "violations", "plans", "coordinator/logs"),
)
# Pages without rows of OLTs, and those that end the session.
LEFT_OUT = ("admin/", "logout/", "setup/", "invitation/", "account/", "olts/add/")


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def limited(client: Client, world: World) -> Client:
    client.force_login(make_limited(world))
    return client


def looked_at() -> list[Route]:
    return [route for route in all_routes() if not route.pattern.startswith(LEFT_OUT)]


def address(world: World, route: Route, side_name: str) -> str:
    """Write an address with what it needs besides, so that it answers with rows."""
    path = world.path(route, getattr(world, side_name))
    return path + ("?q=SERIAL" if "search" in path else value_question(path))


def test_nothing_hidden_is_on_any_page_or_in_any_answer(limited: Client, world: World) -> None:
    leaks, answered = [], 0
    for route in looked_at():
        for side in ("shown", "hidden"):
            path = address(world, route, side)
            answer = limited.get(path, REMOTE_ADDR="192.0.2.7")
            body = body_of(answer)
            answered += answer.status_code == 200
            leaks += [f"{path}: {word}" for word in world.hidden.words if word in body]

    assert not leaks
    assert answered > 60


def test_everything_of_the_own_group_is_there(limited: Client, world: World) -> None:
    bodies = {
        route.pattern: body_of(limited.get(address(world, route, "shown"), REMOTE_ADDR="192.0.2.7"))
        for route in looked_at()
    }

    reported = {pattern for pattern, body in bodies.items() if any(word in body for word in world.shown.words)}
    assert reported >= {"", "live/", "onus/", "outages/", "events/", "violations/", "waiting/", "alerts/", "metrics"}
    assert reported >= {f"api/v1/^{name}/$" for name in LISTS}
    assert reported >= {"metrics/onus", "smartolt/api/system/get_olts", "smartolt/api/onu/unconfigured_onus"}
    assert reported >= {f"smartolt/api/onu/{name}" for name in ("get_onus_statuses", "get_all_onus_details")}


def test_what_is_hidden_is_not_there(limited: Client, world: World) -> None:
    """Nothing but 404 for a row of a hidden OLT, whatever is asked of it."""
    wrong = []
    for route in looked_at():
        if not set(route.names) & world.hidden.ids.keys():
            continue
        path = address(world, route, "hidden")
        for method in ("get", "post", "put", "patch", "delete"):
            status = getattr(limited, method)(path, {}, content_type="application/json").status_code
            if status not in (404, 405, 403):
                wrong.append((method, path, status))

    assert not wrong


# Whatever any address takes, so that a request fails for its address alone.
BODY = {
    "enabled": False,
    "interval_seconds": 600,
    "priority": 9,
    "host": "192.0.2.99",
    "community": "public",
    "note": "mine",
    "minutes": 5,
    "vendor": "huawei_smartax",
}


def rows_of(world: World) -> dict[str, list[dict[str, Any]]]:
    """Read everything that is stored, but for what a request leaves about whoever sent it."""
    apps_of_people = {"sessions", "admin", "auth", "contenttypes", "accounts", "api"}
    models = [model for model in apps.get_models() if model._meta.app_label not in apps_of_people]
    stored = {model._meta.label: list(model._default_manager.order_by("pk").values()) for model in models}
    # One's own node may be run.
    stored["snmp_jobs.WorkflowNode"] = [
        row for row in stored["snmp_jobs.WorkflowNode"] if row["id"] != world.shown.ids["node"]
    ]
    return stored


@pytest.mark.parametrize("encoding", ["application/json", "application/x-www-form-urlencoded"])
def test_an_admin_with_limits_changes_nothing_by_the_ids_of_others(client: Client, world: World, encoding: str) -> None:
    client.force_login(make_limited(world, Role.ADMIN))
    shown, hidden = world.shown.ids, world.hidden.ids
    olt_lists = {"olt_id": hidden["olt"], "olt": hidden["olt"], "olts": [shown["olt"], hidden["olt"]]}
    before, answered = rows_of(world), []

    for route in all_routes():
        if route.pattern.startswith(("admin/", "logout/", "setup/", "account/", "login/")):
            continue
        mixed = [{**hidden, "node": shown["node"]}, {**shown, "node": hidden["node"]}] if "node" in route.names else []
        for ids in [hidden, *mixed]:
            path = route.fill({**world.common, **ids})
            if not (set(route.names) & hidden.keys() or "apply" in path or path.endswith("/pauses/")):
                continue
            for method in ("post", "put", "patch", "delete"):
                data = {**BODY, **olt_lists}
                body = json.dumps(data) if "json" in encoding else urlencode(data)
                status = getattr(client, method)(path, body, content_type=encoding).status_code
                answered += [(method, path, status)] if status < 400 else []

    assert [each for each in answered if f"nodes/{shown['node']}/" not in each[1]] == []
    assert rows_of(world) == before


def test_what_is_hidden_is_not_changed(limited: Client, world: World) -> None:
    olt, node = world.hidden.olt, WorkflowNode.objects.get(pk=world.hidden.ids["node"])
    json = "application/json"

    limited.patch(f"/api/v1/olts/{olt.pk}/", {"enabled": False}, content_type=json)
    limited.post(f"/api/v1/pollers/nodes/{node.pk}/run/")
    limited.post(f"/api/v1/pauses/{world.hidden.ids['pause']}/end/")
    hidden = limited.post("/api/v1/pauses/", {"olt_id": olt.pk, "minutes": 5}, content_type=json)
    everything = limited.post("/api/v1/pauses/", {"olt_id": None, "minutes": 5}, content_type=json)

    assert (hidden.status_code, everything.status_code) == (400, 403)
    assert Olt.objects.get(pk=olt.pk).enabled
    assert WorkflowNode.objects.get(pk=node.pk).run_requested_at is None
    assert Pause.objects.get(pk=world.hidden.ids["pause"]).ends_at > timezone.now()


def test_a_token_shows_no_more_than_its_owner_sees(client: Client, world: World) -> None:
    headers = {"Authorization": token_of(make_limited(world))}

    listed = client.get("/api/v1/olts/", headers=headers).json()["results"]
    metrics = client.get("/metrics", headers=headers).content.decode()

    assert [olt["name"] for olt in listed] == [world.shown.olt.name]
    assert world.shown.olt.name in metrics
    assert world.hidden.olt.name not in metrics


def test_a_token_of_groups_shows_less_than_its_owner_sees(client: Client, world: World) -> None:
    text = create_token(make_user(Role.ADMIN), olt_groups=[world.shown.group])

    listed = client.get("/api/v1/olts/", headers={"Authorization": f"Bearer {text}"}).json()["results"]

    assert [olt["name"] for olt in listed] == [world.shown.olt.name]


def test_a_token_of_groups_writes_nothing_that_holds_for_all_olts(client: Client, world: World) -> None:
    text = create_token(make_user(Role.ADMIN), olt_groups=[world.shown.group])
    json, headers = "application/json", {"Authorization": f"Bearer {text}"}
    channel, job = world.common["alert-channel"], world.hidden.olt.workflow.nodes.order_by("id")[0].job_id
    rule = {"name": "mine", "kind": "pon_outage", "channel_ids": [channel]}
    hook = {"name": "mine", "kind": "webhook", "url": "https://hook.example.net/", "signing_key": "0123456789abcdef"}
    events = {"url": hook["url"], "signing_key": hook["signing_key"], "kinds": ["down"]}
    since = {"since": "2026-01-01T00:00:00Z"}

    answers = [
        client.post("/api/v1/alert-channels/", hook, content_type=json, headers=headers),
        client.post("/api/v1/alert-rules/", rule, content_type=json, headers=headers),
        client.post(f"/api/v1/alert-channels/{channel}/test/", headers=headers),
        client.patch(f"/api/v1/jobs/{job}/", {"priority": 3}, content_type=json, headers=headers),
        client.delete(f"/api/v1/jobs/{job}/", headers=headers),
        client.post("/api/v1/webhooks/", {**events, "name": "mine"}, content_type=json, headers=headers),
        client.post(f"/api/v1/webhooks/{world.common['webhook']}/replay/", since, content_type=json, headers=headers),
    ]

    assert [answer.status_code for answer in answers] == [403] * 7
    assert client.get("/api/v1/jobs/", headers=headers).status_code == 200
    # What is put on an OLT concerns that one alone.
    places = [
        client.post(f"/api/v1/jobs/{job}/apply/", {"olts": [side.olt.pk]}, content_type=json, headers=headers)
        for side in (world.shown, world.hidden)
    ]
    assert [answer.status_code for answer in places] == [200, 400]


def test_a_token_whose_groups_its_owner_lost_shows_nothing() -> None:
    north, south = OltGroup.objects.create(name="North"), OltGroup.objects.create(name="South")
    make_olt(group=north)
    user = make_user()
    profile = Profile.objects.create(user=user)
    text = create_token(user, olt_groups=[north])

    profile.olt_groups.set([south])

    grant = verify_token(text, now=timezone.now())
    assert grant is not None
    assert scope_of(grant.user) == NOTHING
    assert not scope_of(grant.user).narrow(Olt.objects.all(), "").exists()


def test_nobody_sees_nothing_and_who_has_no_limit_sees_everything() -> None:
    from django.contrib.auth.models import AnonymousUser

    assert scope_of(AnonymousUser()) == NOTHING
    assert scope_of(make_user()) == EVERYTHING
