"""What to tell an operator who changed what OLTs are asked; rooms above this one know it and register here."""

from collections.abc import Callable, Collection

Adviser = Callable[[Collection[int]], list[str]]

_advisers: list[Adviser] = []


def register_adviser(adviser: Adviser) -> None:
    """Let `adviser` be asked about the OLTs of each change; once, at start."""
    if adviser not in _advisers:
        _advisers.append(adviser)


def advise(olt_ids: Collection[int]) -> list[str]:
    """Return the warnings of everyone who knows something about the work of these OLTs."""
    return [warning for adviser in _advisers for warning in adviser(olt_ids)]
