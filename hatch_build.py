"""Compiles the translations and the decoder of answers while the package is built, editable installs included."""

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
