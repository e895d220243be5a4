"""A parameter that nobody knows is an error wherever parameters narrow: a typo must not return everything."""

from collections.abc import Iterator

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from accounts.two_groups import World, make_world
from api.rows import make_olt, make_onu
from facho.api.filters import unknown_parameters
from facho.api.problems import problem_of

pytestmark = pytest.mark.django_db


def narrowed_addresses(world: World) -> Iterator[tuple[str, set[str]]]:
    """Give every address that the description says can be narrowed, with the names of its parameters."""
    ids = {f"{name.removeprefix('alert-').replace('-', '_')}_id": pk for name, pk in world.shown.ids.items()}
    ids |= {"channel_id": world.common["alert-channel"]}
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


def test_every_list_knows_what_is_described_and_refuses_the_rest(viewer: APIClient) -> None:
    addresses = dict(narrowed_addresses(make_world()))

    assert len(addresses) > 20
    for path, names in addresses.items():
        assert unknown_names(viewer, path, {"statte": "down"}) == ["statte"], path
        if not path.startswith("/api/v1/schema"):
            assert unknown_names(viewer, path, dict.fromkeys(names, "1")) == [], path


def test_the_error_names_what_there_is(viewer: APIClient) -> None:
    answer = viewer.get("/api/v1/olts/?stat=down", headers={"accept-language": "en"})

    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["errors"] == [
        {
            "field": "stat",
            "code": "unknown",
            "detail": "There is no such parameter. There are: enabled, group, page, page_size, search, state, vendor.",
        }
    ]


@pytest.mark.parametrize("path", ["olts/{olt}/", "olts/{olt}/?state=down", "onus/{onu}/?x=1", "olts/?format=json"])
def test_what_cannot_be_narrowed_is_not_refused(viewer: APIClient, path: str) -> None:
    olt = make_olt()
    onu = make_onu(olt)

    assert viewer.get("/api/v1/" + path.format(olt=olt.pk, onu=onu.pk)).status_code == 200


def test_names_that_errors_themselves_have_are_told_as_any_other() -> None:
    request = Request(APIRequestFactory().get("/", {"message": "1", "code": "2"}))

    problem = problem_of(ValidationError(unknown_parameters(request, [])))

    assert [error.field for error in problem.errors] == ["code", "message"]
