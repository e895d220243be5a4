"""What to tell an operator who changes what OLTs are asked; rooms above this one know it and register here."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What an OLT's nodes need of it per hour; those not measured yet count as zero."""

    minutes_per_hour: float
    unmeasured: int
    fits: bool
    words: tuple[str, ...] = ()


Adviser = Callable[[Collection[int]], list[str]]
WorkLoader = Callable[[Collection[int]], Mapping[int, Work]]

_advisers: list[Adviser] = []
_work_loaders: list[WorkLoader] = []


def register_adviser(adviser: Adviser) -> None:
    """Let `adviser` be asked about the OLTs of each change; once, at start."""
    if adviser not in _advisers:
        _advisers.append(adviser)


def register_work_loader(loader: WorkLoader) -> None:
    """Let `loader` tell what the work of OLTs comes to; once, at start."""
    if loader not in _work_loaders:
        _work_loaders.append(loader)


def advise(olt_ids: Collection[int]) -> list[str]:
    """Return the warnings of every registered source about these OLTs."""
    return [warning for adviser in _advisers for warning in adviser(olt_ids)]


def load_work(olt_ids: Collection[int]) -> dict[int, Work]:
    """Load the present workload of these OLTs; empty without a registered source."""
    return {olt_id: work for loader in _work_loaders for olt_id, work in loader(olt_ids).items()}
