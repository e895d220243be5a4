"""Builds a Debian package of the checkout: the locked packages in /opt/facho, units, manual page and completions.

It is for the Debian and the architecture that it is built on, since compiled modules belong to one Python.
"""

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
from collections.abc import Container
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = "opt/facho"
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/facho",
    "zsh": "usr/share/zsh/vendor-completions/_facho",
    "fish": "usr/share/fish/vendor_completions.d/facho.fish",
}
CONTROL = """\
Package: facho
Version: {version}
Architecture: {architecture}
Maintainer: Facho <facho@localhost>
Depends: python3 (>= {python}), python3 (<< {next_python}), passwd, systemd
Recommends: sudo
Suggests: postgresql, postgresql-client, redis-server, nginx | caddy
Section: net
Priority: optional
Installed-Size: {kilobytes}
Description: Polls GPON OLTs over SNMP
 Pages, API, alerts and history for providers, with never two operations at a
 time on one OLT. After the installation: systemctl enable --now facho
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the package is written")
    parser.add_argument("--sources", type=Path, default=ROOT, help="the checkout that is packed (default: this one)")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python of this Debian")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="facho-deb-") as stage:
        print(build(Path(stage), arguments.folder, arguments.sources, arguments.python))
    return 0


def build(stage: Path, folder: Path, sources: Path, python: str) -> Path:
    """Fill the stage with what is installed, and pack it."""
    home = stage / HOME
    _run(python, "-m", "venv", home)
    pip = (home / "bin/python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input")
    _run(*pip, "--require-hashes", "-r", sources / "requirements/run.txt")
    _run(*pip, "--no-deps", "--no-build-isolation", sources)
    version = _run(home / "bin/facho", "--version").split()[1]
    _write(stage / "usr/share/man/man1/facho.1.gz", gzip.compress(_run(home / "bin/facho", "man").encode(), mtime=0))
    for shell, path in COMPLETIONS.items():
        _write(stage / path, _run(home / "bin/facho", "completion", shell).encode())
    _move_home(home, stage)
    copy_tracked("deploy/systemd", stage / "lib/systemd/system")
    _write(stage / "usr/bin/facho", (ROOT / "deploy/facho").read_bytes(), mode=0o755)
    documents = stage / "usr/share/doc/facho"
    _write(documents / "copyright", (ROOT / "LICENSE").read_bytes())
    copy_tracked("deploy", documents / "deploy", leave_out=("debian",))
    major, minor = _run(python, "-c", "import sys; print(*sys.version_info[:2])").split()
    kilobytes = sum(path.lstat().st_size for path in stage.rglob("*")) // 1024
    architecture = _run("dpkg", "--print-architecture").strip()
    facts = {"python": f"{major}.{minor}", "next_python": f"{major}.{int(minor) + 1}", "kilobytes": kilobytes}
    # Before its release, in the order of Debian.
    name = version.replace(".dev", "~dev")
    control = CONTROL.format(version=name, architecture=architecture, **facts)
    _write(stage / "DEBIAN/control", control.encode())
    for script in SCRIPTS:
        _write(stage / "DEBIAN" / script, (ROOT / "deploy/debian" / script).read_bytes(), mode=0o755)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"facho_{name}_{architecture}.deb"
    _run("dpkg-deb", "--root-owner-group", "--uniform-compression", "-Zgzip", "-z3", "--build", stage, target)
    return target


def copy_tracked(folder: str, target: Path, *, leave_out: Container[str] = ()) -> None:
    """Copy what git tracks in a folder: an operator keeps passwords, keys and dumps in the same place."""
    for name in tracked_files(ROOT / folder):
        if Path(name).parts[0] not in leave_out:
            _write(target / name, (ROOT / folder / name).read_bytes())


def tracked_files(folder: Path) -> list[str]:
    try:
        listed = _run("git", "-C", folder, "ls-files", "-z")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"make deb needs git and a checkout: only tracked files of {folder} are packed") from error
    return listed.rstrip("\0").split("\0")


def _move_home(home: Path, stage: Path) -> None:
    """Let the programs and their Python find each other where they are installed; pip itself stays behind."""
    for path in (home / "bin").iterdir():
        if path.is_symlink():
            continue
        text = path.read_bytes()
        if path.name.startswith(("pip", "activate", "Activate")):
            path.unlink()
        elif text.startswith(b"#!"):
            path.write_bytes(text.replace(str(stage).encode() + b"/", b"/"))
    configuration = home / "pyvenv.cfg"
    configuration.write_text(configuration.read_text().replace(f"{stage}/", "/"))
    stage.chmod(0o755)


def _write(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def _run(*command: str | Path) -> str:
    # Texts of a package are in one language; each command has its own.
    environ = {**os.environ, "FACHO_LANGUAGE": "en", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environ).stdout


if __name__ == "__main__":
    sys.exit(main())
