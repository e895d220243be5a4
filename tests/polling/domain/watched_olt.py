"""A simulated OLT and what the rules make of it: read through its MIB, decoded by its definition, kept as rows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import TypeVar

from outage_rows import OutageRows

from facho.polling.domain.onu_events import ObservedEvent, OnuStatus, PolledOnu, compare_poll
from facho.polling.domain.onu_presence import KnownOnu, OnuIdentity, Walk, plan_presence
from facho.polling.domain.onu_state import DownCause, OnuPlace, RunState
from facho.polling.domain.outages import Cycle, OltVoice, OutageMember, judge_ports
from facho.polling.snmp.ber import PduKind, decode_message, encode_message_raw
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import GENERIC_KEY, load_definitions
from facho.simulator.personality import Personality, identity_of
from facho.simulator.readings import Moment
from facho.simulator.responder import ShortView
from facho.simulator.server import numbering_of, shape_for
from facho.simulator.world import Chassis, CustomerMaker, OltWorld, spread_onus

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(minutes=5)
ONUS = 60
EVERYTHING = 10_000
STRANGERS = 100

Word = TypeVar("Word", bound=StrEnum)
SERIAL, STATE, CAUSE, POWER = "onu.serial", "onu.run_state", "onu.last_down_cause", "onu.rx_power"


def relocate(status: OnuStatus, place: OnuPlace) -> OnuStatus:
    """Return the status at another place, where other light arrives, as the inventory leaves it."""
    return status._replace(place=place, power_reference_cdbm=None, power_reference_at=None)


@dataclass(frozen=True, slots=True)
class Look:
    """How well one poll goes: walks that break after some rows, tables that end early and look complete, or
    somebody else who answers at the address.
    """

    is_silent: bool = False
    serials_break_at: int = EVERYTHING
    states_break_at: int = EVERYTHING
    tables_end_at: int = EVERYTHING
    is_stranger: bool = False

    @property
    def is_clean(self) -> bool:
        return self == CLEAN

    @property
    def lies(self) -> bool:
        return self.tables_end_at < EVERYTHING or self.is_stranger


CLEAN = Look()


def moment_of(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


class WatchedOlt:
    """One OLT of a family; `rows`, `statuses` and `outages` are all that is remembered between polls."""

    def __init__(self, definition: Definition, olt_id: int, *, seed: int, outages: OutageRows) -> None:
        self.definition, self.olt_id, self.outages = definition, olt_id, outages
        self.world = _build_world(definition, olt_id, seed)
        self._personality = _personality_of(self.world, definition)
        self._stranger = _personality_of(_build_world(definition, olt_id + STRANGERS, seed), definition)
        has_description = definition.has_column("onu.description")
        self._description = "onu.description" if has_description else "onu.name"
        self.rows: dict[int, KnownOnu] = {}
        self.statuses: dict[int, OnuStatus] = {}
        self.events: list[tuple[str, ObservedEvent]] = []
        self.was_walked = False
        self.silent_since: datetime | None = None
        self.answered_at: datetime | None = None

    @property
    def voice(self) -> OltVoice:
        online = sum(self.statuses[row.onu_id].state is RunState.ONLINE for row in self.present)
        return OltVoice(self.olt_id, self.silent_since, self.answered_at, online)

    @property
    def present(self) -> list[KnownOnu]:
        return [row for row in self.rows.values() if row.is_present]

    def poll(self, look: Look, now: datetime) -> None:
        """Ask who is there and how they are; of an OLT that is silent nothing is learned but that."""
        if look.is_silent:
            self.world.fall_silent()
            self.silent_since = self.silent_since or now
            return
        self.world.speak()
        self.silent_since, self.answered_at = None, now
        self._personality.view.forget_drifting()
        self._take_inventory(look, now)
        self._take_readings(look, now)
        members = [self._member(row) for row in self.present]
        self.outages.apply(judge_ports(self.olt_id, members, list(self.outages.rows.values()), Cycle(now, INTERVAL)))

    def reported(self, key: str, look: Look, *, breaks_at: int = EVERYTHING) -> dict[OnuPlace, object]:
        """Walk a column as far as it goes and decode it."""
        column = self.definition.column(key)
        answering = self._stranger if look.is_stranger else self._personality
        view = ShortView(answering.view, look.tables_end_at)
        cells = view.successors(column.oid, min(breaks_at, ONUS * 3)).cells
        answer = decode_message(encode_message_raw(1, b"", PduKind.RESPONSE, 1, 0, 0, b"".join(cells)))
        rows: dict[OnuPlace, object] = {}
        for oid, tag, value in answer.pdu.varbinds:
            if oid[: len(column.oid)] != column.oid:
                break
            place = column.index.decode(oid[len(column.oid) :])
            assert place is not None
            rows[place] = column.decode(tag, value).value
        return rows

    def _take_inventory(self, look: Look, now: datetime) -> None:
        serials = self.reported(SERIAL, look, breaks_at=look.serials_break_at)
        walk = Walk(
            {place: OnuIdentity(str(serial or "")) for place, serial in serials.items()},
            is_complete=look.serials_break_at >= EVERYTHING,
        )
        plan = plan_presence(list(self.rows.values()), walk, now=now, is_first=not self.was_walked)
        self.was_walked = self.was_walked or walk.is_complete
        for row in plan.updated:
            if row.place != self.rows[row.onu_id].place:
                self.statuses[row.onu_id] = relocate(self.statuses[row.onu_id], row.place)
            self.rows[row.onu_id] = row
        for place, identity in plan.new:
            onu_id = self.olt_id * 1_000 + len(self.rows)
            self.rows[onu_id] = KnownOnu(onu_id, place, *identity)
            self.statuses[onu_id] = OnuStatus(onu_id, place)
        there = {row.place: row.serial for row in self.present}
        for event in plan.events:
            serial = self.rows[event.onu_id].serial if event.onu_id is not None else there[event.place]
            self.events.append((serial, event))

    def _take_readings(self, look: Look, now: datetime) -> None:
        states, causes, powers, texts = (
            self.reported(key, look, breaks_at=look.states_break_at) for key in (STATE, CAUSE, POWER, self._description)
        )
        pairs = [
            (
                self.statuses[row.onu_id],
                PolledOnu(
                    _word(RunState, states.get(row.place)),
                    _word(DownCause, causes.get(row.place)),
                    _hundredths(powers.get(row.place)),
                    _text(texts.get(row.place)),
                ),
            )
            for row in self.present
            if row.can_be_read
        ]
        changes = compare_poll(pairs, now=now)
        self.statuses.update({status.onu_id: status for status in changes.statuses})
        for event in changes.events:
            assert event.onu_id is not None
            self.events.append((self.rows[event.onu_id].serial, event))

    def _member(self, row: KnownOnu) -> OutageMember:
        status = self.statuses[row.onu_id]
        outage_id = self.outages.outage_of.get(row.onu_id)
        return OutageMember(row.onu_id, row.place, status.state, status.state_since, status.cause, outage_id)


def _build_world(definition: Definition, olt_id: int, seed: int) -> OltWorld:
    has_cards = len(numbering_of(definition).slot) > 1
    shape = shape_for(definition, ONUS, Chassis(2, 4, 6) if has_cards else Chassis(1, 8, 5))
    customers = CustomerMaker(seed=seed, olt_number=olt_id)
    spread = spread_onus(shape, ONUS, Random(f"{seed}/{olt_id}"))  # noqa: S311 - repeatable on purpose
    return OltWorld(f"olt-{olt_id}", shape, customers, spread)


def _personality_of(world: OltWorld, definition: Definition) -> Personality:
    standard = load_definitions()[GENERIC_KEY]
    return Personality(world, definition, identity_of(definition, 0), Moment(world, EPOCH), standard=standard)


def _word(words: type[Word], value: object) -> Word | None:
    return None if value is None else words(str(value))


def _hundredths(value: object) -> int | None:
    return round(value * 100) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
