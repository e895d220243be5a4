"""The arithmetic of drawings: lengths and bars, as attributes that no locale touches."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of a bar: what it stands for and where it is drawn."""

    kind: str
    x: str
    width: str


def coordinate(length: float) -> str:
    """Write a length as SVG reads it, in hundredths at most."""
    return f"{length:.2f}".rstrip("0").rstrip(".")


def stack(parts: Iterable[tuple[str, float]], *, total: float, width: float = 100) -> list[Bar]:
    """Lay parts one after the other on a bar of `width` that stands for `total`; what is empty is left out."""
    bars, done = [], 0.0
    for kind, amount in parts:
        if amount > 0 and total > 0:
            length = min(amount, total - done)
            bars.append(Bar(kind, coordinate(done / total * width), coordinate(length / total * width)))
            done += length
    return bars


def rectangle(x: float, y: float, width: float, height: float) -> str:
    """Write a rectangle as the shortest path there is."""
    w = coordinate(width)
    return f"M{coordinate(x)} {coordinate(y)}h{w}v{coordinate(height)}h-{w}z"
