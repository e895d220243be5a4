"""`facho plant`: a dry run shows, what was exported changes nothing, and a bad file is named by line."""

from pathlib import Path

import pytest
from cli_runner import Command

from facho.core.cli.parser import PLANT_KINDS
from facho.plant import files
from facho.plant.models import Box
from plant.plant_world import make_plant

pytestmark = pytest.mark.django_db


def test_a_dry_run_shows_each_change_and_writes_nothing(facho: Command, tmp_path: Path) -> None:
    make_plant()
    file = tmp_path / "boxes.csv"
    file.write_text("name,outputs\nCTO 1,16\nCTO 2,8\nCTO 7,8\n")

    outcome = facho("plant", "import", str(file), "--dry-run")

    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "2  CTO 1  changed  Outputs: 8 → 16",
        "4  CTO 7  new  Kind: CTO / NAP; Outputs: 8",
        "1 new, 1 changed; nothing was written",
    ]
    assert Box.objects.count() == 3


@pytest.mark.parametrize("kind", PLANT_KINDS)
def test_what_was_exported_changes_nothing(facho: Command, tmp_path: Path, kind: str) -> None:
    make_plant()
    file = tmp_path / f"plant.{kind}"
    file.write_text(facho("plant", "export", kind).out)

    outcome = facho("plant", "import", str(file))

    assert outcome.out == "0 written, 10 unchanged, 0 left out\n"
    assert PLANT_KINDS == files.KINDS


def test_a_bad_file_is_named_by_line(facho: Command, tmp_path: Path) -> None:
    file = tmp_path / "boxes.csv"
    file.write_text("name,fed_by\nA,B\n")

    outcome = facho("plant", "import", str(file))

    assert outcome.status == 1
    assert "line 2: there is no box “B”" in outcome.err
    assert not Box.objects.exists()
