"""Image and compose file as they stand, by the lines of docs/operations.md: start, backup, restore and upgrade."""

import re
import subprocess
from pathlib import Path

import pytest
from bare_debian import ROOT, blocks_of, count_rows, later_migration
from container_host import Docker

pytestmark = [pytest.mark.thorough("sqlite"), pytest.mark.slow, pytest.mark.any_database]

PASSWORD = "correct-horse-battery-7\n" * 2
FILLED = {"POSTGRES_PASSWORD": "abc123", "REDIS_PASSWORD": "def456", "HOST_NAME": "localhost"}
# Two schedulers, web processes and a proxy have to find each other on a busy machine.
READY_SECONDS = 300


def test_compose_starts_is_backed_up_restored_and_upgraded_with_its_data(docker: Docker, tmp_path: Path) -> None:
    checkout = tmp_path / "facho"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout], check=True)
    configuration = (ROOT / "docs/configuration.md").read_text()
    docker.run(blocks_of("The two keys", configuration)[0], folder=checkout)
    # What the page says to fill in before the start.
    example = checkout / "deploy/compose.env.example"
    text = example.read_text()
    for name, value in FILLED.items():
        text = re.sub(rf"^{name}=$", f"{name}={value}", text, flags=re.MULTILINE)
    example.write_text(text)

    start, save, restore, upgrade, back = blocks_of("With containers")
    docker.run(start, folder=checkout, stdin=PASSWORD)
    assert '"ready"' in docker.get("https://localhost/readyz", READY_SECONDS)
    deploy = checkout / "deploy"
    running = docker.run("docker compose ps --services", folder=deploy).split()
    assert {"web", "scheduler", "worker", "beat", "beat-worker", "traps", "proxy", "database", "redis"} <= set(running)
    user = docker.run("docker compose exec -T web id --user", folder=deploy)
    written = docker.try_to("docker compose exec -T web touch /opt/facho/x", folder=deploy)
    assert (user.strip(), written.returncode != 0) == ("10001", True)

    docker.run(save, folder=deploy)
    assert (deploy / "facho.dump").stat().st_mode & 0o777 == 0o600
    later = "docker compose exec -T web facho user create eva --role viewer"
    docker.run(later, folder=deploy, stdin=PASSWORD)
    docker.run(restore, folder=deploy)
    assert '"ready"' in docker.get("https://localhost/readyz", READY_SECONDS)
    people = docker.run("docker compose exec -T scheduler facho user list", folder=deploy)
    assert ("ana" in people, "eva" in people) == (True, False)

    before, rows = version(docker, deploy), rows_of(docker, deploy)
    previous = docker.run("git rev-parse HEAD", folder=checkout).strip()
    # The next version: one migration more.
    name = "src/facho/hosts/migrations/0999_later.py"
    docker.run(f"cat > {name} && git add {name}", folder=checkout, stdin=later_migration())
    docker.run(
        "git -c user.name=t -c user.email=t@example.net commit --quiet --message Next"
        " && git branch next && git reset --quiet --hard HEAD~ && git config remote.origin.url $PWD/.git"
        " && git config branch.$(git branch --show-current).merge refs/heads/next",
        folder=checkout,
    )
    (deploy / "facho.env").write_text("FACHO_LOG_FORMAT=json\n")
    docker.run(upgrade, folder=deploy)
    told = docker.run("docker compose exec -T scheduler sh -c 'echo $FACHO_LOG_FORMAT'", folder=deploy)
    assert told.strip() == "json"
    assert version(docker, deploy) != before
    assert '"ready"' in docker.get("https://localhost/readyz", READY_SECONDS)
    assert rows_of(docker, deploy, "later") == {"later": 0} | rows

    docker.run(back.replace("PREVIOUS", previous) + restore, folder=deploy)
    assert '"ready"' in docker.get("https://localhost/readyz", READY_SECONDS)
    assert (version(docker, deploy), rows_of(docker, deploy)) == (before, rows)
    assert docker.run("docker volume ls --quiet", folder=deploy).split() == sorted(
        ["facho_certificates", "facho_data", "facho_database"]
    )


def version(docker: Docker, deploy: Path) -> str:
    return docker.run("docker compose exec -T web facho --version", folder=deploy)


def rows_of(docker: Docker, deploy: Path, *others: str) -> dict[str, int]:
    psql = "docker compose exec -T database psql --username=facho -At --command"
    return count_rows(lambda query: docker.run(f"{psql} '{query}' facho", folder=deploy), *others)
