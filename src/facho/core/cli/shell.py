"""`facho man` and `facho completion`: the manual page and what a shell completes, both made from the parser."""

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from dataclasses import dataclass
from gettext import gettext as _
from importlib.metadata import version

from facho.core.cli.parser import SHELLS, build_parser

BASH = """\
_facho() {{
    local word path='' i cur="${{COMP_WORDS[COMP_CWORD]}}"
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="$path ${{COMP_WORDS[i]}}"
        case "$word" in
        {paths}) path="$word" ;;
        esac
    done
    case "$path" in
{cases}
    esac
}}
complete -o default -F _facho facho
"""
FISH_PATH = """\
function __facho_path
    set -l path
    for word in (commandline -opc)[2..]
        contains -- (string join ' ' $path $word) {paths}; and set -a path $word
    end
    test "$path" = "$argv"
end
complete -c facho -f
"""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command of the tree, with the words that may follow it."""

    # Without the name of the program.
    path: str
    parser: ArgumentParser
    subcommands: dict[str, str]

    @property
    def options(self) -> list[Action]:
        return [action for action in self.parser._actions if action.option_strings]


def show_manual(arguments: Namespace) -> None:
    print("\n".join(_manual()))


def show_completion(arguments: Namespace) -> None:
    print(completion(arguments.shell), end="")


def walk_commands(parser: ArgumentParser, path: str = "") -> Iterator[ShellCommand]:
    """Yield a command and all below it, in the order of the help."""
    groups = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    subcommands = {each.dest: each.help or "" for group in groups for each in group._choices_actions}
    yield ShellCommand(path, parser, subcommands)
    for group in groups:
        for name, child in group.choices.items():
            yield from walk_commands(child, f"{path} {name}".strip())


def completion(shell: str) -> str:
    """Write the script for one of the shells; it asks nothing of Facho while somebody types."""
    commands = list(walk_commands(build_parser()))
    if shell == SHELLS[2]:
        return _fish(commands)
    paths = "|".join(f"' {command.path}'" for command in commands if command.path)
    cases = []
    for command in commands:
        words = [*command.subcommands, *(name for each in command.options for name in each.option_strings)]
        words += [str(choice) for action in command.parser._actions for choice in _choices(action)]
        path = f" {command.path}" if command.path else ""
        cases.append(f"    '{path}') COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$cur\")) ;;")
    script = BASH.format(paths=paths, cases="\n".join(cases))
    return f"#compdef facho\nautoload -U +X bashcompinit && bashcompinit\n{script}" if shell == SHELLS[1] else script


def _choices(action: Action) -> list[object]:
    return [] if isinstance(action, _SubParsersAction) else list(action.choices or ())


def _fish(commands: list[ShellCommand]) -> str:
    lines = [FISH_PATH.format(paths=" ".join(f"'{command.path}'" for command in commands if command.path))]
    for command in commands:
        start = f"complete -c facho -n '{f'__facho_path {command.path}'.strip()}'"
        lines += [f"{start} -a '{name}' -d {_quoted(text)}\n" for name, text in command.subcommands.items()]
        for action in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in action.option_strings
            )
            lines.append(f"{start} {names} -d {_quoted(action.help or '')}\n")
        lines += [
            f"{start} -a '{choice}'\n"
            for action in command.parser._actions
            if not action.option_strings
            for choice in _choices(action)
        ]
    return "".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _manual() -> Iterator[str]:
    """Write the page in the language of man(7); the words are those of the help."""
    first, *others = walk_commands(build_parser())
    yield f'.TH FACHO 1 "" "facho {_roff(version("facho"))}"'
    yield _heading(_("NAME"))
    yield f"facho \\- {_roff(first.parser.description or '')}"
    yield _heading(_("SYNOPSIS"))
    yield ".B facho"
    yield _roff(_("COMMAND"))
    yield _heading(_("COMMANDS"))
    for command in others:
        if command.subcommands:
            continue
        usage = command.parser.format_usage().split(":", 1)[1]
        yield ".SS " + _roff(f"facho {command.path}")
        yield _roff(command.parser.description or "")
        yield ".PP"
        yield _roff(" ".join(usage.split()))
        for action in command.parser._actions:
            if action.help and action.dest != "help":
                yield ".TP"
                yield f"\\fB{_roff(', '.join(action.option_strings) or str(action.metavar or action.dest))}\\fR"
                yield _roff(action.help)
    yield _heading(_("EXIT STATUS"))
    yield _roff(_("0: success. 1: failure. 2: wrong usage. 78: settings or database do not fit."))
    yield _heading(_("FILES"))
    yield _roff("/etc/facho/facho.env, /var/lib/facho")


def _heading(text: str) -> str:
    return f".SH {_roff(text)}"


def _roff(text: str) -> str:
    """Protect what roff would take for its own: backslashes, hyphens, and a dot or an apostrophe that begins a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("%%", "%")
    return f"\\&{text}" if text[:1] in (".", "'") else text
