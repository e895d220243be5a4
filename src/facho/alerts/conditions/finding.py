"""What a condition is asked, and what it answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from facho.execution_coordinator.log_entry import one_line
from facho.polling.domain.alerting import Bound, Path

# What sentences are made of: codes, names and numbers, for any language. They are kept as JSON.
Facts = dict[str, Any]

# Names of people and of devices; a message names many.
MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Question:
    """What a condition may ask for: the bounds of all rules of its kind, and the subjects of their open alerts.

    That nobody leads only who watched the lease can say: no row shows it.
    """

    now: datetime
    bounds: Sequence[Bound] = ()
    open_subjects: frozenset[str] = frozenset()
    leaderless_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or of which nothing can be said: then an open alert stands and none begins.

    With a value it is the rule's bound that decides. `place` leads from the large to the small.
    """

    facts: Facts = field(default_factory=dict)
    olt_id: int | None = None
    place: Path = ()
    value: float | None = None
    since: datetime | None = None
    is_known: bool = True
    # Somebody took note of its source, such as an outage.
    is_acknowledged: bool = False


# By subject, the key of what is wrong; of what is not named here everything is fine.
Findings = dict[str, Finding]
NOT_KNOWN = Finding(is_known=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A way to find something wrong; without a usual threshold it has none."""

    look: Callable[[Question], Findings]
    threshold: float | None = None
    is_low_wrong: bool = False

    def bound(self, threshold: float | None, margin: float) -> Bound | None:
        """Return the bound of a rule, which may leave the threshold to us."""
        if self.threshold is None:
            return None
        return Bound(self.threshold if threshold is None else threshold, margin, self.is_low_wrong)


def olt_place(olt_id: int, port: str = "") -> Path:
    """Write where something is: an OLT, and a port of it."""
    return (f"olt {olt_id}", port) if port else (f"olt {olt_id}",)


def plain(text: str) -> str:
    """Make a name from outside fit for a message: one line, bounded, nothing that a reader would obey."""
    line = one_line(text)
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…"


def numbers_of(subjects: Iterable[str], prefix: str) -> list[int]:
    """Read the ids out of subjects such as `onu 12`."""
    return [int(subject.removeprefix(f"{prefix} ")) for subject in subjects]
