"""What an operator keeps in a checkout, as the pages say to, reaches neither git nor a package."""

import subprocess
from pathlib import Path

import pytest
from deploy_files import DEPLOY
from tools import debian_package

ROOT = DEPLOY.parent
SECRETS = (
    "secret-key",
    "encryption-keys",
    "facho.env",
    "facho.dump",
    "my-values.yaml",
    "deploy/.env",
    "deploy/facho.env",
    "deploy/facho.dump",
    "deploy/secrets/secret-key",
    "deploy/ansible/hosts.yml",
    "deploy/ansible/secret-key",
    "deploy/ansible/encryption-keys",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in use: this one's deploy/ with an operator's files in it, and a file that no rule ignores."""
    tracked = subprocess.run(
        ["git", "ls-files", "--", ".gitignore", "deploy"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    for name in tracked:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "add", "--", *tracked], cwd=tmp_path, check=True)
    for name in (*SECRETS, "deploy/passwords-of-mine"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("secret")
    monkeypatch.setattr(debian_package, "ROOT", tmp_path)
    return tmp_path


def test_git_offers_none_of_them_for_a_commit(checkout: Path) -> None:
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    untracked = [
        line[3:]
        for line in subprocess.run(status, cwd=checkout, check=True, capture_output=True, text=True).stdout.splitlines()
        if line.startswith("??")
    ]

    assert untracked == ["deploy/passwords-of-mine"]


def test_the_package_has_tracked_files_alone(checkout: Path, tmp_path: Path) -> None:
    target = tmp_path / "packed"

    debian_package.copy_tracked("deploy", target, leave_out=("debian",))

    packed = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert {"compose.yaml", "ansible/hosts.yml.example", "systemd/facho.service"} <= packed
    assert [name for name in packed if name.startswith("debian/") or (target / name).read_text() == "secret"] == []


def test_without_git_nothing_is_packed_and_the_reason_is_said(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout / "no-programs"))

    with pytest.raises(SystemExit, match="make deb needs git and a checkout"):
        debian_package.copy_tracked("deploy", checkout / "packed")
