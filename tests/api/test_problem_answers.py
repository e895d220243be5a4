"""Errors of the API: one shape, whatever went wrong and wherever."""

import pytest
from django.test import Client
from rest_framework.exceptions import Throttled, ValidationError
from rest_framework.test import APIClient

from facho.api.shared.problems import CONTENT_TYPE, problem_handler, problem_of
from facho.snmp_jobs.models import SnmpJob

MEMBERS = {"type", "title", "status", "detail", "errors"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["olts", "nodes", "executions", "pon-ports", "onus", "pollers"])
def test_nobody_gets_a_401_with_a_challenge(anonymous: APIClient, path: str) -> None:
    answer = anonymous.get(f"/api/v1/{path}/")

    assert (answer.status_code, answer["Content-Type"]) == (401, CONTENT_TYPE)
    assert answer["WWW-Authenticate"] == "Bearer"
    assert set(answer.json()) == MEMBERS


@pytest.mark.django_db
def test_a_wrong_token_gets_a_401() -> None:
    answer = APIClient(HTTP_AUTHORIZATION="Bearer nonsense").get("/api/v1/olts/")

    assert (answer.status_code, answer.json()["status"]) == (401, 401)


def test_what_does_not_exist_is_a_problem(viewer: APIClient) -> None:
    answer = viewer.get("/api/v1/olts/1/")

    assert (answer.status_code, answer["Content-Type"]) == (404, CONTENT_TYPE)
    assert answer.json()["type"] == "urn:facho:problem:not-found"
    assert answer.json()["title"] == "Not Found"


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/nothing", "/api/v1/olts/x/y/"])
def test_an_address_that_nothing_has_is_a_problem_too(viewer: APIClient, path: str) -> None:
    answer = viewer.get(path)

    assert (answer.status_code, answer["Content-Type"]) == (404, CONTENT_TYPE)
    assert set(answer.json()) == MEMBERS


@pytest.mark.django_db
def test_a_page_that_nothing_has_is_a_page() -> None:
    answer = Client().get("/nothing/")

    assert answer.status_code == 404
    assert b"<html" in answer.content


def test_a_method_that_is_not_there_is_a_problem(operator: APIClient) -> None:
    answer = operator.delete("/api/v1/olts/")

    assert (answer.status_code, answer.json()["title"]) == (405, "Method Not Allowed")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_body_that_is_nested_without_end_is_a_problem(operator: APIClient, opening: str) -> None:
    answer = operator.post("/api/v1/pauses/", opening * 100_000, content_type="application/json")

    assert (answer.status_code, answer.json()["type"]) == (400, "urn:facho:problem:parse-error")


def test_a_change_sent_to_an_address_without_its_slash_is_refused(operator: APIClient) -> None:
    """Led on, most programs would come back with a GET, and take its answer for that to their change."""
    change, look = operator.post("/api/v1/pauses", {}, format="json"), operator.get("/api/v1/pauses")

    assert (change.status_code, change["Content-Type"]) == (404, CONTENT_TYPE)
    assert (look.status_code, look["Location"]) == (301, "/api/v1/pauses/")


@pytest.mark.parametrize("number", ["7", "99999999999999999999"])
def test_the_log_of_a_channel_that_is_not_there_is_a_problem(viewer: APIClient, number: str) -> None:
    assert viewer.get(f"/api/v1/alert-channels/{number}/notices/").status_code == 404


def test_a_bad_filter_names_the_parameter(viewer: APIClient) -> None:
    answer = viewer.get("/api/v1/onus/?state=sleepy&pon_port=x", headers={"accept-language": "en"})

    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == ["pon_port", "state"]
    assert answer.json()["errors"][0]["detail"] == "Enter a whole number."


@pytest.mark.parametrize("kind", ["alert-rules", "alert-channels", "jobs"])
def test_of_two_that_take_a_name_at_once_the_second_is_reported(
    admin: APIClient, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    webhook = {"kind": "webhook", "url": "https://example.net/x", "signing_key": "k" * 20}
    job = {"slug": "one", "query_type": "get", "interval_seconds": 600, "oids": [{"oid": "1.3.6.1.2.1.1.3.0"}]}
    wish = {"name": "One", **{"alert-rules": {"kind": "no_leader"}, "alert-channels": webhook, "jobs": job}[kind]}
    assert admin.post(f"/api/v1/{kind}/", wish, format="json").status_code == 201
    # Neither had been saved when both were checked.
    monkeypatch.setattr("rest_framework.validators.qs_exists", lambda _rows: False)
    monkeypatch.setattr(SnmpJob, "validate_unique", lambda *_, **__: None)
    monkeypatch.setattr(SnmpJob, "validate_constraints", lambda *_, **__: None)

    answer = admin.post(f"/api/v1/{kind}/", wish, format="json")

    assert (answer.status_code, answer.json()["type"]) == (409, "urn:facho:problem:conflict")


def test_nested_errors_are_reported_with_their_path() -> None:
    problem = problem_of(ValidationError({"rows": [{"name": ["missing"]}], "non_field_errors": ["unfit"]}))

    assert [(error["field"], error["detail"]) for error in problem.errors] == [("rows.name", "missing")]
    assert problem.detail == "unfit"


def test_who_asks_too_often_is_reported_when_to_come_back() -> None:
    answer = problem_handler(Throttled(wait=7), {})

    assert answer is not None
    assert answer.headers["Retry-After"] == "7"


def test_a_fault_of_ours_is_not_hidden_as_a_problem_of_the_client() -> None:
    assert problem_handler(RuntimeError(), {}) is None


@pytest.mark.django_db
def test_a_fault_of_ours_says_nothing_of_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.dashboard.account.views.local_people", None)
    client = Client(raise_request_exception=False)

    answer = client.get("/login/")

    assert answer.status_code == 500
    assert b"NoneType" not in answer.content
