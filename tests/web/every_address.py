"""Every address of the product, with a sample of each row that one may be about."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from asgiref.sync import async_to_sync
from django.apps import apps

from accounts.two_groups import OID, OTHER_PARTS, Route, World, all_routes
from facho.dashboard.events.views import EVENT_TABLE
from facho.dashboard.olt import views as olt_views
from facho.dashboard.olt.list import OLT_TABLE
from facho.dashboard.onu import views as onu_views
from facho.dashboard.onu.list import ONU_TABLE
from facho.dashboard.outage import views as outage_views
from facho.dashboard.outage.views import OUTAGE_TABLE
from facho.dashboard.plant.views import BOX_TABLE
from facho.dashboard.pollers.views import EXECUTION_TABLE
from facho.dashboard.port import views as port_views
from facho.dashboard.shared.table import ListTable
from facho.dashboard.violations.views import VIOLATION_TABLE
from facho.infrastructure.spreadsheet import SIGNATURE, read_workbook

# Leaving, and finding whatever has no address.
LEFT_OUT = {"logout/", "admin/logout/", "admin/(?P<url>.*)$"}
PARTS = {
    "olts/": olt_views.PARTS | olt_views.LATE_PARTS,
    "onus/": onu_views.PARTS,
    "outages/": outage_views.PARTS,
}


def every_column(table: ListTable) -> str:
    return "&".join(f"col={column.name}" for column in table.columns)


def files(table: ListTable) -> list[str]:
    """Ask for a list with every column, as a page and as every kind of file."""
    columns = every_column(table)
    return [columns, *(f"{columns}&export={kind}" for kind in ("csv", "json", "xlsx"))]


# What an address needs besides, so that it answers with rows.
QUERIES = {
    "api/v1/olts/<int:olt_id>/data/history/": [f"oid={OID}&index=0.1"],
    "api/v1/onus/<int:onu_id>/data/history/": [f"oid={OID}"],
    "api/v1/^onus/$": ["", "format=csv", "format=ndjson"],
    "search/": ["q=img", "q=%3Cscript%3Ealert(1)%3C/script%3E"],
    "search/suggestions/": ["q=img", "q=%3Cscript%3Ealert(1)%3C/script%3E"],
    "onus/": ["", "q=%3Cscript%3Ealert(1)%3C/script%3E", every_column(ONU_TABLE)],
    "olts/": ["", *files(OLT_TABLE)],
    "views/": ["page=onus&query=q%3D%3Cscript%3E"],
    "boxes/": ["", "q=%3Cscript%3Ealert(1)%3C/script%3E", *files(BOX_TABLE)],
    "map/features/": ["west=-180&south=-90&east=180&north=90&customers=true"],
    "events/": ["", *files(EVENT_TABLE)],
    "executions/": ["", *files(EXECUTION_TABLE)],
    "outages/": ["", *files(OUTAGE_TABLE)],
    "violations/": ["", *files(VIOLATION_TABLE)],
    "api/v1/^onus/export/$": ["", "format=xlsx", "format=json"],
}


def all_addresses(world: World) -> Iterator[str]:
    """Write every address that the product answers."""
    for route in all_routes():
        if route.pattern not in LEFT_OUT:
            yield from addresses(world, route)


def addresses(world: World, route: Route) -> Iterator[str]:
    """Write every address of a pattern; a part of one that nobody knows is an error."""
    place = {name: OTHER_PARTS[name] for name in ("frame", "slot", "port", "number", "code", "kind", "month", "call")}
    parts = {"token": "1", **place, **world.common, **world.shown.ids, **_of_admin(route)}
    names = _names_of_parts(route)
    missing = [name for name in route.names if name not in parts and name != "name"]
    assert not missing, f"{route.pattern} needs a sample of {missing}"
    for name, query in product(names, QUERIES.get(route.pattern, [""])):
        yield route.fill({**parts, "name": name}) + (f"?{query}" if query else "")


def _names_of_parts(route: Route) -> list[str]:
    if "<slug:name>" not in route.pattern:
        return [""]
    if "/ports/" in route.pattern:
        return list(port_views.PARTS)
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
    """Read an answer, also one that is written while it is read."""
    if not getattr(answer, "is_async", False):
        return str(answer.getvalue().decode())

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    sent = async_to_sync(read)()
    if sent.startswith(SIGNATURE):
        return "\n".join(cell for _line, cells in read_workbook(sent) for cell in cells)
    return sent.decode()
