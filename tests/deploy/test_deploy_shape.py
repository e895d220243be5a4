"""Containers, supervisor and proxies: as far as they can be judged without running them."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from deploy_files import DEPLOY, PARTS, read_compose, read_supervisor

from facho.core.processes.web import (
    DESCRIPTORS_PER_CONNECTION,
    HEAD_SECONDS,
    MOST_CONNECTIONS,
    MOST_SIGNED_IN_BODY_BYTES,
    OTHER_DESCRIPTORS,
    STALLED_SECONDS,
)
from facho.core.processes.worker import DRAIN_SECONDS

COMPOSE = read_compose()
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
NGINX, CADDY = (DEPLOY / "nginx/facho.conf").read_text(), (DEPLOY / "caddy/Caddyfile").read_text()
TOP_LEVEL = {"name", "services", "networks", "volumes", "secrets", "x-facho"}
SERVICE_KEYS = {
    "build", "cap_drop", "command", "depends_on", "deploy", "env_file", "environment", "healthcheck", "image", "init",
    "mem_limit", "ports", "read_only", "restart", "secrets", "security_opt", "shm_size", "stop_grace_period",
    "tmpfs", "ulimits", "user", "volumes",
}  # fmt: skip
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


class TestCompose:
    """The compose file against the parts of the specification that it uses."""

    def test_nothing_stands_where_compose_would_not_read_it(self) -> None:
        assert COMPOSE.keys() == TOP_LEVEL
        assert {key for service in SERVICES.values() for key in service} <= SERVICE_KEYS

    def test_whatever_is_referred_to_is_there(self) -> None:
        for service in SERVICES.values():
            waits = service.get("depends_on", {})
            assert waits.keys() <= SERVICES.keys()
            assert {wait["condition"] for wait in waits.values()} <= CONDITIONS
            assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
            for volume in service.get("volumes", []):
                source = volume.partition(":")[0]
                assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()

    def test_who_is_waited_for_to_be_healthy_says_whether_it_is(self) -> None:
        awaited = {
            name
            for service in SERVICES.values()
            for name, wait in service.get("depends_on", {}).items()
            if wait["condition"] == "service_healthy"
        }

        assert awaited == {"database", "redis", "web"}
        assert all("test" in SERVICES[name]["healthcheck"] for name in ("database", "redis"))
        assert "disable" not in SERVICES["web"]["healthcheck"]
        assert "HEALTHCHECK" in DOCKERFILE

    def test_two_of_each_that_must_not_be_missed_and_as_many_workers_as_wanted(self) -> None:
        assert SERVICES["web"]["deploy"]["replicas"] == SERVICES["scheduler"]["deploy"]["replicas"] == 2
        assert SERVICES["worker"]["deploy"]["replicas"] == "${WORKERS:-2}"

    @pytest.mark.parametrize("part", PARTS)
    def test_our_containers_may_do_little_and_have_time_to_stop(self, part: str) -> None:
        service = SERVICES[part]

        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert seconds(service["stop_grace_period"]) > 2 * DRAIN_SECONDS

    def test_only_the_proxy_and_the_receiver_of_traps_can_be_reached_from_outside(self) -> None:
        assert {name for name, service in SERVICES.items() if "ports" in service} == {"proxy", "traps"}
        assert SERVICES["traps"]["ports"] == ["1162:1162/udp"]

    def test_images_have_plain_names(self) -> None:
        images = {service["image"] for service in SERVICES.values()} | set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M))

        assert [image for image in images if "/" in image] == []


def test_the_image_runs_as_a_user_of_its_own_on_the_locked_packages() -> None:
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    assert "--uid 10001" in DOCKERFILE
    assert "--require-hashes -r requirements/run.txt" in DOCKERFILE


def test_the_image_is_made_of_what_the_build_may_see() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    seen = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]
    }

    assert "*" in ignore
    assert copied == seen
    assert all((DEPLOY.parent / name).exists() for name in copied)


def test_the_supervisor_keeps_every_part_running_and_lets_it_stop() -> None:
    entries = read_supervisor()

    assert entries["group:facho"]["programs"].split(",") == [f"facho-{part}" for part in PARTS]
    for part in PARTS:
        program = entries[f"program:facho-{part}"]
        assert (program["user"], program["autorestart"], program["umask"]) == ("facho", "unexpected", "077")
        assert float(program["stopwaitsecs"]) > 2 * DRAIN_SECONDS


@pytest.mark.parametrize("text", [NGINX, CADDY], ids=["nginx", "caddy"])
def test_a_proxy_closes_what_it_opens(text: str) -> None:
    assert text.count("{") == text.count("}")


@pytest.mark.thorough
def test_caddy_finds_its_file_valid(caddy: str, tmp_path: Path) -> None:
    validate = [caddy, "validate", "--adapter", "caddyfile", "--config", DEPLOY / "caddy/Caddyfile"]
    environ = {**os.environ, "HOME": str(tmp_path)}

    judged = subprocess.run(validate, env=environ, capture_output=True, text=True, timeout=60, check=False)

    assert (judged.returncode, "Valid configuration" in judged.stdout + judged.stderr) == (0, True), judged.stderr


def test_a_proxy_bounds_what_the_web_does_and_refuses_nothing_that_it_reads() -> None:
    body, header = (re.findall(pattern, NGINX)[0] for pattern in (r"max_body_size (\d+)m;", r"header_timeout (\d+)s;"))
    in_caddy, header_in_caddy = re.findall(r"max_size (\d+)MB", CADDY)[0], re.findall(r"read_header (\d+)s", CADDY)[0]

    assert min(int(body), int(in_caddy)) * 10**6 >= MOST_SIGNED_IN_BODY_BYTES
    assert {float(header), float(header_in_caddy)} == {HEAD_SECONDS}
    assert f"send_timeout {STALLED_SECONDS:.0f}s;" in NGINX
    assert "limit_conn facho_visitors " in NGINX


def test_the_web_of_compose_has_descriptors_for_all_its_connections() -> None:
    web = SERVICES["web"]

    assert web["ulimits"]["nofile"] >= MOST_CONNECTIONS * DESCRIPTORS_PER_CONNECTION + OTHER_DESCRIPTORS
    assert web["mem_limit"] == "1g"
    assert all("size=" in folder for folder in web["tmpfs"])


def test_nginx_tells_host_and_scheme_and_believes_nobody_about_the_address() -> None:
    reported = dict(re.findall(r"proxy_set_header (\S+) (\S+);", NGINX))

    assert reported == {"Host": "$http_host", "X-Forwarded-Proto": "$scheme", "X-Forwarded-For": "$remote_addr"}
    assert "ssl_certificate_key " in NGINX
    assert "return 301 https://" in NGINX
