"""The page for operators knows every log name and every finding that the code has, and every file of `deploy/`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from bare_debian import parts_of
from deploy_files import DEPLOY

PAGE = (DEPLOY.parent / "docs/operations.md").read_text()
CONFIGURATION = (DEPLOY.parent / "docs/configuration.md").read_text()
SOURCES = {path: path.read_text() for path in (DEPLOY.parent / "src").rglob("*.py")}

# The tests that run the blocks of commands, every one of them and as it stands.
RUNNERS = ("test_bare_debian.py", "test_several_machines.py", "test_containers.py")
NOT_RUN = {
    "With Ansible": "the playbook is run by test_ansible_role.py, inside the machine that it changes",
    "With Helm": "no cluster can be had; test_helm_chart.py judges what helm renders",
}


def section(heading: str) -> str:
    return PAGE.split(f"\n{heading}", 1)[1].split("\n## ", 1)[0]


def test_every_log_name_is_explained() -> None:
    names = {name for text in SOURCES.values() for name in re.findall(r"logger\.\w+\(\s*\"([a-z]+\.[a-z_]+)", text)}

    assert [name for name in sorted(names) if f"`{name}`" not in section("## Logs")] == []


def test_every_finding_about_a_cluster_is_explained() -> None:
    source = (DEPLOY.parent / "src/facho/core/cli/doctor.py").read_text().split("def examine_cluster")[1]
    names = set(re.findall(r"(?:ok|warning|error)\((?:_named\()?\"([a-z-]+)\"", source))
    names |= set(re.findall(r"_named\(\"([a-z-]+)\"", source))

    assert names
    assert (
        set(re.findall(r"^\| `([a-z-]+)` \|", section("## Is it well?").split("| Finding of a cluster")[1], re.M))
        == names
    )


def test_every_way_to_deploy_is_named() -> None:
    named = set(re.findall(r"\.\./deploy/([\w./-]+)", PAGE))

    assert named >= {
        "compose.yaml",
        "systemd/facho.service",
        "systemd/facho-.service.d/common.conf",
        "supervisor/facho.conf",
        "nginx/facho.conf",
        "caddy/Caddyfile",
        "ansible/hosts.yml.example",
        "helm/facho/values.yaml",
    }


def test_the_web_believes_the_proxies_that_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.10,198.51.100.0/24")

    assert (
        uvicorn.Config("facho.core.processes.web:build_application").forwarded_allow_ips == "192.0.2.10,198.51.100.0/24"
    )
    assert "`FORWARDED_ALLOW_IPS`" in CONFIGURATION


def test_every_block_of_commands_is_run_by_a_test_or_named_as_not_run() -> None:
    assert {heading for heading, _number in unused_blocks(PAGE)} == NOT_RUN.keys()
    # The reader learns why not.
    assert "no cluster" in section("## Several machines")


@pytest.mark.parametrize("heading", [heading for heading, blocks in parts_of() if blocks and heading not in NOT_RUN])
def test_a_further_block_of_any_part_is_missed(heading: str) -> None:
    part = re.search(rf"^#+ {re.escape(heading)}\n.*?(?=^#+ )", f"{PAGE}# ", re.MULTILINE | re.DOTALL)
    assert part
    page = PAGE.replace(part[0], f"{part[0]}```sh\nfacho doctor\n```\n\n")

    # The loop of the installation takes whatever comes.
    assert unused_blocks(page) - unused_blocks(PAGE) or heading == "Install"


def unused_blocks(page: str) -> set[tuple[str, int]]:
    """Return heading and number of each block of a page that no runner takes and uses."""
    blocks = {(heading, number) for heading, found in parts_of(page) for number in range(len(found))}
    counts = {heading: len(found) for heading, found in parts_of(page)}
    for name in RUNNERS:
        tree = ast.parse(Path(__file__).with_name(name).read_text())
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for statement in ast.walk(tree):
            blocks -= {(heading, number) for heading, number in _taken(statement, counts, loaded)}
    return blocks


def _taken(statement: ast.AST, counts: dict[str, int], loaded: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the blocks that a statement names one by one, or loops over."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if asked := _asked(value):
            heading, part = asked
            for number, name in zip(range(counts[heading])[part], names, strict=False):
                # A starred one takes any number of them, so it proves nothing.
                if isinstance(name, ast.Name) and name.id in loaded:
                    yield heading, number
        case ast.For(iter=ast.Call() as value) if asked := _asked(value):
            yield from ((asked[0], number) for number in range(counts[asked[0]]))
        case ast.Call(args=arguments):
            for argument in arguments:
                match argument:
                    case ast.Subscript(value=ast.Call() as value, slice=ast.Constant(value=number)) if asked := _asked(
                        value
                    ):
                        yield asked[0], number


def _asked(value: ast.expr) -> tuple[str, slice] | None:
    """Return the heading that is asked of the page, and which of its blocks."""
    match value:
        case ast.Subscript(value=ast.Call() as call, slice=ast.Slice(lower=ast.Constant(value=first), upper=None)):
            asked = _asked(call)
            return (asked[0], slice(first, None)) if asked else None
        case ast.Call(func=ast.Name(id="blocks_of"), args=[ast.Constant(value=heading), *others]) if not others or (
            isinstance(others[0], ast.Name)
        ):
            return heading, slice(None)
    return None
