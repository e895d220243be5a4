"""The command line as a whole: help, wrong use, failures in one line."""

import os
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from cli_runner import Command

from facho.core.cli import main as cli
from facho.core.cli.main import LOCALE_FOLDER, words_of_argparse
from facho.core.cli.parser import build_parser
from facho.core.product import OperatorError

COMMANDS = [
    ["demo"],
    ["run"],
    ["web"],
    ["scheduler"],
    ["simulate"],
    ["olt", "add"],
    ["olt", "import"],
    ["olt", "export"],
    ["olt", "list"],
    ["olt", "probe"],
    ["onu", "list"],
    ["onu", "show"],
    ["onu", "history"],
    ["node", "list"],
    ["node", "run"],
    ["node", "explain"],
    ["node", "resume"],
    ["execution", "list"],
    ["execution", "cancel"],
    ["pause", "add"],
    ["pause", "list"],
    ["pause", "end"],
    ["snmp", "get"],
    ["snmp", "walk"],
    ["snmp", "table"],
    ["record"],
    ["user", "create"],
    ["token", "create"],
    ["doctor"],
    ["backup"],
    ["restore"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(facho: Command, command: list[str]) -> None:
    shown = facho(*command, "--help")

    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(f"usage: facho {' '.join(command)}")


@pytest.mark.parametrize(
    ("arguments", "reported_by"),
    [
        ([], "facho"),
        (["no-such-command"], "facho"),
        (["olt"], "facho olt"),
        (["olt", "add"], "facho olt add"),
        (["olt", "list", "--jso"], "facho"),
        (["node", "run"], "facho node run"),
    ],
)
def test_wrong_use_ends_with_2_and_one_line(facho: Command, arguments: list[str], reported_by: str) -> None:
    done = facho(*arguments)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"{reported_by}: error: ")
    assert done.err.endswith(f" (usage: {reported_by} --help)\n")
    assert done.err.count("\n") == 1


def test_help_needs_neither_data_folder_nor_django(tmp_path: Path) -> None:
    code = (
        "import sys; from facho.core.cli.main import build_parser; build_parser(); print('django.apps' in sys.modules)"
    )
    environ = {**os.environ, "FACHO_DATA_DIR": str(tmp_path / "data")}

    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, check=True, timeout=60)

    assert done.stdout == b"False\n"
    assert not (tmp_path / "data").exists()


def handlers_of(parser: ArgumentParser) -> set[str]:
    """Return the functions that carry out a command or those below it, each as `module.function`."""
    below = [
        each for action in parser._actions if isinstance(action, _SubParsersAction) for each in action.choices.values()
    ]
    own = parser.get_default("handler")
    return {own} if own else set().union(*map(handlers_of, below))


def test_every_command_names_a_function_that_exists() -> None:
    handlers = [name.split(".") for name in handlers_of(build_parser())]

    missing = [name for name in handlers if not hasattr(import_module(f"facho.core.cli.{name[0]}"), name[1])]

    assert len(handlers) > 30
    assert missing == []


def test_the_installed_script_speaks_spanish_by_default(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "FACHO_LANGUAGE"}
    script = Path(sys.executable).with_name("facho")

    done = subprocess.run([script, "--help"], env=environ, capture_output=True, check=True, timeout=60)

    assert done.stdout.decode().startswith("uso: facho")


def test_the_installed_script_speaks_portuguese() -> None:
    script = Path(sys.executable).with_name("facho")
    environ = {**os.environ, "FACHO_LANGUAGE": "pt-br"}

    done = subprocess.run([script, "--help"], env=environ, capture_output=True, check=True, timeout=60)

    assert "mostra esta ajuda e sai" in done.stdout.decode()


def test_the_catalogue_translates_what_argparse_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from babel.messages.pofile import read_po

    with (LOCALE_FOLDER / "es" / "LC_MESSAGES" / "django.po").open("rb") as file:
        catalogue = read_po(file)

    monkeypatch.setenv("LANGUAGE", "en")
    assert all(catalogue[word].string for word in words_of_argparse())


def test_an_unexpected_failure_is_named_without_its_text(
    unchanged_process: None, capsys: pytest.CaptureFixture[str]
) -> None:
    error = LookupError("canary-7f3a")

    cli.report_unexpected(LookupError, error, None)

    assert capsys.readouterr().err == (
        "facho: unexpected error: LookupError. Run again with FACHO_LOG_LEVEL=DEBUG to see where.\n"
    )


def test_debug_shows_where_it_failed(
    unchanged_process: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACHO_LOG_LEVEL", "DEBUG")

    cli.report_unexpected(LookupError, LookupError("the reason"), None)

    assert "LookupError: the reason" in capsys.readouterr().err


def test_an_error_may_have_several_lines() -> None:
    assert OperatorError("one", "two").lines == ("one", "two")


def test_a_reader_that_leaves_early_gets_no_traceback(product_environ: dict[str, str], made_database: None) -> None:
    script = [sys.executable, "-m", "facho.core.cli.main", "olt", "export"]
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(script, env=product_environ, stdout=pipe, stderr=subprocess.PIPE, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (1, b"")


def test_the_version_is_that_of_the_installed_package(facho: Command) -> None:
    done = facho("--version")

    assert (done.status, done.out) == (0, f"facho {version('facho')}\n")
