"""Every address of the product, on rows whose every text means harm: pages run nothing, spreadsheets neither."""

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.test import Client

from accounts.two_groups import OID, Route, World, all_routes
from api.rows import make_user
from facho.accounts.roles import Role
from facho.dashboard import olt_page, onu_page, outage_page
from web.hostile_rows import make_hostile_world
from web.page_offences import offences_of

pytestmark = pytest.mark.django_db

# Leaving, and finding whatever has no address.
LEFT_OUT = {"logout/", "admin/logout/", "admin/(?P<url>.*)$"}
PARTS = {
    "olts/": olt_page.PARTS,
    "onus/": onu_page.PARTS,
    "outages/": outage_page.PARTS,
}
# What an address needs besides, so that it answers with rows.
QUERIES = {
    "api/v1/olts/<int:olt_id>/data/history/": [f"oid={OID}&index=0.1"],
    "api/v1/onus/<int:onu_id>/data/history/": [f"oid={OID}&index=0.1"],
    "api/v1/^onus/$": ["", "format=csv", "format=ndjson"],
    "search/": ["q=img", "q=%3Cscript%3Ealert(1)%3C/script%3E"],
    "search/suggestions/": ["q=img", "q=%3Cscript%3Ealert(1)%3C/script%3E"],
    "onus/": ["", "q=%3Cscript%3Ealert(1)%3C/script%3E"],
}
FORMULA = re.compile(r"[=+\-@\t\r]")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
ROUTES = [route for route in all_routes() if route.pattern not in LEFT_OUT]


@pytest.fixture
def world() -> World:
    return make_hostile_world()


@pytest.fixture
def administrator(world: World) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN, "ana"))
    return client


def addresses(world: World, route: Route) -> Iterator[str]:
    """Write every address of a pattern; a part of one that nobody knows is an error."""
    parts = {"token": "1", **world.common, **world.shown.ids, **_of_admin(route)}
    names = _names_of_parts(route)
    missing = [name for name in route.names if name not in parts and name != "name"]
    assert not missing, f"{route.pattern} needs a sample of {missing}"
    for name, query in product(names, QUERIES.get(route.pattern, [""])):
        yield route.fill({**parts, "name": name}) + (f"?{query}" if query else "")


def _names_of_parts(route: Route) -> list[str]:
    if "<slug:name>" not in route.pattern:
        return [""]
    return list(PARTS[route.pattern.split("<")[0]])


def _of_admin(route: Route) -> dict[str, Any]:
    if not route.pattern.startswith("admin/"):
        return {}
    _, app, name, *_rest = [*route.pattern.split("/"), "", ""]
    models = {model._meta.label_lower: model for model in apps.get_models()}
    model = models.get(f"{app}.{name}")
    row = model._default_manager.order_by("-pk").values_list("pk", flat=True).first() if model else None
    return {"object": row or 1, "id": row or 1, "app_label": "hosts", "content_type": 1}


def body_of(answer: Any) -> str:
    if not getattr(answer, "is_async", False):
        return str(answer.getvalue().decode())

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)().decode()


def harm_of(kind: str, body: str) -> list[str]:
    """Name what in an answer would do harm to whoever opens it."""
    match kind:
        case "text/html":
            return offences_of(body)
        case "text/csv":
            cells = [cell for row in csv.reader(io.StringIO(body)) for cell in row]
            return [cell for cell in cells if FORMULA.match(cell) and not NUMBER.fullmatch(cell)]
        case "application/json" | "application/problem+json":
            json.loads(body)
        case "application/x-ndjson":
            _ = [json.loads(line) for line in body.splitlines()]
    return []


def test_harm_is_seen() -> None:
    assert harm_of("text/html", "<img src=x onerror=alert(1)>") == ["img onerror"]
    assert harm_of("text/html", "<script>alert(1)</script>") == ["script alert(1)"]
    assert harm_of("text/csv", "a,-12.5\n=cmd(),@x\n") == ["=cmd()", "@x"]


def test_no_address_lets_a_text_do_harm(administrator: Client, world: World) -> None:
    found, kinds, shown = [], [], 0
    for route in ROUTES:
        for address in addresses(world, route):
            answer: Any = administrator.get(address)
            assert answer.status_code < 500, address
            kind, body = answer.headers.get("Content-Type", "").partition(";")[0], body_of(answer)
            kinds.append((kind, answer.status_code))
            shown += "&lt;img src=x onerror=alert(2)&gt;" in body
            found += [f"{address}: {harm}" for harm in harm_of(kind, body)]

    assert found == []
    assert shown > 80, "the texts that mean harm are not even shown"
    assert kinds.count(("text/html", 200)) > 120
    assert kinds.count(("application/json", 200)) > 40
    assert kinds.count(("text/csv", 200)) >= 2
