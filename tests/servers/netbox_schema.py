"""What NetBox publishes of its API, by version: the parameters of a request, and the shapes of bodies and answers."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = files("netbox_sdk") / "reference" / "openapi"
VERSIONS = ("4.3", "4.4", "4.5", "4.6", "4.7")
# Those before describe a change of many devices as if each had to be whole, which their documentation denies.
VERSIONS_OF_CHANGES = ("4.6", "4.7")


@cache
def _document(version: str) -> Any:
    return _nullable(json.loads((FOLDER / f"netbox-openapi-{version}.json").read_text()))


def _nullable(node: Any) -> Any:
    """Write `nullable` of OpenAPI 3.0 as JSON Schema has it."""
    if isinstance(node, list):
        return [_nullable(each) for each in node]
    if not isinstance(node, dict):
        return node
    read = {key: _nullable(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [read, {"type": "null"}]} if node.get("nullable") is True else read


def parameters(version: str, method: str, path: str) -> dict[str, str]:
    """Return the types of what may stand in the query."""
    declared = _document(version)["paths"][path][method.lower()].get("parameters", [])
    return {each["name"]: each["schema"].get("type", "") for each in declared if each["in"] == "query"}


def faults_of_body(version: str, method: str, path: str, body: Any) -> list[str]:
    asked = _document(version)["paths"][path][method.lower()]["requestBody"]
    return _faults(version, asked["content"]["application/json"]["schema"], body)


def faults_of_answer(version: str, method: str, path: str, answer: Any) -> list[str]:
    answered = _document(version)["paths"][path][method.lower()]["responses"]["200"]
    return _faults(version, answered["content"]["application/json"]["schema"], answer)


def _faults(version: str, schema: Any, value: Any) -> list[str]:
    root = {**schema, "components": _document(version)["components"]}
    found = Draft202012Validator(root, format_checker=Draft202012Validator.FORMAT_CHECKER).iter_errors(value)
    return [f"{fault.json_path}: {fault.message[:200]}" for fault in found]
