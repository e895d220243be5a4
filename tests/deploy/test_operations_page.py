"""The page for operators knows every log name and every finding that the code has, and every file of `deploy/`."""

import re
from pathlib import Path

import pytest
import uvicorn
from bare_debian import parts_of
from deploy_files import DEPLOY

PAGE = (DEPLOY.parent / "docs/operations.md").read_text()
CONFIGURATION = (DEPLOY.parent / "docs/configuration.md").read_text()
SOURCES = {path: path.read_text() for path in (DEPLOY.parent / "src").rglob("*.py")}

# Which test runs the blocks of which part, every one of them and as it stands.
RUN_BY = {
    "Install": "test_bare_debian.py",
    "As a Debian package": "test_bare_debian.py",
    "First administrator": "test_bare_debian.py",
    "OLTs": "test_bare_debian.py",
    "Between two runs": "test_bare_debian.py",
    "Questions by hand": "test_bare_debian.py",
    "Backup and restore": "test_bare_debian.py",
    "Rotate the encryption key": "test_several_machines.py",
    "Upgrade": "test_bare_debian.py",
    "Remove": "test_bare_debian.py",
    "Traps": "test_several_machines.py",
    "With systemd": "test_several_machines.py",
    "Upgrade them": "test_several_machines.py",
    "Back up and restore the servers": "test_several_machines.py",
    "With containers": "test_containers.py",
}
NOT_RUN = {
    "With Ansible": "the playbook is run by test_ansible_role.py, inside the machine that it changes",
    "With Helm": "no cluster can be had; test_helm_chart.py judges what helm renders",
}


def section(heading: str) -> str:
    return PAGE.split(f"\n{heading}", 1)[1].split("\n## ", 1)[0]


def test_every_log_name_is_explained() -> None:
    names = {name for text in SOURCES.values() for name in re.findall(r"logger\.\w+\(\s*\"([a-z]+\.[a-z_]+)", text)}

    assert [name for name in sorted(names) if f"`{name}`" not in section("## Logs")] == []


def test_every_finding_about_a_cluster_is_explained() -> None:
    source = (DEPLOY.parent / "src/facho/core/cli/doctor.py").read_text().split("def examine_cluster")[1]
    names = set(re.findall(r"(?:ok|warning|error)\((?:_named\()?\"([a-z-]+)\"", source))
    names |= set(re.findall(r"_named\(\"([a-z-]+)\"", source))

    assert names
    assert (
        set(re.findall(r"^\| `([a-z-]+)` \|", section("## Is it well?").split("| Finding of a cluster")[1], re.M))
        == names
    )


def test_every_way_to_deploy_is_named() -> None:
    named = set(re.findall(r"\.\./deploy/([\w./-]+)", PAGE))

    assert named >= {
        "compose.yaml",
        "systemd/facho.service",
        "systemd/facho-.service.d/common.conf",
        "supervisor/facho.conf",
        "nginx/facho.conf",
        "caddy/Caddyfile",
        "ansible/hosts.yml.example",
        "helm/facho/values.yaml",
    }


def test_the_web_believes_the_proxies_that_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.10,198.51.100.0/24")

    assert (
        uvicorn.Config("facho.core.processes.web:build_application").forwarded_allow_ips == "192.0.2.10,198.51.100.0/24"
    )
    assert "`FORWARDED_ALLOW_IPS`" in CONFIGURATION


def test_every_block_of_commands_is_run_by_a_test_or_named_as_not_run() -> None:
    with_blocks = {heading for heading, blocks in parts_of() if blocks}

    assert with_blocks == RUN_BY.keys() | NOT_RUN.keys()
    assert [heading for heading, test in RUN_BY.items() if f'blocks_of("{heading}"' not in text_of(test)] == []
    # The reader learns why not.
    assert "no cluster" in section("## Several machines")


def text_of(test: str) -> str:
    return Path(__file__).with_name(test).read_text()
