"""The page for operators knows every log name and every finding that the code has, and every file of `deploy/`."""

import re

import pytest
import uvicorn
from deploy_files import DEPLOY

PAGE = (DEPLOY.parent / "docs/operations.md").read_text()
CONFIGURATION = (DEPLOY.parent / "docs/configuration.md").read_text()
SOURCES = {path: path.read_text() for path in (DEPLOY.parent / "src").rglob("*.py")}


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


def test_the_web_believes_the_proxies_that_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.10,198.51.100.0/24")

    assert (
        uvicorn.Config("facho.core.processes.web:build_application").forwarded_allow_ips == "192.0.2.10,198.51.100.0/24"
    )
    assert "`FORWARDED_ALLOW_IPS`" in CONFIGURATION
