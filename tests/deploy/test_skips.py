"""Where no Debian can be booted the tests that need one are skipped with the reason; elsewhere they may not be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bare_debian import CannotMake, make_base

# As in a container: root by name, without what mounting needs.
WITHOUT_MOUNTS = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin") if os.geteuid() == 0 else ()
TRY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from bare_debian import CannotMake, make_base
try:
    make_base(Path(sys.argv[2]))
except CannotMake as error:
    print(error)
"""


def test_a_kernel_that_refuses_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    command = [*WITHOUT_MOUNTS, sys.executable, "-c", TRY, Path(__file__).parent, tmp_path]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.startswith(("no overlay can be mounted here: ", "only root ", "not installed: "))
    assert not (tmp_path / "base").exists()


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CannotMake, match="not installed: mmdebstrap"):
        make_base(tmp_path)
