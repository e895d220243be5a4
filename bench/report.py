"""Benchmark results as Markdown for people and JSON for programs; they hold figures and nothing of the machine."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
# Under this name the whole bench keeps its results; a part that is measured alone has its own.
WHOLE = "engine"


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    measured: float
    at_most: float

    @property
    def is_met(self) -> bool:
        return self.measured <= self.at_most

    @property
    def ratio(self) -> float | str:
        """What was measured as a part of what was promised; of none at all there is no part."""
        return self.measured / self.at_most if self.at_most else ""


@dataclass(frozen=True, slots=True)
class Section:
    """One benchmark: a table of what was measured, and the promises that follow from it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    targets: Sequence[Target]

    @property
    def markdown(self) -> str:
        table = _table(self.head, [[_text(cell) for cell in row] for row in self.rows])
        return f"## {self.title}\n\n{table}\n\n{promise_table(self.targets)}\n"


def print_sections(sections: Iterable[Section], *, keep_as: str = "") -> int:
    """Print each section when it comes, and keep it under a name at once; 1 when a promise does not hold.

    What breaks off an hour later leaves what was measured before.
    """
    printed: list[Section] = []
    for section in sections:
        print(section.markdown, flush=True)
        printed.append(section)
        if keep_as:
            save(keep_as, printed)
    targets = [target for section in printed for target in section.targets]
    broken = [target.name for target in targets if not target.is_met]
    print(f"## All promises\n\n{promise_table(targets)}\n")
    print(f"Broken: {'; '.join(broken)}" if broken else "All promises hold.")
    return 1 if broken else 0


def promise_table(targets: Sequence[Target]) -> str:
    """Return promises with what was measured, its ratio to what was promised, and whether they hold."""
    return _table(
        ("Promise", "At most", "Measured", "Ratio", "Holds"),
        [[t.name, _text(t.at_most), _text(t.measured), _text(t.ratio), "yes" if t.is_met else "NO"] for t in targets],
    )


def save(name: str, sections: Sequence[Section]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = "\n".join(section.markdown for section in sections)
    command = "make bench" if name == WHOLE else f"make bench BENCH={name}"
    (RESULTS / f"{name}.md").write_text(f"# Results of `{command}`\n\n{text}")
    figures = {
        section.title: {
            "rows": [dict(zip(section.head, row, strict=True)) for row in section.rows],
            "targets": {target.name: [target.measured, target.at_most] for target in section.targets},
        }
        for section in sections
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: str | float) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
