"""What users call stays what it was: commands with options and help, and every address, as committed in `surface/`.

The API's description is held the same way, by `tests/api/test_committed_schema.py`.
"""

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from facho.core.cli.main import build_parser

SURFACE = Path(__file__).parent / "surface"


def commands(parser: ArgumentParser) -> Iterator[str]:
    own = []
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for child in action.choices.values():
                yield from commands(child)
        elif action.option_strings:
            own.append(f"[{'|'.join(action.option_strings)}{_choices(action)}]")
        else:
            own.append(f"<{action.dest}{_choices(action)}>")
    yield f"{parser.prog} {' '.join(own)}"


def helps(parser: ArgumentParser) -> Iterator[str]:
    """Name what each help says: of the command, and of each of its arguments and subcommands."""
    if parser.description:
        yield f"{parser.prog}: {parser.description}"
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            yield from (f"{parser.prog} {each.dest}: {each.help}" for each in action._choices_actions)
            for child in action.choices.values():
                yield from helps(child)
        elif action.help and action.dest != "help":
            yield f"{parser.prog} {'|'.join(action.option_strings) or action.dest}: {action.help}"


def _choices(action: Any) -> str:
    return f"={','.join(map(str, action.choices))}" if action.choices else ""


def addresses(patterns: list[Any], prefix: str = "/") -> Iterator[str]:
    for pattern in patterns:
        address = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern):
            yield f"{address} {pattern.name or '-'}"


FOUND = {
    "commands": lambda: commands(build_parser()),
    "help": lambda: helps(build_parser()),
    "addresses": lambda: addresses(get_resolver().url_patterns),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_users_call_is_what_is_committed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "en")
    committed = set((SURFACE / f"{name}.txt").read_text().splitlines())

    found = set(FOUND[name]())

    assert sorted(committed - found) == [], "something users call is gone"
    assert sorted(found - committed) == [], f"add what is new to tests/architecture/surface/{name}.txt"
