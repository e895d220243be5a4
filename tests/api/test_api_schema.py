"""The OpenAPI document and its page: complete, and without a request to the internet."""

import gzip
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from api.coordinator_rows import make_log, make_plan, make_tracker, make_violation
from api.rows import make_execution, make_node, make_olt, make_onu, make_pollers, make_waiting_onu
from facho.api.shared.schema import read_description
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState

PATHS = [
    "olts",
    "jobs",
    "nodes",
    "executions",
    "pauses",
    "pon-ports",
    "onus",
    "waiting-onus",
    "pollers",
    "pollers/queue",
    "pollers/stats",
    "quotas",
    "violations",
    "plans",
    "coordinator/logs",
    "coordinator/state",
]

HOUR = timedelta(hours=1)


def check(document: dict[str, Any], path: str, body: Any) -> None:
    """Hold an answer against what the document says of it."""
    success = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
    Draft202012Validator({**success["schema"], "components": document["components"]}).validate(body)


@pytest.fixture
def document(viewer: APIClient) -> dict[str, Any]:
    answer = viewer.get("/api/v1/schema/?format=json")
    body: dict[str, Any] = answer.json()
    return body


def test_every_resource_is_in_the_document(document: dict[str, Any]) -> None:
    """S0-43"""
    assert {f"/api/v1/{path}/" for path in PATHS} <= set(document["paths"])


def test_filters_are_in_the_document(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/v1/onus/"]["get"]["parameters"]

    assert {"olt", "state", "search", "page", "page_size"} <= {parameter["name"] for parameter in parameters}


def test_the_token_is_in_the_document(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["bearerToken"] == {"type": "http", "scheme": "bearer"}


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_as_the_document_says(viewer: APIClient, document: dict[str, Any], path: str) -> None:
    """S0-43"""
    make_pollers(2)
    olt = make_olt("North")
    make_onu(olt, run_state="online")
    make_onu(make_olt("South")).reading.delete()
    make_waiting_onu(olt)
    master = make_node(olt, run_requested_at=timezone.now())
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=0)
    make_execution(make_node(master=master), poller_id=0, master_execution=ran, chain_position=1)
    make_execution(make_node(), ExecutionState.WAITING, resume_at=timezone.now() + HOUR, failure_kind="timeout")
    progress = {"rows": 120, "rows_in_all": 817, "ports": 3, "ports_in_all": 22}
    make_execution(make_node(), ExecutionState.RUNNING, progress=progress)
    make_node(next_run_at=timezone.now())
    for place in (olt, None):
        pause(place, minutes=5, note="", now=timezone.now())
        make_log(place)
    make_tracker(olt, will_miss_at=timezone.now())
    make_violation(olt)
    make_plan(olt)

    answer = viewer.get(f"/api/v1/{path}/")

    check(document, f"/api/v1/{path}/", answer.json())


@pytest.mark.parametrize("is_member", [True, False])
def test_an_explanation_is_as_the_document_says(viewer: APIClient, document: dict[str, Any], is_member: bool) -> None:
    olt = make_olt()
    make_execution(make_node(olt))
    master = make_node(olt, next_run_at=timezone.now())
    node = make_node(master=master) if is_member else master

    answer = viewer.get(f"/api/v1/nodes/{node.id}/explain/")

    check(document, "/api/v1/nodes/{id}/explain/", answer.json())


def test_a_plan_is_as_the_document_says(viewer: APIClient, document: dict[str, Any]) -> None:
    answer = viewer.get(f"/api/v1/plans/{make_plan().id}/")

    check(document, "/api/v1/plans/{id}/", answer.json())


def test_every_operation_says_how_it_fails(document: dict[str, Any]) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]

    kinds = {next(iter(operation["responses"]["default"]["content"])) for operation in operations}
    assert kinds == {"application/problem+json"}
    assert document["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail", "errors"]


def test_the_document_is_made_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn")

    assert "openapi: 3.1.0" in capsys.readouterr().out


def test_the_page_of_the_document_has_no_script_inside_and_asks_nobody_else(viewer: APIClient) -> None:
    page = viewer.get("/api/v1/docs/").content.decode()

    assert page.count("<script") == page.count("<script src=")
    assert "//" not in page.replace("/>", "").split("<body>")[1]


def test_the_page_of_the_document_is_in_the_frame_of_the_product_and_light(viewer: APIClient) -> None:
    answer = viewer.get("/api/v1/docs/", headers={"accept-encoding": "gzip", "accept-language": "en"})

    page = gzip.decompress(answer.content).decode()
    assert '<nav aria-label="Main">' in page
    assert len(answer.content) < 100_000


def test_the_page_of_the_document_names_every_operation_and_every_object(
    viewer: APIClient, document: dict[str, Any]
) -> None:
    page = viewer.get("/api/v1/docs/").content.decode()

    operations = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert [name for name in operations if f'<details id="{name}">' not in page] == []
    shapes = document["components"]["schemas"]
    assert [name for name in shapes if f'<details id="object-{name}">' not in page] == []
    assert (
        '<a href="/api/v1/onus/">Try it'
        in viewer.get("/api/v1/docs/", headers={"accept-language": "en"}).content.decode()
    )
    linked = set(re.findall('href="#object-([^"]+)"', page))
    assert linked <= set(shapes)


def test_a_call_is_described_with_its_parameters_body_and_answers(document: dict[str, Any]) -> None:
    calls = {call.id: call for calls in read_description(document).calls.values() for call in calls}

    wanted = {value.name: value for value in calls["onus_list"].parameters}
    assert "dying_gasp" in wanted["cause"].words
    assert calls["pauses_create"].body
    assert calls["pauses_create"].body.shape == "NewPause"
    assert {status: value.shape for status, value in calls["pauses_create"].answers.items()} == {"201": "Pause"}


def test_the_root_leads_to_the_page_of_the_document(viewer: APIClient) -> None:
    assert viewer.get("/api/v1/").headers["Location"] == "/api/v1/docs/"
