"""A name that nobody knows is an error: a typo must not return everything, nor be reported that all went well."""

import json
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from accounts.two_groups import OTHER_PARTS, Route, World, all_routes, make_world
from api.rows import make_node, make_olt
from api.test_endpoint_roles import lines as table_lines
from facho.api.shared.filters import unknown_parameters
from facho.api.shared.problems import problem_of

pytestmark = pytest.mark.django_db


def narrowed_addresses(world: World) -> Iterator[tuple[str, set[str]]]:
    """Give every address that the description says can be narrowed, with the names of its parameters."""
    ids: dict[str, Any] = {"channel_id": world.common["alert-channel"], "webhook_id": world.common["webhook"]}
    ids |= {"month": OTHER_PARTS["month"]}
    ids |= {f"{name.removeprefix('alert-').replace('-', '_')}_id": pk for name, pk in world.shown.ids.items()}
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    for path, operations in document["paths"].items():
        described = operations.get("get", {}).get("parameters", [])
        if names := {each["name"] for each in described if each["in"] == "query"}:
            yield path.format(**ids), names


def unknown_names(client: APIClient, path: str, query: dict[str, str]) -> list[str]:
    answer = client.get(path, query)
    if answer.status_code != 400:
        assert answer.status_code in (200, 404), (path, query)
        return []
    return [error["field"] for error in answer.json()["errors"] if error["code"] == "unknown"]


def test_every_list_knows_what_is_described_and_refuses_the_rest(admin: APIClient) -> None:
    addresses = dict(narrowed_addresses(make_world()))

    assert len(addresses) > 20
    for path, names in addresses.items():
        assert unknown_names(admin, path, {"statte": "down"}) == ["statte"], path
        if not path.startswith("/api/v1/schema"):
            assert unknown_names(admin, path, dict.fromkeys(names, "1")) == [], path


def test_the_error_names_what_there_is(viewer: APIClient) -> None:
    answer = viewer.get("/api/v1/olts/?stat=down", headers={"accept-language": "en"})

    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["errors"] == [
        {
            "field": "stat",
            "code": "unknown",
            "detail": "Unknown parameter. Known parameters: enabled, group, page, page_size, search, state, vendor.",
        }
    ]


# What is no resource: the way to the documentation, the description, and what Prometheus asks with its own parameters.
BESIDES = {"api/v1/", "api/v1/schema/", "api/v1/docs/"}
WRITING = ("POST", "PUT", "PATCH", "DELETE")


def operations(methods: Collection[str]) -> Iterator[tuple[str, Route]]:
    """Give every operation of the API, by the table that names them all."""
    routes = {route.pattern: route for route in all_routes()}
    for line in table_lines():
        if line.pattern.startswith("api/v1/") and line.pattern not in BESIDES and line.method in methods:
            yield line.method, routes[line.pattern]


def errors_of(client: APIClient, method: str, path: str, body: Any = None) -> list[tuple[str, str]]:
    """Ask, undo what it did, and return the inputs at fault with their codes."""
    with transaction.atomic():
        answer = client.generic(method, path, json.dumps(body) if body else "", content_type="application/json")
        transaction.set_rollback(True)
    if answer.status_code != 400:
        return [("status", str(answer.status_code))]
    return [(error["field"], error["code"]) for error in answer.json()["errors"]]


def test_every_reading_endpoint_refuses_a_parameter_that_nobody_knows(admin: APIClient) -> None:
    world, asked = make_world(), list(operations(["GET"]))

    heard = {
        route.pattern: errors
        for method, route in asked
        if ("statte", "unknown")
        not in (errors := errors_of(admin, method, f"{world.path(route, world.shown)}?statte=1"))
    }

    assert len(asked) > 40
    assert not heard


def test_every_writing_endpoint_refuses_a_name_that_nobody_knows(admin: APIClient) -> None:
    """In the query as in the body; `id` is a name that is shown everywhere and written nowhere."""
    world, asked = make_world(), list(operations(WRITING))

    heard = []
    for method, route in asked:
        path = world.path(route, world.shown)
        for name in ("statte", "id"):
            if (name, "unknown") not in errors_of(admin, method, path, {name: 7}):
                heard.append((method, route.pattern, name, errors_of(admin, method, path, {name: 7})))
        if ("statte", "unknown") not in errors_of(admin, method, f"{path}?statte=1"):
            heard.append((method, route.pattern, "?statte", errors_of(admin, method, f"{path}?statte=1")))

    assert len(asked) > 20
    assert not heard


@pytest.mark.parametrize("body", [{"nombre": "x"}, {"name": "x"}, {"enabled": False, "sys_name": "x"}])
def test_nothing_is_changed_by_a_request_with_a_field_too_many(admin: APIClient, body: dict[str, Any]) -> None:
    olt = make_olt()
    [foreign] = body.keys() - {"enabled"}

    answer = admin.patch(f"/api/v1/olts/{olt.pk}/", body, format="json")

    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    reported = "Unknown field. Known fields: enabled, poller_group."
    assert answer.json()["errors"] == [{"field": foreign, "code": "unknown", "detail": reported}]
    olt.refresh_from_db()
    assert olt.enabled


def test_a_nested_name_is_reported_with_its_place_and_with_what_else_is_wrong(admin: APIClient) -> None:
    wish = {"name": "x", "slug": "x", "query_type": "nonsense", "interval_seconds": 300, "oids": [{"colum": "x"}]}

    answer = admin.post("/api/v1/jobs/", wish, format="json")

    errors = {(error["field"], error["code"]) for error in answer.json()["errors"]}
    assert {("oids.0.colum", "unknown"), ("query_type", "invalid_choice")} <= errors


def test_names_that_errors_themselves_have_are_reported_as_any_other() -> None:
    request = Request(APIRequestFactory().get("/", {"message": "1", "code": "2"}))

    problem = problem_of(ValidationError(unknown_parameters(request, [])))

    assert [error["field"] for error in problem.errors] == ["code", "message"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"data": {}}, 202),
        ({"data": "", "content_type": "application/x-www-form-urlencoded"}, 202),
        ({"data": "", "content_type": "application/json"}, 202),
        ({"data": {"intervall": "5"}}, 400),
        ({"data": "intervall=5", "content_type": "application/x-www-form-urlencoded"}, 400),
    ],
)
def test_an_empty_form_is_nothing_and_one_with_a_name_is_refused(
    administrator: Client, sent: dict[str, Any], status: int
) -> None:
    """What `curl -d ''` and Django's test client send with a POST that has nothing to say."""
    node = make_node()

    answer = administrator.post(f"/api/v1/pollers/nodes/{node.id}/run/", **sent)

    assert answer.status_code == status
