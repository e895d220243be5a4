"""The settings that `deploy/` gives exist, are enough for the distributed mode, and hold no password of ours."""

import re
import shlex
from typing import Any

import pytest
from deploy_files import COMMON, DEPLOY, PARTS, example_values, filled_in, read_compose, read_ini, read_supervisor

from facho.core.database import database_entry
from facho.core.env import SETTINGS, Mode, read_environment

NAMES = {setting.name for setting in SETTINGS}
# What every process of the distributed mode wants to be reported.
REQUIRED = {"FACHO_MODE", "DATABASE_URL", "REDIS_URL", "FACHO_SECRET_KEY_FILE", "FACHO_ENCRYPTION_KEYS_FILE"}
# Read by uvicorn: whose word about address and scheme is believed.
UVICORN = {"FORWARDED_ALLOW_IPS"}
SERVICES: dict[str, Any] = read_compose()["services"]
OWN_IMAGE = [*PARTS, "migrate"]


def environment_of(service: str) -> dict[str, str]:
    values = example_values()
    return {name: filled_in(str(text), values) for name, text in SERVICES[service]["environment"].items()}


@pytest.mark.parametrize("service", OWN_IMAGE)
def test_a_container_gets_settings_that_exist_and_all_that_are_required(service: str) -> None:
    environ = environment_of(service)
    read = read_environment(environ)

    assert environ.keys() - NAMES <= UVICORN
    assert environ.keys() >= REQUIRED
    assert (read.problems, read.unknown_names, read["FACHO_MODE"]) == ((), (), Mode.DISTRIBUTED)


def test_a_container_finds_the_servers_by_the_names_they_have() -> None:
    environ = environment_of("worker")
    entry = database_entry(environ["DATABASE_URL"], data_dir=DEPLOY)

    assert entry["HOST"] in SERVICES
    assert entry["USER"] == SERVICES["database"]["environment"]["POSTGRES_USER"]
    assert entry["NAME"] == SERVICES["database"]["environment"]["POSTGRES_DB"]
    assert entry["PASSWORD"] == environment_of("database")["POSTGRES_PASSWORD"] == "a1b2c3"
    assert environ["REDIS_URL"] == "redis://:a1b2c3@redis:6379/0"


def test_no_password_has_a_default() -> None:
    texts = {path: path.read_text() for path in DEPLOY.rglob("*") if path.is_file()}
    compose = texts[DEPLOY / "compose.yaml"]

    assert re.findall(r"\$\{\w*PASSWORD\w*:-", compose) == []
    assert set(re.findall(r"PASSWORD\w*: (.*)", compose)) == {"${POSTGRES_PASSWORD:?set it in deploy/.env}"}
    assert re.findall(r"^\w*PASSWORD=.+", texts[DEPLOY / "compose.env.example"], re.MULTILINE) == []
    assert [path for path, text in texts.items() if re.search(r"://\w*:[^@$\s{]+@", text)] == []


def test_every_variable_of_the_compose_file_is_in_the_example() -> None:
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))

    assert used == example_values().keys()


def test_the_keys_are_files_that_only_containers_of_ours_see() -> None:
    keys = {f"/run/secrets/{name}" for name in read_compose()["secrets"]}

    assert {environment_of("web")[name] for name in ("FACHO_SECRET_KEY_FILE", "FACHO_ENCRYPTION_KEYS_FILE")} == keys
    assert [name for name, service in SERVICES.items() if "secrets" in service] == [
        name for name in SERVICES if name in OWN_IMAGE
    ]


def test_units_and_supervisor_give_settings_that_exist() -> None:
    given = [read_ini(COMMON)["Service"]["Environment"].split()]
    supervised = [read_supervisor()[f"program:facho-{part}"]["environment"] for part in PARTS]
    given += [shlex.split(text.replace(",", " ")) for text in supervised]

    for pairs in given:
        environ = dict(pair.split("=", 1) for pair in pairs)
        assert environ == {"FACHO_MODE": "distributed", "FACHO_DATA_DIR": "/var/lib/facho"}
        assert environ.keys() <= NAMES
