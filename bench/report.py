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
    """A promise and what was measured for it."""

    name: str
    measured: float
    at_most: float

    @property
    def is_met(self) -> bool:
        """Tell whether the promise holds."""
        return self.measured <= self.at_most


@dataclass(frozen=True, slots=True)
class Section:
    """One benchmark: a table of what was measured, and the promises that follow from it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    targets: Sequence[Target]

    @property
    def markdown(self) -> str:
        """The section as it is printed and kept."""
        table = _table(self.head, [[_text(cell) for cell in row] for row in self.rows])
        promises = _table(
            ("Promise", "At most", "Measured", "Holds"),
            [[t.name, _text(t.at_most), _text(t.measured), "yes" if t.is_met else "NO"] for t in self.targets],
        )
        return f"## {self.title}\n\n{table}\n\n{promises}\n"


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
    broken = [target.name for section in printed for target in section.targets if not target.is_met]
    print(f"Broken: {'; '.join(broken)}" if broken else "All promises hold.")
    return 1 if broken else 0


def save(name: str, sections: Sequence[Section]) -> None:
    """Write what was measured to `bench/results`."""
    RESULTS.mkdir(exist_ok=True)
    text = "\n".join(section.markdown for section in sections)
    command = "bench" if name == WHOLE else f"bench.{name}"
    (RESULTS / f"{name}.md").write_text(f"# Results of `python -m {command}`\n\n{text}")
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
