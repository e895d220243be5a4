"""Parses and formats intervals: 90s, 5m, 1h, 1h30m, or a plain number of seconds."""

import re

# A year: what runs less often needs no schedule.
MAX_INTERVAL_SECONDS = 366 * 86_400

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TEXT = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s?)?", re.ASCII)


def parse_interval(text: str) -> int:
    """Parse an interval to seconds; ValueError if invalid."""
    compact = "".join(text.lower().split())
    match = _TEXT.fullmatch(compact)
    if not compact or match is None:
        raise ValueError("an interval is a number with d, h, m or s")
    return sum(int(number or 0) * seconds for number, seconds in zip(match.groups(), _UNITS.values(), strict=True))


def format_interval(seconds: int) -> str:
    """Format seconds in their largest units; `parse_interval` reads the same number."""
    parts, left = [], seconds
    for unit, size in _UNITS.items():
        number, left = divmod(left, size)
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0s"
