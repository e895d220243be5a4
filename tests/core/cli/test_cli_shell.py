"""The manual page and the completions are made from the parser, and work where they are read."""

import subprocess
from pathlib import Path

import pytest
from cli_runner import Command

from facho.core.cli.parser import SHELLS, build_parser
from facho.core.cli.shell import walk_commands

COMMANDS = [command for command in walk_commands(build_parser()) if command.path and not command.subcommands]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ol"], {"olt"}),
        (["olt", ""], {"add", "import", "export", "list", "probe", "-h", "--help"}),
        (["olt", "list", "--j"], {"--json"}),
        (["--vers"], {"--version"}),
        (["completion", ""], {*SHELLS, "-h", "--help"}),
    ],
)
def test_bash_offers_what_may_come_next(facho: Command, tmp_path: Path, typed: list[str], offered: set[str]) -> None:
    (tmp_path / "facho").write_text(facho("completion", "bash").out)
    words = " ".join(f"'{word}'" for word in ["facho", *typed])
    script = f'. ./facho; COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _facho; printf "%s\\n" "${{COMPREPLY[@]}}"'

    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert (set(done.stdout.split()), done.stderr) == (offered, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_completed_in_every_shell(facho: Command, shell: str) -> None:
    script = facho("completion", shell).out

    assert COMMANDS
    assert [command.path for command in COMMANDS if f"{command.path}'" not in script] == []


def test_every_command_and_option_stands_in_the_manual(facho: Command) -> None:
    page = facho("man").out
    options = [name for command in COMMANDS for each in command.options for name in each.option_strings[-1:]]

    assert page.startswith(".TH FACHO 1 ")
    assert [c.path for c in COMMANDS if f".SS facho {c.path}".replace("-", "\\-") not in page] == []
    assert [name for name in options if name != "--help" and name.replace("-", "\\-") not in page] == []


def test_no_line_of_the_manual_is_taken_for_a_request(facho: Command) -> None:
    requests = {line.split()[0] for line in facho("man").out.splitlines() if line.startswith((".", "'"))}

    assert requests == {".TH", ".SH", ".B", ".SS", ".PP", ".TP"}
