"""Rows whose every text means harm, at the command line: a terminal obeys none of them."""

import csv
import io
import json

import pytest
from cli_runner import Command

from web.hostile_rows import CONTROLS, make_hostile_world

pytestmark = pytest.mark.django_db

COMMANDS = (
    *("olt list", "onu list", "onu show {onu}", "onu events {onu}", "onu history {onu}"),
    *("node list", "node explain {node}", "execution list", "pause list", "user list", "token list"),
)


def harmful(text: str) -> set[str]:
    return {letter for letter in text if not letter.isprintable() and letter != "\n"}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_prints_controls_no_terminal(facho: Command, command: str) -> None:
    world = make_hostile_world(CONTROLS)
    words = command.format(**world.shown.ids).split()

    table = facho(*words)
    as_json = facho(*words, "--json")

    assert (table.status, as_json.status) == (0, 0), table.err
    assert harmful(table.out + table.err + as_json.out + as_json.err) == set()
    assert json.loads(as_json.out) is not None


def test_the_inventory_that_is_written_runs_nothing_in_a_spreadsheet(facho: Command) -> None:
    make_hostile_world(CONTROLS)

    written = facho("olt", "export").out

    cells = [cell for row in csv.reader(io.StringIO(written)) for cell in row]
    assert len(cells) > 20
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))] == []
