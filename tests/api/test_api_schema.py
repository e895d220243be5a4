"""The OpenAPI document and its page: complete, and without a request to the internet."""

from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

PATHS = ["olts", "nodes", "executions", "pon-ports", "onus", "pollers", "pollers/queue", "pollers/stats"]


@pytest.fixture
def document(viewer: APIClient) -> dict[str, Any]:
    answer = viewer.get("/api/v1/schema/?format=json")
    body: dict[str, Any] = answer.json()
    return body


def test_every_resource_is_in_the_document(document: dict[str, Any]) -> None:
    assert {f"/api/v1/{path}/" for path in PATHS} <= set(document["paths"])
    assert "post" in document["paths"]["/api/v1/pollers/nodes/{node_id}/run/"]


def test_filters_are_in_the_document(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/v1/onus/"]["get"]["parameters"]

    assert {"olt", "state", "search", "page", "page_size"} <= {parameter["name"] for parameter in parameters}


def test_the_token_is_in_the_document(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["bearerToken"] == {"type": "http", "scheme": "bearer"}


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
    assert viewer.get("/api/v1/docs/?script=")["Content-Type"].startswith("application/javascript")


def test_the_root_leads_to_the_page_of_the_document(viewer: APIClient) -> None:
    assert viewer.get("/api/v1/").headers["Location"] == "/api/v1/docs/"
