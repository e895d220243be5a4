"""What one condition is made of: how it is found, its sentence, its threshold and its default rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.functional import Promise

from facho.alerts.models import Severity
from facho.execution_coordinator.log_handlers import one_line
from facho.infrastructure.standstill import Standstill
from facho.polling.domain.alerting import Bound

# Codes, names and numbers that sentences are built from in any language; stored as JSON.
Facts = dict[str, Any]

# A message lists many names of people and devices.
MAX_NAME = 60


class KnownFacts(dict[str, Any]):
    """Facts stored by an older version, which may lack some."""

    def __missing__(self, name: str) -> str:
        return "?"


@dataclass(frozen=True, slots=True)
class Stall:
    """Since when nothing is polled, or by which engines, and why."""

    since: datetime
    reason: Standstill
    # Those of several engines that stand still while the others poll, for people: "2/3".
    engines: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """The bounds of all enabled rules of a condition, and the subjects of their open alerts."""

    now: datetime
    bounds: Sequence[Bound] = ()
    open_subjects: frozenset[str] = frozenset()
    # Set by the leader watch; not stored.
    stall: Stall | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. If not known, an open alert stays open and no new one begins.

    A finding with a value is judged by the rule's bound.
    """

    facts: Facts = field(default_factory=dict)
    olt_id: int | None = None
    port: str = ""
    # Whether its message is about its own OLT alone.
    is_placed: bool = True
    value: float | None = None
    since: datetime | None = None
    is_known: bool = True
    # Its source, such as an outage, was acknowledged.
    is_acknowledged: bool = False

    @property
    def place(self) -> str:
        """Where it is, from large to small: findings of one place share a message."""
        return f"olt {self.olt_id}/{self.port}".rstrip("/") if self.olt_id and self.is_placed else ""


# By subject. Missing subjects are healthy.
Findings = dict[str, Finding]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The usual threshold of a condition, and the range that a rule may choose from."""

    usual: float
    low: float
    high: float
    # What the number means, for the admin page.
    unit: Promise
    is_low_wrong: bool = False

    def bound(self, chosen: float | None, margin: float) -> Bound:
        """Return the bound of a rule, which may leave the threshold to us."""
        return Bound(self.usual if chosen is None else chosen, margin, self.is_low_wrong)


@dataclass(frozen=True, slots=True)
class DefaultRule:
    """The rule that every installation gets once, without channels."""

    name: Promise
    severity: Severity
    hold_minutes: int = 0
    clear_minutes: int = 0
    clear_margin: float = 0.0
    sends_resolved: bool = True


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that rules can look for.

    `code` is stored in rules, so it never changes. `find` looks at all OLTs at once, by few queries.
    """

    code: str
    label: Promise
    # One sentence for the admin page.
    looks_for: Promise
    find: Callable[[Question], Findings]
    sentence: Callable[[KnownFacts], str]
    default_rule: DefaultRule
    threshold: Threshold | None = None
    # Whether what is found belongs to an OLT, so that a rule may be limited to a group of OLTs.
    has_olt: bool = True


def plain(text: str) -> str:
    """Make a name from outside fit for a message: one line, bounded, no control characters."""
    line = one_line(text)
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…"
