"""Draws a series as one line of text."""

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
# For terminals that cannot write blocks.
PLAIN = "_.-:=+*#"
GAP = " "


def sparkline(values: Sequence[float | None], *, width: int, encoding: str) -> str:
    """Draw values at equal distances on at most `width` letters; each is an average, what has no value stays blank."""
    per_letter = math.ceil(len(values) / width)
    averages = [_average(values[start : start + per_letter]) for start in range(0, len(values), per_letter or 1)]
    known = [value for value in averages if value is not None]
    if not known:
        return ""
    letters, lowest, span = _letters(encoding), min(known), max(known) - min(known)
    steps = len(letters) - 1
    return "".join(
        GAP if value is None else letters[round((value - lowest) / span * steps) if span else 0] for value in averages
    )


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _letters(encoding: str) -> str:
    try:
        BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS
