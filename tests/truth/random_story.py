"""Three simulated OLTs through some epochs: things happen, polls go badly for a while and then well again.

Everything is drawn from one seed. Epochs lie so far apart that no outage of one goes on in the next as the same.
"""

from datetime import datetime
from random import Random

from facho.executions.models import Execution
from facho.onus.models import Outage as OutageRow
from facho.onus.store import CAUSE
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.outages import NETWORK, OutageCause, OutagePlace, OutageRecord, OutageScope
from facho.polling.vendors.definition import SERIAL, Definition
from facho.simulator.agent import NO_FAULTS, Faults
from facho.simulator.server import SimulatedOlt, SimulatorConfig, choose_definitions, numbering_of
from facho.simulator.world import STILL, Chassis
from facho.snmp_jobs.models import WorkflowNode
from polling.domain.journal_truth import ExpectedOutage, OutageTruth
from polling.domain.troubled_world import Action, Fate
from truth.polled_fleet import INTERVAL, Fleet
from truth.stored_truth import FleetTruth

READS_STATES = "walk_estado"
OLTS = 3
ONUS = 60
REST = 8 * INTERVAL
SILENT = Faults(is_silent=True)
# A walk gives up after fifteen seconds; who asks then is answered again.
BREAK_SECONDS = 14.0
# Enough for an ONU that was removed to be missed twice, also where the first poll is late.
CLEAN_POLLS = 3
# A probe finds out that an OLT is back, and its nodes wait for their slot.
POLLS_UNTIL_HEARD = 2


def config_of(seed: int) -> SimulatorConfig:
    """Draw a family that tells who an ONU is and why it is down, with cards where it has cards."""
    families = [each for each in choose_definitions("mixed") if _tells_all(each)]
    definition = Random(f"family/{seed}").choice(families)  # noqa: S311 repeatable on purpose
    has_cards = len(numbering_of(definition).slot) > 1
    chassis = Chassis(2, 4, 6) if has_cards else Chassis(1, 8, 5)
    # Small answers make long walks, which can break off.
    return SimulatorConfig(
        vendor=definition.key, olts=OLTS, onus=ONUS, seed=seed, life=STILL, chassis=chassis, max_message_bytes=900
    )


def _tells_all(definition: Definition) -> bool:
    return definition.has_column(SERIAL) and definition.has_column(CAUSE)


class OltStory:
    """One OLT, what happens to it and what must be reported about it."""

    def __init__(self, simulated: SimulatedOlt, olt_id: int, rng: Random) -> None:
        self.simulated, self.olt_id = simulated, olt_id
        self.fate = Fate(simulated.world, rng)
        self.outage_truth = OutageTruth(olt_id, simulated.world)
        self.faults: list[Faults] = []
        self._actions: list[list[Action]] = []
        self._entries_before = 0

    def begin_epoch(self, faults: list[Faults], rng: Random) -> None:
        """Plan what happens before which poll; the last polls see all of it."""
        self.faults, self._entries_before = faults, len(self.simulated.world.journal)
        has_lies = any(fault.max_rows is not None for fault in faults)
        is_clear = all(fault in (NO_FAULTS, SILENT) for fault in faults)
        self._actions = [[] for _ in faults]
        self._actions[0] += self.fate.plan_disasters(also_repairs=is_clear)
        for action in self.fate.plan_singles(has_lies=has_lies):
            self._actions[rng.randrange(len(faults) - self._quiet_polls + 1)].append(action)

    @property
    def _quiet_polls(self) -> int:
        return CLEAN_POLLS + POLLS_UNTIL_HEARD * (SILENT in self.faults)

    def act(self, number: int) -> None:
        """Let happen what was planned before this poll; it is polled with this poll's faults."""
        self.simulated.refresh()
        for action in self._actions[number]:
            action()
        if self.simulated.faults != self.faults[number]:
            self.simulated.faults = self.faults[number]

    def end_epoch(self, first: datetime) -> None:
        """Say what outages the epoch brought; where every poll went well the first one had to tell them."""
        disturbed = sum(fault is not NO_FAULTS for fault in self.faults)
        clean = self._state_poll_since(first + disturbed * INTERVAL)
        entries = self.simulated.world.journal[self._entries_before :]
        self.outage_truth.judge_epoch(entries, (first if disturbed else clean, clean))

    def _state_poll_since(self, moment: datetime) -> datetime:
        polls = Execution.objects.filter(
            olt_id=self.olt_id, task_type=READS_STATES, status=ExecutionState.SUCCESS, finished_at__gte=moment
        )
        return polls.values_list("finished_at", flat=True).earliest("finished_at")


class RandomStory:
    """The fleet, its polls, and what is expected of silence."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet, self.truth = fleet, FleetTruth(fleet)
        self._rng = Random(seed)  # noqa: S311 repeatable on purpose
        self.olts = [
            OltStory(simulated, row.id, self._rng) for simulated, row in zip(fleet.olts, fleet.rows, strict=True)
        ]
        self._silences: list[ExpectedOutage] = []
        self.truth.follow()

    @property
    def expected_outages(self) -> list[ExpectedOutage]:
        """Return every outage that is to be reported."""
        return [*self._silences, *(outage for story in self.olts for outage in story.outage_truth.outages)]

    def live_an_epoch(self) -> None:
        """Let things happen, and poll until everything must have been seen."""
        self._rest()
        silent = self._rng.sample(self.olts, k=self._rng.choice((0, 0, 0, 1, 1, 3)))
        silent_polls = self._rng.randint(1, 2) if silent else 0
        broken_polls = self._rng.randrange(2)
        first = self.fleet.next_poll_at
        for story in self.olts:
            story.begin_epoch(self._plan_faults(story in silent, silent_polls, broken_polls), self._rng)
        for number in range(max(len(story.faults) for story in self.olts)):
            self._act_and_poll(number, is_garbling=silent_polls <= number < silent_polls + broken_polls)
        if silent:
            self._expect_silence(silent, first, first + silent_polls * INTERVAL)
        for story in self.olts:
            story.end_epoch(first)

    def _rest(self) -> None:
        """Let nobody poll for a while, and then once, before anything happens."""
        masters = WorkflowNode.objects.filter(is_chain_node=False, enabled=True)
        masters.update(next_run_at=self.fleet.next_poll_at + REST)
        self.fleet.live_until(self.fleet.now + REST)
        self.fleet.poll()
        self.truth.follow()

    def _plan_faults(self, is_silent: bool, silent_polls: int, broken_polls: int) -> list[Faults]:
        kinds = [
            Faults(silent_after=self._rng.randrange(1, 12), silent_seconds=BREAK_SECONDS),
            Faults(max_rows=self._rng.randrange(1, ONUS)),
            NO_FAULTS,
        ]
        broken = [self._rng.choice(kinds) for _ in range(broken_polls)]
        clean_polls = CLEAN_POLLS + POLLS_UNTIL_HEARD * bool(silent_polls)
        return [SILENT if is_silent else NO_FAULTS] * silent_polls + broken + [NO_FAULTS] * clean_polls

    def _act_and_poll(self, number: int, *, is_garbling: bool) -> None:
        for story in self.olts:
            story.act(number)
        garbled = [(story, onu) for story in self.olts for onu in (story.fate.pick_garbled() if is_garbling else [])]
        for story, onu in garbled:
            story.simulated.world.garble(onu)
        self.fleet.poll()
        self.truth.follow()
        for story, onu in garbled:
            story.simulated.world.clear(onu)

    def _expect_silence(self, silent: list[OltStory], began_at: datetime, spoke_at: datetime) -> None:
        """Expect one outage of a single OLT, or of the network when most of the fleet is silent."""
        is_network = 2 * len(silent) > OLTS
        place = NETWORK if is_network else OutagePlace(OutageScope.OLT, silent[0].olt_id)
        cause = OutageCause.NETWORK if is_network else OutageCause.OLT
        starts, ends = (began_at, began_at + INTERVAL), (spoke_at - INTERVAL, spoke_at + POLLS_UNTIL_HEARD * INTERVAL)
        self._silences.append(ExpectedOutage(place, cause, set(), 0, starts=starts, ends=ends))


def stored_outages() -> list[OutageRecord]:
    """Return what an operator is shown: whatever is no part of something larger."""
    return [
        OutageRecord(
            OutagePlace(OutageScope(row.scope), row.olt_id or 0, row.frame, row.slot, row.port),
            started_at=row.started_at,
            resumed_at=row.resumed_at,
            cause=OutageCause(row.cause),
            affected=row.affected,
            down=row.down,
            ended_at=row.ended_at,
        )
        for row in OutageRow.objects.filter(part_of=None).order_by("id")
    ]
