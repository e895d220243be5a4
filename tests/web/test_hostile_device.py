"""Every address of the product, on rows whose every text means harm: pages run nothing, spreadsheets neither."""

import csv
import io
import json
import re
from typing import Any

import pytest
from django.test import Client

from accounts.two_groups import World
from api.rows import make_user
from facho.accounts.roles import Role
from web.every_address import all_addresses, body_of
from web.hostile_rows import make_hostile_world
from web.page_offences import offences_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

FORMULA = re.compile(r"[=+\-@\t\r]")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@pytest.fixture
def world() -> World:
    return make_hostile_world()


@pytest.fixture
def administrator(world: World) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN, "ana"))
    return client


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
    for address in all_addresses(world):
        answer: Any = administrator.get(address)
        # No engine runs here, and this one says so.
        assert answer.status_code < 500 or address == "/readyz", address
        kind, body = answer.headers.get("Content-Type", "").partition(";")[0], body_of(answer)
        kinds.append((kind, answer.status_code))
        shown += "&lt;img src=x onerror=alert(2)&gt;" in body
        found += [f"{address}: {harm}" for harm in harm_of(kind, body)]

    assert found == []
    assert shown > 80, "the texts that mean harm are not even shown"
    assert kinds.count(("text/html", 200)) > 120
    assert kinds.count(("application/json", 200)) > 40
    assert kinds.count(("text/csv", 200)) >= 2
