"""Counts source lines by what they are for, against an earlier commit: `python tools/grown.py [COMMIT]`.

Modules that carry one newer feature count whole. In the others a function, method or class counts as newer when no
definition of that name was in the package at the commit and at least half of its lines have a text that stood nowhere
in it. What is left is what the features of the commit take today. Migrations do not count.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/facho"
COMMIT = "5a41f72"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FEATURES = {
    "traps": (
        *("traps/", "dashboard/traps/", "simulator/traps.py", "core/processes/traps.py"),
        *("polling/snmp/notifications.py", "polling/vendors/notifications.py", "polling/domain/hints.py"),
    ),
    "settings, tables, plots, files": (
        *("dashboard/settings/", "dashboard/alerts/setup.py", "dashboard/olt/list.py", "dashboard/olt/jobs.py"),
        *("dashboard/olt/history.py", "dashboard/port/", "dashboard/shared/table.py", "alerts/links.py"),
        *("dashboard/shared/plot_range.py", "infrastructure/spreadsheet.py"),
    ),
    "vendor workbench": (
        *("polling/vendors/review.py", "snmp_get/trial.py", "dashboard/workbench/", "core/cli/vendor.py"),
    ),
    "columns, compiled decoder, prepared SQL": (
        *("polling/domain/onu_table.py", "polling/snmp/python_pages.py", "polling/snmp/pages.py"),
        *("polling/snmp/memory.py", "onus/raw_values.py", "onus/present_onus.py", "infrastructure/statements.py"),
    ),
    "light against its past, branches, boxes": (
        *("plant/", "polling/domain/light.py", "polling/domain/plant.py", "polling/domain/availability.py"),
        *("dashboard/light/", "alerts/conditions/light_decay.py", "alerts/conditions/branch_", "simulator/plant.py"),
    ),
    "full disks, keys": ("infrastructure/storage.py", "infrastructure/standstill.py", "core/cli/keys.py"),
    "the demo's past": ("core/cli/demo_data.py", "simulator/story.py"),
    "sign-on, second factors, passkeys, sessions": (
        *("accounts/oidc.py", "accounts/ldap.py", "accounts/sign_on.py", "accounts/factors.py", "accounts/passkeys.py"),
        *("accounts/sessions.py", "dashboard/account/sign_on.py", "dashboard/account/factors.py"),
        *("dashboard/account/passkeys.py", "api/people.py"),
    ),
    "map, reports, status page": (
        *("dashboard/plant/", "dashboard/reports/", "dashboard/status/", "api/light.py", "api/reports.py"),
        *("core/cli/plant.py", "alerts/monthly.py"),
    ),
    "other systems": ("neighbours/", "core/cli/neighbours.py", "dashboard/settings/webhooks.py"),
    "manual page, completions, S3": ("core/cli/shell.py", "core/cli/s3.py"),
}


def main(commit: str) -> None:
    texts = texts_of(commit)
    lines = {line.strip() for text in texts for line in text.splitlines()}
    names = {each.name for text in texts for each in ast.walk(ast.parse(text)) if isinstance(each, Definition)}
    counted: Counter[str] = Counter()
    total = unknown = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        if "migrations" not in path.parts:
            text = path.read_text()
            total += len(text.splitlines())
            unknown += sum(bool(line.strip()) and line.strip() not in lines for line in text.splitlines())
            feature = feature_of(path.relative_to(PACKAGE).as_posix())
            counted[feature or "in other modules"] += (
                len(text.splitlines()) if feature else sum(newer_definitions(text, lines, names))
            )
    print(f"{sum(len(text.splitlines()) for text in texts):7,} at {commit}")
    print(f"{total:7,} today, {unknown:,} of them with a text that stood nowhere at {commit}")
    for name, count in counted.most_common():
        print(f"{count:7,} {name}")
    print(f"{total - counted.total():7,} left: the features of {commit}")


def texts_of(commit: str) -> list[str]:
    listed = git("ls-tree", "-r", "--name-only", commit, "src").split()
    return [git("show", f"{commit}:{name}") for name in listed if name.endswith(".py") and "/migrations/" not in name]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def feature_of(module: str) -> str | None:
    return next((name for name, starts in FEATURES.items() if module.startswith(starts)), None)


def newer_definitions(text: str, lines: set[str], names: set[str]) -> Iterator[int]:
    rows = text.splitlines()
    for each in outermost(ast.parse(text), names):
        start = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)]) - 1
        own = [row.strip() for row in rows[start : each.end_lineno] if row.strip()]
        if 2 * sum(row not in lines for row in own) >= len(own):
            yield (each.end_lineno or start) - start


def outermost(tree: ast.Module, names: set[str]) -> Iterator[Definition]:
    """Yield new definitions of a module, and those within classes that were there before."""
    for each in tree.body:
        if isinstance(each, Definition):
            known_class = isinstance(each, ast.ClassDef) and each.name in names
            inner = each.body if known_class else [each]
            yield from (part for part in inner if isinstance(part, Definition) and part.name not in names)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [COMMIT]))
