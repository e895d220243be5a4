"""Our requests to NetBox, and the answers of the tests' NetBox, are those that NetBox itself describes, by version."""

import json
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from facho.neighbours.netbox import DEVICES_PATH, fetch_count, fetch_devices, save_fields
from servers.netbox import NetBox, named
from servers.netbox_schema import VERSIONS, VERSIONS_OF_CHANGES, faults_of_answer, faults_of_body, parameters

# Understood by every list of NetBox, and not in its description: the REST API's overview in its documentation.
NOT_DESCRIBED = {"exclude"}
FIELDS = {"up": "boolean", "seen": "datetime", "onus": "integer", "model": "text", "link": "url"}
VALUES = {
    "up": True,
    "seen": "2026-10-01T12:30:05+00:00",
    "onus": 812,
    "model": "MA5800-X7",
    "link": "https://facho.example.net/olts/1/",
}


@pytest.fixture
def filled(netbox: NetBox, settings: Settings) -> NetBox:
    settings.FACHO_NETBOX_ROLES, settings.FACHO_NETBOX_SITES = ("olt", "router"), ("centro",)
    settings.FACHO_NETBOX_TAG = "facho"
    netbox.custom_fields = dict(FIELDS)
    netbox.add(1, "olt-1", "10.20.0.1", tags=[named(1, "facho")])
    netbox.add(2, None, "2001:db8::1", tags=[named(1, "facho")])
    netbox.add(3, "olt-3", tags=[named(1, "facho")])
    netbox.set_status(3, "decommissioning")
    return netbox


@pytest.mark.parametrize("version", VERSIONS)
def test_every_request_is_one_that_netbox_describes(filled: NetBox, version: str) -> None:
    fetch_devices()
    fetch_count()

    for method, address in filled.asked:
        parts = urlsplit(address)
        unknown = set(parse_qs(parts.query)) - set(parameters(version, "GET", parts.path)) - NOT_DESCRIBED
        assert (method, unknown) == (method, set())
    assert [method for method, _address in filled.asked] == ["GET", "GET"]


@pytest.mark.parametrize("version", VERSIONS_OF_CHANGES)
def test_every_change_is_one_that_netbox_describes(filled: NetBox, version: str) -> None:
    save_fields([(1, VALUES), (2, dict.fromkeys(FIELDS))])

    assert [faults_of_body(version, "PATCH", DEVICES_PATH, body) for body in filled.changed] == [[]]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_answer_of_the_tests_is_one_that_netbox_describes(filled: NetBox, version: str) -> None:
    listed = ask(filled, "GET", "?role=olt&limit=50")
    changed = ask(filled, "PATCH", "", [{"id": 1, "custom_fields": VALUES}])

    assert [row["id"] for row in listed["results"]] == [1, 2, 3]
    assert faults_of_answer(version, "GET", DEVICES_PATH, listed) == []
    assert faults_of_answer(version, "PATCH", DEVICES_PATH, changed) == []


def test_the_descriptions_refuse_what_is_wrong(filled: NetBox) -> None:
    listed = ask(filled, "GET", "?role=olt&limit=50")
    listed["results"][0]["status"]["value"] = "asleep"
    del listed["results"][1]["role"]

    assert len(faults_of_answer("4.6", "GET", DEVICES_PATH, listed)) == 2
    assert faults_of_body("4.6", "PATCH", DEVICES_PATH, [{"id": "one"}]) != []
    assert "rolle" not in parameters("4.6", "GET", DEVICES_PATH)


def ask(netbox: NetBox, method: str, query: str, body: object = None) -> object:
    request = urllib.request.Request(  # noqa: S310 loopback
        f"{netbox.url}{DEVICES_PATH}{query}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Token {netbox.token}", "Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return json.load(answer)
