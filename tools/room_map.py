"""Draws docs/images/rooms.svg: every room in its layer, and which rooms its modules import.

Layers come from the import contracts in pyproject.toml, arrows from the imports themselves. An arrow is left out where
a longer way over other arrows says the same. `python tools/room_map.py` writes the file; a test compares it.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/facho"
PICTURE = ROOT / "docs/images/rooms.svg"

# Everything in pixels. A core or polling room stands for its subpackages, which have layers of their own.
ROW, BOX_HEIGHT, BOX_WIDTH, GAP, MARGIN = 60, 30, 200, 26, 20


def layers() -> list[list[str]]:
    """Return the rooms from top to bottom, with the rooms of core and polling in place of both."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    inner = {contract["containers"][0]: contract["layers"] for contract in contracts if contract["type"] == "layers"}
    rows = []
    for layer in inner["facho"]:
        if layer == "core":
            # The entry of Celery is a module, and as high as the commands.
            rows += [["core.cli", "core.celery"], ["core.processes"], ["core"]]
        elif layer == "polling":
            rows += [[f"polling.{name}"] for name in inner["facho.polling"]]
        else:
            rows.append([name.strip() for name in layer.split("|")])
    return rows


def imports(rooms: list[str]) -> dict[str, set[str]]:
    """Return, by room, the other rooms that its modules name in an import, wherever it stands."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        here = room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts), rooms)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("facho."):
                name = (node.module or "").removeprefix("facho.")
                targets = {room_of(f"{name}.{alias.name}", rooms) for alias in node.names}
                found[here or ""] |= {target for target in targets if target and target != here}
    found.pop("", None)
    return found


def room_of(module: str, rooms: list[str]) -> str | None:
    return max((room for room in rooms if f"{module}.".startswith(f"{room}.")), key=len, default=None)


def reduce(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what is reached over another room."""

    def reach(room: str) -> set[str]:
        return {end for target in graph.get(room, ()) for end in {target, *reach(target)}}

    return {room: ends - {far for end in ends for far in reach(end)} for room, ends in graph.items()}


def draw() -> str:
    """Return the picture as SVG text, the same for the same imports."""
    rows = layers()
    rooms = [room for row in rows for room in row]
    width = max(len(row) for row in rows) * (BOX_WIDTH + GAP) + 2 * MARGIN + BOX_WIDTH
    height = len(rows) * ROW + 2 * MARGIN
    places = {}
    for depth, row in enumerate(rows):
        left = (width - len(row) * BOX_WIDTH - (len(row) - 1) * GAP) / 2
        for number, room in enumerate(row):
            places[room] = (left + number * (BOX_WIDTH + GAP), MARGIN + depth * ROW)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        "<title>The rooms of facho and their imports, from top to bottom</title>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    depth_of = {room: depth for depth, row in enumerate(rows) for room in row}
    for start, ends in sorted(reduce(imports(rooms)).items()):
        for side, end in enumerate(sorted(ends, key=lambda room: (depth_of[room], room))):
            (x1, y1), (x2, y2) = places[start], places[end]
            x1, x2, y1 = x1 + BOX_WIDTH / 2, x2 + BOX_WIDTH / 2, y1 + BOX_HEIGHT
            skipped = depth_of[end] - depth_of[start] - 1
            # An arrow that passes layers goes around them, further out the more it passes.
            bend = (BOX_WIDTH * 0.62 + 20 * skipped) * (1 if (side + len(start)) % 2 else -1) if skipped else 0
            lines.append(
                f'<path d="M{x1:.0f} {y1}C{x1 + bend:.0f} {y1 + ROW / 2:.0f} {x2 + bend:.0f} {y2 - ROW / 2:.0f}'
                f' {x2:.0f} {y2}" fill="none" stroke="#667" marker-end="url(#end)"/>'
            )
    for room, (x, y) in places.items():
        lines += [
            f'<rect x="{x:.0f}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="#eef" stroke="#345"/>',
            f'<text x="{x + BOX_WIDTH / 2:.0f}" y="{y + 20}" text-anchor="middle" font-size="14">{escape(room)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw())
