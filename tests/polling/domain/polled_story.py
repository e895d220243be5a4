"""Three simulated OLTs through some epochs: things happen, polls go badly for a while and then well again.

Everything is drawn from one seed. Epochs lie so far apart that none is the cause of what happens in the next.
"""

from datetime import datetime
from random import Random

from journal_truth import EventTruth, ExpectedOutage, OutageTruth
from outage_rows import OutageRows
from troubled_world import Action, Fate
from watched_olt import CAUSE, CLEAN, INTERVAL, ONUS, POWER, SERIAL, STATE, Look, WatchedOlt, moment_of

from facho.polling.domain.outages import NETWORK, Cycle, OutageCause, OutagePlace, OutageScope, judge_silence
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions

# Those that tell all that the story is about, in rows that are numbered by a formula.
FAMILIES = sorted(
    key
    for key, definition in load_definitions().items()
    if all(map(definition.has_column, (SERIAL, STATE, CAUSE, POWER))) and not definition.naming_columns
)
OLTS = 3
# Enough for an ONU that was removed to be missed twice.
CLEAN_POLLS = 3
SILENT = Look(is_silent=True)
POLL_SECONDS = INTERVAL.total_seconds()
REST_SECONDS = 3_600.0


class OltStory:
    """One OLT, what happens to it and what must be reported about it."""

    def __init__(self, olt: WatchedOlt, rng: Random) -> None:
        self.olt = olt
        self.fate = Fate(olt.world, rng)
        self.event_truth = EventTruth(olt.world)
        self.outage_truth = OutageTruth(olt.olt_id, olt.world)
        self.looks: list[Look] = []
        self.actions: list[list[Action]] = []
        self.entries_before = self.events_before = 0

    def begin_epoch(self, looks: list[Look], rng: Random) -> None:
        """Plan what happens before which poll; the last polls see all of it."""
        self.looks = looks
        self.entries_before, self.events_before = len(self.olt.world.journal), len(self.olt.events)
        is_clear = all(look.is_clean or look.is_silent for look in looks)
        has_lies = any(look.lies for look in looks)
        first = self.fate.plan_disasters(also_repairs=is_clear)
        self.actions = [[] for _ in looks]
        self.actions[0] += first
        for action in self.fate.plan_singles(has_lies=has_lies):
            self.actions[rng.randrange(len(looks) - CLEAN_POLLS + 1)].append(action)

    def act(self, number: int) -> None:
        for action in self.actions[number]:
            action()


class Story:
    """The fleet, its polls, and what is expected of silence."""

    def __init__(self, seed: int, *, is_disturbed: bool) -> None:
        self.rng = Random(seed)  # noqa: S311 - repeatable on purpose
        self.is_disturbed = is_disturbed
        self.outages = OutageRows()
        self.olts = [
            OltStory(WatchedOlt(self._family(), number, seed=seed, outages=self.outages), self.rng)
            for number in range(1, OLTS + 1)
        ]
        self.silences: list[ExpectedOutage] = []
        self.seconds = 0.0
        for look in [Look(serials_break_at=ONUS // 2)] * is_disturbed + [CLEAN]:
            self._poll([look] * OLTS)

    @property
    def expected_outages(self) -> list[ExpectedOutage]:
        return [*self.silences, *(outage for story in self.olts for outage in story.outage_truth.outages)]

    def live_an_epoch(self) -> None:
        """Let things happen, and poll until everything must have been seen."""
        self.seconds += REST_SECONDS
        silent, silent_polls, broken_polls = self._plan_disturbance()
        for story in self.olts:
            story.begin_epoch(self._plan_looks(story in silent, silent_polls, broken_polls), self.rng)
        disturbed = silent_polls + broken_polls
        first, heard, clean = (
            moment_of(self.seconds + number * POLL_SECONDS) for number in (1, silent_polls + 1, disturbed + 1)
        )
        for number in range(disturbed + CLEAN_POLLS):
            is_garbling = silent_polls <= number < disturbed
            self._act_and_poll(number, is_garbling=is_garbling)
        if silent:
            self._expect_silence(silent, first, heard)
        for story in self.olts:
            story.outage_truth.judge_epoch(story.olt.world.journal[story.entries_before :], (first, clean))

    def _family(self) -> Definition:
        return load_definitions()[self.rng.choice(FAMILIES)]

    def _act_and_poll(self, number: int, *, is_garbling: bool) -> None:
        garbled = []
        for story in self.olts:
            story.olt.world.advance(self.seconds + POLL_SECONDS / 2)
            story.act(number)
            garbled += [(story.olt.world, onu) for onu in (story.fate.pick_garbled() if is_garbling else [])]
        for world, onu in garbled:
            world.garble(onu)
        self._poll([story.looks[number] for story in self.olts])
        for world, onu in garbled:
            world.clear(onu)

    def _poll(self, looks: list[Look]) -> None:
        self.seconds += POLL_SECONDS
        now = moment_of(self.seconds)
        for story, look in zip(self.olts, looks, strict=True):
            story.olt.world.advance(self.seconds)
            story.olt.poll(look, now)
        voices = [story.olt.voice for story in self.olts]
        self.outages.apply(judge_silence(voices, list(self.outages.rows.values()), Cycle(now, INTERVAL)))

    def _plan_disturbance(self) -> tuple[list[OltStory], int, int]:
        if not self.is_disturbed:
            return [], 0, 0
        silent = self.rng.sample(self.olts, k=self.rng.choice((0, 0, 0, 1, 1, 3)))
        return silent, self.rng.randint(1, 3) if silent else 0, self.rng.randrange(2)

    def _plan_looks(self, is_silent: bool, silent_polls: int, broken_polls: int) -> list[Look]:
        at = self.rng.randrange(1, ONUS)
        kinds = [
            # Who could not be verified is not read either.
            Look(serials_break_at=at, states_break_at=at),
            Look(states_break_at=at),
            Look(tables_end_at=at),
            Look(is_stranger=True),
            CLEAN,
        ]
        broken = [self.rng.choice(kinds) for _ in range(broken_polls)]
        return [SILENT if is_silent else CLEAN] * silent_polls + broken + [CLEAN] * CLEAN_POLLS

    def _expect_silence(self, silent: list[OltStory], began_at: datetime, ended_at: datetime) -> None:
        """Expect one outage of a single OLT, or of the network when most of the fleet is silent."""
        is_network = 2 * len(silent) > OLTS
        place = NETWORK if is_network else OutagePlace(OutageScope.OLT, silent[0].olt.olt_id)
        cause = OutageCause.NETWORK if is_network else OutageCause.OLT
        self.silences.append(
            ExpectedOutage(place, cause, set(), 0, starts=(began_at, began_at), ends=(ended_at, ended_at))
        )
