"""The arithmetic of drawings: lengths and bars, as attributes that no locale touches."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    kind: str
    x: str
    width: str


def coordinate(length: float) -> str:
    return f"{length:.2f}".rstrip("0").rstrip(".")


def stack(parts: Iterable[tuple[str, float]], *, total: float, width: float = 100) -> list[Bar]:
    bars, done = [], 0.0
    for kind, amount in parts:
        if amount > 0 and total > 0:
            length = min(amount, total - done)
            bars.append(Bar(kind, coordinate(done / total * width), coordinate(length / total * width)))
            done += length
    return bars


def rectangle(x: float, y: float, width: float, height: float) -> str:
    w = coordinate(width)
    return f"M{coordinate(x)} {coordinate(y)}h{w}v{coordinate(height)}h-{w}z"
