"""Draws a chassis: a row for each card, a cell for each PON port, with room for figures in it."""

from collections.abc import Iterable
from dataclasses import dataclass

from facho.dashboard.svg import coordinate

CELL_WIDTH, CELL_HEIGHT, GAP = 76.0, 44.0, 3.0
LEFT, TOP = 46.0, 18.0

Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a port is drawn."""

    place: Place
    x: str
    y: str
    middle: str


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a row or a column, and where it is written."""

    text: str
    x: str
    y: str


@dataclass(frozen=True, slots=True)
class Chassis:
    """The cells with their rows and columns; sizes are pixels."""

    width: str
    height: str
    cells: list[Cell]
    cards: list[Label]
    ports: list[Label]


def draw_chassis(places: Iterable[Place]) -> Chassis:
    """Lay ports out by card and number; a number that no card has takes no room."""
    known = sorted(set(places))
    cards = sorted({place[:2] for place in known})
    numbers = sorted({place[2] for place in known})
    row, column = {card: n for n, card in enumerate(cards)}, {number: n for n, number in enumerate(numbers)}
    return Chassis(
        coordinate(LEFT + len(numbers) * (CELL_WIDTH + GAP)),
        coordinate(TOP + len(cards) * (CELL_HEIGHT + GAP)),
        [_cell(place, row[place[:2]], column[place[2]]) for place in known],
        [Label(f"{frame}/{slot}", "0", _y(n, CELL_HEIGHT / 2 + 4)) for n, (frame, slot) in enumerate(cards)],
        [Label(str(number), _x(n, CELL_WIDTH / 2), coordinate(TOP - 6)) for n, number in enumerate(numbers)],
    )


def _cell(place: Place, row: int, column: int) -> Cell:
    return Cell(place, _x(column), _y(row), _x(column, CELL_WIDTH / 2))


def _x(column: int, inside: float = 0.0) -> str:
    return coordinate(LEFT + column * (CELL_WIDTH + GAP) + inside)


def _y(row: int, inside: float = 0.0) -> str:
    return coordinate(TOP + row * (CELL_HEIGHT + GAP) + inside)
