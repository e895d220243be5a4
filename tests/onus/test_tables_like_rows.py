"""A poll as arrays stores exactly what comparing row by row would: random polls, played both ways side by side."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.hosts.models import Olt
from facho.onus import history, history_codec, outages, store
from facho.onus.events import save_events, save_late_causes
from facho.onus.history import Samples, append
from facho.onus.history_codec import decode_poll
from facho.onus.history_models import STATE_CODES, HistoryPoll, Metric
from facho.onus.models import OltMemory, Onu, OnuData, OnuEvent, OnuReading, Outage, PonPort
from facho.onus.present_onus import load_present
from facho.onus.raw_values import load_raw_values
from facho.onus.store import save_inventory, save_table
from facho.polling.domain.onu_events import PollChanges, compare_poll
from facho.polling.domain.onu_presence import OnuIdentity, Walk
from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import AdminState
from factories import NOW, make_olt
from onu_tables import Told, table_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def polls_in_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave waiting polls apart, so that each can be compared."""
    monkeypatch.setitem(history.TOGETHER, history_codec.POLL, 10**6)


PLACES = [Place(0, slot, port, onu) for slot, port in ((1, 0), (1, 1), (2, 0)) for onu in range(3)]
STATE, CAUSE, RX, DESCRIPTION = "onu.run_state", "onu.last_down_cause", "onu.rx_power", "onu.description"
# Two columns of one OID: what it means depends on the key.
OIDS = {"onu.admin_state": "1.1", STATE: "1.1"}
STATES = {"1": RunState.ONLINE, "2": RunState.OFFLINE, "3": RunState.UNKNOWN}
CAUSES = {"1": DownCause.LOS, "2": DownCause.DYING_GASP, "3": DownCause.UNKNOWN}
JOBS: tuple[tuple[str, ...], ...] = (
    (STATE,),
    (STATE, CAUSE),
    (STATE, CAUSE, RX, DESCRIPTION),
    (CAUSE,),
    (RX, "onu.tx_power", "onu.temperature"),
    (RX,),
    ("onu.admin_state", STATE, "onu.distance"),
    (DESCRIPTION, "onu.name", "onu.model", "onu.mac", "onu.last_up"),
)
FREE = (RX, "1.9")
# Raw values of each column; the last stand for nothing that could be true.
RAW: dict[str, tuple[str, ...]] = {
    STATE: ("1", "1", "2", "3", "7"),
    CAUSE: ("1", "2", "3", "8"),
    RX: ("-2000", "-2010", "-2290", "-2301", "-2600", "99999999", "x"),
    "onu.tx_power": ("200", "210", "x"),
    "onu.temperature": ("40", "41", "x"),
    "onu.distance": ("100", "101", "-5", "x"),
    "onu.admin_state": ("1", "2"),
    DESCRIPTION: ("", "ana", "berta", "ñ" * 200, "long" * 100, "long" * 100 + "!"),
    "onu.name": ("a", "b", ""),
    "onu.model": ("m", "", "n"),
    "onu.mac": ("02:00:00:00:00:01", ""),
    "onu.last_up": ("2026-01-01T00:00:00", "2026-01-02T00:00:00+00:00", "1970-01-01T00:00:00", "x"),
    "1.9": ("5", "6", "text"),
}


def decode(key: str, raw: str, scale: int) -> Any:
    """Read a raw value; a definition with another scale means another value by it."""
    if key in (STATE, CAUSE, "onu.admin_state"):
        words: dict[str, Any] = {STATE: STATES, CAUSE: CAUSES}.get(
            key, {"1": AdminState.ENABLED, "2": AdminState.DISABLED}
        )
        return words.get(raw)
    if key == DESCRIPTION:
        # What the text means may come behind what is stored of it.
        return raw.replace("long", "")
    if key in ("onu.name", "onu.model", "onu.mac"):
        return raw
    try:
        return datetime.fromisoformat(raw) if key == "onu.last_up" else int(raw) / scale
    except ValueError:
        return None


def save_rows(olt: Olt, read: Sequence[Told], raw: dict[tuple[int, str], tuple[str, datetime]], now: datetime) -> None:
    """Store readings as before there were tables: every ONU is loaded, compared and judged."""
    keys = set(chain.from_iterable(reading.values for reading in read))
    of_onus = [column.name for column in store.ONU_COLUMNS if column.key in keys]
    of_readings = [f"reading__{column.name}" for column in store.READING_COLUMNS if column.key in keys]
    onus = load_present(olt.id, of_onus + of_readings)
    pairs = [(onu, reading) for reading in read if (onu := onus.get(reading.place)) and onu.can_be_read]
    changes = PollChanges((), (), ())
    if keys & {STATE, CAUSE, RX, DESCRIPTION}:
        changes = compare_poll(((onu.status, store._reported(reading.values)) for onu, reading in pairs), now=now)
    store._save_status(pairs, changes)
    store._save_columns(dict.fromkeys(keys), pairs, now)
    save_events(olt.id, changes.events, port_ids={onu.place[:3]: onu.pon_port_id for onu, _ in pairs})
    save_late_causes(changes.late_causes)
    for onu, reading in pairs:
        for oid, text in reading.raw.items():
            text = text if len(text) <= 255 else f"{text[:254]}…"
            if raw.get((onu.id, oid), ("", now))[0] != text or (onu.id, oid) not in raw:
                raw[onu.id, oid] = (text, now)
    keep_history([(onu, reading.values) for onu, reading in pairs], keys, now)
    if STATE in keys:
        after = {status.onu_id: status for status in changes.statuses}
        members = [outages.member_of(onu, after.get(onu.id, onu.status)) for onu in onus.values()]
        known = outages.load_port_outages(olt.id, now=now)
        if known or after:
            outages._judge(olt.id, members, known, now)


def keep_history(read: Sequence[tuple[Any, dict[str, Any]]], keys: set[str], now: datetime) -> None:
    wanted = {key: metric for key, metric in store._HISTORY.items() if key in keys}
    kept = [(onu, values) for onu, values in read if not values.keys().isdisjoint(wanted)]
    columns: dict[int, list[float | None]] = {}
    for key, metric in wanted.items():
        column = [values.get(key) for _, values in kept]
        is_number: Callable[[Any], Any] = lambda value: value if isinstance(value, int | float) else None  # noqa: E731
        columns[metric] = [STATE_CODES.get(str(v)) if metric == Metric.STATE else is_number(v) for v in column]
    if kept:
        append(now, Samples.of([onu.id for onu, _ in kept], [onu.pon_port_id for onu, _ in kept], columns))


class TwoWays:
    """The same device polled into two OLTs: by tables, and row by row."""

    def __init__(self) -> None:
        self.olts = make_olt(), make_olt()
        self.raw: dict[tuple[int, str], tuple[str, datetime]] = {}
        self.now, self.scale = NOW, 100
        self.onus = {place: f"HWTC{number:08}" for number, place in enumerate(PLACES)}
        first = {key: texts[0] for key, texts in RAW.items()}
        self.values: dict[Place, dict[str, str | None]] = {place: dict(first) for place in PLACES}
        self.walk()

    def walk(self) -> None:
        found = {place: OnuIdentity(serial) for place, serial in self.onus.items()}
        for olt in self.olts:
            save_inventory(olt.id, Walk(dict(found), is_complete=True), now=self.now)

    def poll(
        self, keys: Sequence[str], places: Iterable[Place], *, is_free: bool = False, is_poll: bool = True
    ) -> None:
        read = [r for place in places if (r := self.reading(place, keys, is_free=is_free)).values or r.raw]
        by_table, by_row = self.olts
        oid_of = lambda key: OIDS.get(key, key)  # noqa: E731
        table = table_of(*read, rule=str(self.scale), oid_of=oid_of)
        save_table(by_table.id, table, now=self.now, is_poll=is_poll)
        save_rows(by_row, read, self.raw, self.now)
        if is_poll and any(STATE in reading.values for reading in read):
            OltMemory.objects.update_or_create(olt=by_row, defaults={"states_at": self.now})

    def reading(self, place: Place, keys: Sequence[str], *, is_free: bool) -> Told:
        reading = Told(place, {}, {})
        for key in keys:
            if key not in self.values[place]:
                continue
            raw = self.values[place][(OIDS.get(key) and STATE) or key]
            if raw is not None:
                reading.raw[OIDS.get(key, key)] = raw
            if not is_free:
                reading.values[key] = None if raw is None else decode(key, raw, self.scale)
        return reading


def stored(olt: Olt, raw: dict[tuple[int, str], tuple[str, datetime]] | None) -> dict[str, Any]:
    """Return all that is stored of an OLT, in words that do not depend on row ids."""
    names = {onu.id: f"{onu.serial} {onu.is_present} {onu.first_seen_at}" for onu in Onu.objects.filter(olt=olt)}
    of_onu = [f.name for f in Onu._meta.fields if f.name not in ("id", "olt", "pon_port")]
    of_reading = [f.name for f in OnuReading._meta.fields if f.name not in ("onu", "outage")]
    place = ("frame", "slot", "port")
    ports = [f"pon_port__{name}" for name in place]
    rows = OnuReading.objects.filter(onu__olt=olt).order_by("onu__serial", "onu__is_present")
    paths = [*(f"onu__{name}" for name in of_onu), *(f"onu__{name}" for name in ports), *of_reading]
    events = OnuEvent.objects.filter(olt=olt).order_by("id")
    reported = events.values_list("onu__serial", *ports, "at", "kind", "cause", "other_number", "before", "after")
    facts = ("scope", *place, "cause", "started_at", "resumed_at", "ended_at", "affected", "down")
    values: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    if raw is None:
        blocks = OnuData.objects.filter(olt=olt)
        for onu_id, name in names.items():
            values[name] = [(v.oid, v.value, int(v.updated_at.timestamp())) for v in load_raw_values(onu_id, blocks)]
    else:
        for (onu_id, oid), (text, at) in sorted(raw.items()):
            values[names[onu_id]].append((oid, text, int(at.timestamp())))
    groups = {port_id >> 3 for port_id in PonPort.objects.filter(olt=olt).values_list("id", flat=True)}
    polls = [decode_poll(p.data) for p in HistoryPoll.objects.filter(port_group__in=groups).order_by("id")]
    samples = [
        (poll.at, names[onu_id], metric, int(steps))
        for poll in polls
        for metric, column in poll.values.items()
        for onu_id, steps in zip(poll.onu_ids.tolist(), column.tolist(), strict=True)
        if onu_id in names
    ]
    return {
        "onus": list(rows.values_list(*paths)),
        "outages of onus": list(rows.values_list("onu__serial", "outage__scope", "outage__started_at")),
        "events": list(reported),
        "outages": sorted(Outage.objects.filter(olt=olt).values_list(*facts), key=str),
        "raw": {name: sorted(found) for name, found in values.items() if found},
        "history": sorted(samples),
        "memory": list(OltMemory.objects.filter(olt=olt).values_list("states_at")),
    }


JOB, PLACE, PORT = (
    st.sampled_from(JOBS),
    st.sampled_from(PLACES),
    st.sampled_from((PLACES[:3], PLACES[3:6], PLACES[6:])),
)
MINUTES = st.sampled_from((1, 5, 5, 5, 31, 61, 365, -3))
Draw = Callable[[st.SearchStrategy[Any]], Any]


def poll_all(world: TwoWays, draw: Draw) -> None:
    missed = draw(st.sets(PLACE, max_size=2))
    world.poll(draw(JOB), [place for place in PLACES if place not in missed])


def read_one(world: TwoWays, draw: Draw) -> None:
    world.poll(draw(JOB), [draw(PLACE)], is_poll=False)


def read_free_oids(world: TwoWays, draw: Draw) -> None:
    world.poll(FREE, PLACES, is_free=True)


def change_values(world: TwoWays, draw: Draw) -> None:
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.sampled_from(sorted(RAW)))
        world.values[draw(PLACE)][key] = draw(st.one_of(st.sampled_from(RAW[key]), st.none()))


def lose_a_value(world: TwoWays, draw: Draw) -> None:
    world.values[draw(PLACE)].pop(draw(st.sampled_from(sorted(RAW))), None)


def switch_a_port(world: TwoWays, draw: Draw) -> None:
    state = draw(st.sampled_from("12"))
    for place in draw(PORT):
        world.values[place][STATE] = state
    # The cause comes with another job, if at all.
    world.poll(draw(st.sampled_from(((STATE,), (STATE, CAUSE), (RX,)))), PLACES)


def flap(world: TwoWays, draw: Draw) -> None:
    place = draw(PLACE)
    for number in range(6):
        world.values[place][STATE] = "12"[number % 2]
        world.now += timedelta(minutes=1)
        world.poll((STATE,), PLACES)


def walk_elsewhere(world: TwoWays, draw: Draw) -> None:
    one, other = draw(PLACE), draw(PLACE)
    if one in world.onus:
        world.onus[other] = world.onus.pop(one)
    world.walk()


def go_and_return(world: TwoWays, draw: Draw) -> None:
    place = draw(PLACE)
    serial = world.onus.pop(place, "HWTC99999999")
    for _ in range(draw(st.integers(1, 3))):
        world.walk()
        world.now += timedelta(minutes=10)
    world.onus[place] = serial
    world.walk()


def fall_one_by_one(world: TwoWays, draw: Draw) -> None:
    for place in draw(PORT):
        world.values[place][STATE] = "2"
        world.now += timedelta(minutes=draw(st.integers(1, 6)))
        world.poll((STATE,), PLACES)


def change_the_rule(world: TwoWays, draw: Draw) -> None:
    job = draw(JOB)
    world.poll(job, PLACES)
    world.scale = 110 - world.scale
    world.now += timedelta(minutes=5)
    world.poll(job, PLACES)


HAPPENINGS = (
    *(poll_all, poll_all, poll_all, poll_all, change_values, change_values, lose_a_value, read_one, read_free_oids),
    *(switch_a_port, switch_a_port, fall_one_by_one, flap, walk_elsewhere, go_and_return, change_the_rule),
)


@given(st.data())
def test_a_poll_as_a_table_stores_what_row_by_row_would(data: st.DataObject) -> None:
    """D17, S3-11: of every ONU and OID the latest raw value, and all that follows from it."""
    world = TwoWays()

    for happens in data.draw(st.lists(st.sampled_from(HAPPENINGS), min_size=5, max_size=25)):
        world.now += timedelta(minutes=data.draw(MINUTES))
        happens(world, data.draw)

    by_table, by_row = world.olts
    found, expected = stored(by_table, None), stored(by_row, world.raw)
    for subject in expected:
        assert found[subject] == expected[subject], subject
