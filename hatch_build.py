"""Finds the version and compiles translations and decoder while the package is built, editable installs included."""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DECODER = Path("src/facho/polling/snmp/_pages.c")
# The release that the next commits lead to, as long as no tag names one.
RELEASE = "0.1.0"
# What is written by hand; the rest is made of it.
HASHED = (".py", ".html", ".css", ".js", ".yaml", ".po", ".c", ".txt", ".json")
# The limited API that the source asks for: one build serves this Python and all later ones.
ABI = "cp311-abi3"
FLAGS = ("-std=c11", "-O2", "-Wall", "-fPIC", "-shared")
# There, symbols of Python are only found while the module is loaded.
MAC_FLAGS = ("-undefined", "dynamic_lookup")


class CompilePackage(BuildHookInterface[Any]):
    """Writes a .mo beside each .po, and the decoder beside its source where a compiler and Python's headers are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile every catalogue below src, and for an install the decoder; it has a twin if that fails."""
        for source in sorted(Path(self.root, "src").rglob("*.po")):
            with source.open("rb") as po, source.with_suffix(".mo").open("wb") as mo:
                write_mo(mo, read_po(po))
        if self.target_name != "wheel":
            return
        try:
            compile_decoder(Path(self.root, DECODER), Path(self.root, DECODER).with_suffix(".abi3.so"))
        except (OSError, subprocess.CalledProcessError) as error:
            reason = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
            self.app.display_warning(f"the decoder of answers was not compiled, the slower one is used: {reason}")
        else:
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data.update(pure_python=False, tag=f"{ABI}-{platform}")


def find_version(root: Path | None = None) -> str:
    """Name the sources: by git, in an sdist by its metadata, else by a hash of them; each change has another name."""
    root = root or Path(__file__).resolve().parent
    try:
        written = re.search(r"^Version: (\S+)$", (root / "PKG-INFO").read_text(), re.MULTILINE)
    except OSError:
        written = None
    return written[1] if written else _version_by_git(root) or f"{RELEASE}+s{_hash_of_sources(root)}"


def _version_by_git(root: Path) -> str:
    """Return the release of a tag, or the commits after it; nothing where this is no checkout of its own."""
    if _git(root, "rev-parse", "--show-toplevel") != str(root):
        return ""
    described = _git(root, "describe", "--tags", "--long", "--match", "v[0-9]*")
    tag, _, after = described.removeprefix("v").partition("-")
    commits, _, commit = after.partition("-")
    if not described:
        tag, commits, commit = (
            RELEASE,
            _git(root, "rev-list", "--count", "HEAD"),
            "g" + _git(root, "rev-parse", "--short", "HEAD"),
        )
    changes = ".dirty" if _git(root, "status", "--porcelain", "--untracked-files=no") else ""
    if described and commits == "0":
        return f"{tag}+dirty" if changes else tag
    # After a release it is on the way to the next one; before the first, to that.
    *first, last = tag.split(".")
    following = ".".join([*first, str(int(last) + 1)]) if described else tag
    return f"{following}.dev{commits}+{commit}{changes}"


def _git(root: Path, *arguments: str) -> str:
    # The checkout may belong to another user than the one who installs.
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - git, no shell
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _hash_of_sources(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in (root / "src").rglob("*") if path.suffix in HASHED and path.is_file()):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:10]


def compile_decoder(source: Path, module: Path, *flags: str) -> None:
    """Compile the source to an extension module; OSError without a compiler, CalledProcessError if it fails."""
    module.unlink(missing_ok=True)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise OSError("free-threaded Python has no limited API")
    # The compiler of this Python, which may have been built on another machine.
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    if not shutil.which(compiler[0]):
        compiler = ["cc"]
    include = sysconfig.get_path("include")
    system = MAC_FLAGS if sys.platform == "darwin" else ()
    command = [*compiler, *FLAGS, *system, *flags, f"-I{include}", str(source), "-o", str(module)]
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - the compiler Python was built by
