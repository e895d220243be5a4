"""Commands that the pages show exist: of `facho`, of `make`, and the folders given to pytest."""

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from docs_pages import PAGES, ROOT, blocks, page_id, spans

from facho.core.cli.main import build_parser

FACHO = re.compile(r"^(?:sudo -u facho )?(?:\.venv/bin/|/opt/facho/bin/)?facho (?P<arguments>[a-z-].*)$")
MAKE = re.compile(r"^(?:\w+=\S+ )?make(?: (?P<target>[a-z-]+))?$")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def shown_lines(page: Path) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_facho_command_in_a_block_can_be_typed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [match["arguments"] for line in shown_lines(page) if (match := FACHO.match(line))]

    refused = [arguments for arguments in shown if not is_accepted(arguments)]

    assert refused == [], capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_facho_command_in_a_sentence_exists(page: Path) -> None:
    named = [match["arguments"].split() for span in spans(page) if (match := FACHO.match(span))]

    assert [words for words in named if not exists(build_parser(), words)] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_make_target_exists(page: Path) -> None:
    named = {match["target"] for line in [*shown_lines(page), *spans(page)] if (match := MAKE.match(line))}

    assert named - {None} <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_folder_given_to_pytest_exists(page: Path) -> None:
    commands = [span for span in [*shown_lines(page), *spans(page)] if "pytest" in span]
    folders = [word for command in commands for word in command.split() if word.startswith("tests")]

    assert [folder for folder in folders if not (ROOT / folder).exists()] == []


def is_accepted(arguments: str) -> bool:
    """Parse a command as the command line would, without running it."""
    try:
        build_parser().parse_args(shlex.split(arguments))
    except SystemExit as exit_:
        return exit_.code == 0
    return True


def exists(parser: ArgumentParser, words: list[str]) -> bool:
    """Follow the words into the subcommands; what comes after the last of them are arguments."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            is_known = bool(words) and words[0] in action.choices
            return (is_known and exists(action.choices[words[0]], words[1:])) or words[:1] in (
                ["--help"],
                ["--version"],
            )
    return True
