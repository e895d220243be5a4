"""What really became of every slot of a virtual network, counted from its journal; and how good the forecasts were."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from virtual_quotas import MET_SHARE, Book, Ended, QuotaNetwork
from virtual_rows import VirtualNode
from virtual_workload import START

from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.retry import PROBE_PAUSES_SECONDS
from facho.polling.domain.schedule import HOUR, Span

# A violation can be reported in time if its cause began this long before the end of the hour; so early it must be.
EARLY_CAUSE = timedelta(minutes=20)
EARLY_WORD = timedelta(minutes=10)
# After an outage a node stays suspended until the next probe.
_AFTERMATH = timedelta(seconds=max(PROBE_PAUSES_SECONDS) + 15)


@dataclass
class NodeTruth:
    """The slots of one node, by arithmetic, and the runs that its journal knows."""

    network: QuotaNetwork
    node: VirtualNode

    @cached_property
    def runs(self) -> dict[datetime, Ended]:
        return {run.slot_at: run for run in self.network.journal[self.node.node_id]}

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=self.node.spec.interval_seconds)

    def owed(self, hour: Span) -> list[datetime]:
        """List the slots of an hour that are not paused, counted on from the first run."""
        first = max(-((self.node.first_run_at - hour.start) // self.interval), 0)
        count = -((self.node.first_run_at - hour.end) // self.interval)
        slots = [self.node.first_run_at + number * self.interval for number in range(first, max(count, 0))]
        return [slot for slot in slots if not self.network.is_paused(self.node.olt, slot)]

    def counts(self, hour: Span) -> tuple[int, int, int]:
        """Return how many slots of an hour that is long over were completed, failed, and skipped."""
        fates = [self.runs[slot].state if slot in self.runs else None for slot in self.owed(hour)]
        completed, skipped = fates.count(ExecutionState.SUCCESS), fates.count(None)
        return completed, len(fates) - completed - skipped, skipped

    def is_completed(self, slot: datetime) -> bool:
        return slot in self.runs and self.runs[slot].state is ExecutionState.SUCCESS

    def is_certainly_lost(self, slot: datetime, moment: datetime) -> bool:
        """Tell whether a slot that was not completed could not be any more at the moment."""
        if run := self.runs.get(slot):
            return run.ended <= moment
        if slot + self.interval <= moment:
            return True
        known = Span(slot, moment)
        held = [Span(run.began, run.ended) for run in self.runs.values() if run.began < slot <= run.ended]
        return bool(held) or any(
            span.start < known.end and span.end > known.start for span in self.network.suspensions[self.node.node_id]
        )

    def is_certain(self, hour: Span) -> bool:
        """Tell whether the quota was certainly missed when its hour ended."""
        owed = self.owed(hour)
        lost = [slot for slot in owed if not self.is_completed(slot) and self.is_certainly_lost(slot, hour.end)]
        return bool(owed) and (len(owed) - len(lost)) / len(owed) < MET_SHARE

    def cause_began_at(self, hour: Span) -> datetime:
        """Return when the trouble began that cost the quota the slot which it could not do without.

        That is the outage which the slot fell into; with an OLT that has too much to do, the beginning of it all; and
        otherwise the first of the unbroken series of lost slots that ended with it.
        """
        slot = self._decisive_slot(hour)
        over_at = self.runs[slot].ended if slot in self.runs else slot + self.interval
        for begin, end in reversed(self.node.olt.spec.silent):
            outage = Span(START + timedelta(seconds=begin), START + timedelta(seconds=end) + _AFTERMATH)
            if outage.start <= over_at and outage.end >= slot:
                return outage.start
        if is_overloaded(self.node):
            return START
        while slot > self.node.first_run_at and not self.is_completed(slot - self.interval):
            slot -= self.interval
        return slot

    def _decisive_slot(self, hour: Span) -> datetime:
        owed = self.owed(hour)
        spare = next(n for n in range(len(owed) + 1) if (len(owed) - n - 1) / len(owed) < MET_SHARE)
        return [slot for slot in owed if not self.is_completed(slot)][spare]


def is_overloaded(node: VirtualNode) -> bool:
    """Tell whether an OLT's work does not fit into its time."""
    return sum(spec.seconds / spec.interval_seconds for spec in node.olt.spec.nodes) > 1


@dataclass(frozen=True, slots=True)
class Foresight:
    """How the forecasts of a network compare with what became of its hours."""

    hours: int
    violations: int
    with_early_cause: int
    reported_in_time: int
    announcements: int
    false_alarms: int

    @property
    def share_reported(self) -> float:
        return self.reported_in_time / self.with_early_cause

    @property
    def share_false(self) -> float:
        return self.false_alarms / self.announcements


def settled_books(network: QuotaNetwork) -> list[Book]:
    """Return the hours that are long over: no run of theirs can still go on."""
    last = max(node.grid.interval for node in network.nodes) + HOUR
    return [book for book in network.books.values() if book.hour.end + last <= network.now]


def measure_foresight(network: QuotaNetwork) -> Foresight:
    """Count announcements, whether in time and whether true; one that was withdrawn before a good end was false."""
    books = settled_books(network)
    violated = [book for book in books if book.raised_at]
    truths = {node.node_id: NodeTruth(network, node) for node in network.nodes}
    early = [
        book for book in violated if truths[book.node.node_id].cause_began_at(book.hour) <= book.hour.end - EARLY_CAUSE
    ]
    announced = [book for book in books if book.was_announced]
    return Foresight(
        hours=len(books),
        violations=len(violated),
        with_early_cause=len(early),
        reported_in_time=len([b for b in early if b.announced_at and b.announced_at <= b.hour.end - EARLY_WORD]),
        announcements=len(announced),
        false_alarms=len([book for book in announced if not book.raised_at]),
    )


def miscounted(network: QuotaNetwork) -> list[Book]:
    """Return the hours that the rules do not count as the journal has them, or that owed more or less at some look."""
    truths = {node.node_id: NodeTruth(network, node) for node in network.nodes}
    wrong = []
    for book in settled_books(network):
        truth = truths[book.node.node_id]
        tally = network.tally(book.node, book.hour, network.open_slots(book.node, book.hour))
        counts = (tally.completed, tally.failed, tally.skipped)
        if counts != truth.counts(book.hour) or tally.pending or book.required != {len(truth.owed(book.hour))}:
            wrong.append(book)
    return wrong


def measure_lateness(network: QuotaNetwork) -> float:
    """Return how many seconds after its hour a violation that was certain was raised, at the latest."""
    truths = {node.node_id: NodeTruth(network, node) for node in network.nodes}
    certain = [book for book in settled_books(network) if truths[book.node.node_id].is_certain(book.hour)]
    never = network.now
    return max(((book.raised_at or never) - book.hour.end).total_seconds() for book in certain)
