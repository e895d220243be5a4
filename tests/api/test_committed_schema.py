"""The description of the API that is committed is the one that the product gives: a change of it is seen in review."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from drf_spectacular.generators import SchemaGenerator

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.yaml"


def operations(document: dict[str, Any]) -> dict[str, Any]:
    return {f"{method.upper()} {path}": op for path, ops in document["paths"].items() for method, op in ops.items()}


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(COMMITTED.read_text())
    return document


@pytest.fixture(scope="module")
def generated() -> dict[str, Any]:
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    # As the file has it: texts that wait for a language become texts.
    plain: dict[str, Any] = yaml.safe_load(yaml.safe_dump(_plain(document)))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


def test_the_operations_are_those_of_the_committed_description(
    committed: dict[str, Any], generated: dict[str, Any]
) -> None:
    before, now = operations(committed), operations(generated)

    changed = sorted(
        f"{'-' if name not in now else '+' if name not in before else '~'} {name}"
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
    )
    assert changed == [], "`make openapi` writes docs/openapi.yaml again; say in the changelog what changes for users"


def test_the_shapes_are_those_of_the_committed_description(
    committed: dict[str, Any], generated: dict[str, Any]
) -> None:
    before, now = committed["components"]["schemas"], generated["components"]["schemas"]

    assert sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)) == []
