"""What the pages say about the product is what the code has: constraints, log names, findings, days."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from docs_pages import ROOT, blocks, rows, spans

from facho.core.env import SETTINGS
from facho.execution_coordinator.retention import RETENTIONS

ARCHITECTURE = ROOT / "docs/architecture.md"
OPERATIONS = ROOT / "docs/operations.md"
DOCTOR = (ROOT / "src/facho/core/cli/doctor.py").read_text()
SOURCES = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))


def unquoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_constraint_of_the_page_stands_in_the_table_it_names() -> None:
    documented = {
        (unquoted(row[0])[0], unquoted(row[1])[0]) for row in rows(ARCHITECTURE, heading="## What is enforced")
    }
    models = [model for model in apps.get_models() if model.__module__.startswith("facho.")]
    actual = {(constraint.name, model._meta.db_table) for model in models for constraint in model._meta.constraints}

    assert documented
    assert documented <= actual


def test_every_room_has_its_row() -> None:
    packages = {path.parent for path in (ROOT / "src/facho").glob("*/__init__.py")}
    packages |= {path.parent for path in (ROOT / "src/facho/polling").glob("*/__init__.py")}
    packages |= {ROOT / "src/facho/core/cli", ROOT / "src/facho/core/processes"}
    rooms = {"facho." + ".".join(path.relative_to(ROOT / "src/facho").parts) for path in packages}

    documented = {unquoted(row[0])[0] for row in rows(ARCHITECTURE, heading="## Rooms")}

    assert documented == rooms - {"facho.polling"}


def test_every_name_in_code_that_the_page_gives_is_there() -> None:
    names = [match[1] for span in spans(ARCHITECTURE) if (match := re.fullmatch(r"(_?[A-Za-z]\w+)(?:\(.*\))?", span))]
    words = {*re.findall(r"\w+", SOURCES), *(model._meta.db_table for model in apps.get_models())}

    assert names
    assert [name for name in names if name not in words] == []


def test_every_log_name_of_the_page_is_written_somewhere() -> None:
    logged = set(re.findall(r"\"([a-z_]+\.[a-z_]+)[ \"]", SOURCES))

    assert explained_log_names()
    assert explained_log_names() <= logged


def test_every_name_that_is_logged_is_explained() -> None:
    logged = set(re.findall(r"logger\.\w+\(\s*\"([a-z_]+\.[a-z_]+)[ \"]", SOURCES))

    assert logged <= explained_log_names()


def explained_log_names() -> set[str]:
    return {name for row in rows(OPERATIONS, heading="## Logs") for name in unquoted(row[0])}


def test_every_finding_of_the_doctor_is_explained() -> None:
    source = DOCTOR.split("def examine_cluster")[0]

    explained = {unquoted(row[0])[0] for row in rows(OPERATIONS, heading="`facho doctor` prints")}

    assert explained == set(re.findall(r"\b(?:ok|warning|error)\(\s*\"([a-z-]+)\"", source)) | {"settings"}


def test_every_finding_about_a_cluster_is_explained() -> None:
    source = DOCTOR.split("def examine_cluster")[1]

    explained = {unquoted(row[0])[0] for row in rows(OPERATIONS, heading="In the distributed mode it also checks")}

    assert explained == set(re.findall(r"(?:ok|warning|error|_named)\(\s*\"([a-z-]+)\"", source))


def test_the_days_that_rows_are_kept_are_those_of_the_code() -> None:
    reported = [int(row[1]) for row in rows(OPERATIONS, heading="## How long things are kept") if row[1].isdecimal()]

    assert set(reported) == {retention.days for retention in RETENTIONS if retention.days}


@pytest.mark.parametrize(
    "page", [ARCHITECTURE, OPERATIONS, ROOT / "SECURITY.md", ROOT / "README.md"], ids=lambda p: p.name
)
def test_every_variable_that_a_page_names_is_a_setting(page: Path) -> None:
    words = " ".join([*spans(page), *blocks(page, "sh")])

    assert set(re.findall(r"\bFACHO_[A-Z0-9_]+", words)) <= {setting.name for setting in SETTINGS}


@pytest.mark.parametrize("name", ["README.es.md", "README.pt-BR.md"])
def test_a_translated_readme_shows_the_same_commands(name: str) -> None:
    assert blocks(ROOT / name, "sh") == blocks(ROOT / "README.md", "sh")
