"""Whatever happens to a world, an agent that has everything encoded tells exactly what is true now."""

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

import pytest
from world_factory import TELLING_CAUSES, spread, true_identities

from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.outages import OutageCause, OutageScope, probable_cause
from facho.polling.snmp.ber import PduKind, VarBind, decode_message, encode_message_raw
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.simulator.personality import Personality, identity_of
from facho.simulator.readings import DRIFT_STEP_SECONDS, Moment, read_optics
from facho.simulator.server import shape_for
from facho.simulator.world import CustomerMaker, OltWorld
from learned_rows import GIVING_IDS, learned, rows_of_its_own

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
STEPS = 60

Told = dict[Place | None, object]


class Olt:
    """A world and its personality, read without a network."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        shape = shape_for(definition, 40)
        self.world = OltWorld("olt-001", shape, CustomerMaker(seed=1, olt_number=0), spread(shape, 40))
        self.personality = Personality(
            self.world,
            definition,
            identity_of(definition, 0),
            Moment(self.world, EPOCH),
            standard=load_definitions()["generic"],
        )

    def reported(self, key: str) -> Told:
        names = [row for name in self.definition.naming_columns for row in self._walk(name)]
        column = learned(self.definition, names).column(key)
        return {place: column.decode(t, v).value for place, (_, t, v) in rows_of_its_own(column, self._walk(key))}

    def _walk(self, key: str) -> list[VarBind]:
        column = self.definition.column(key)
        size = len(column.oid)
        rows = []
        for cell in self.personality.view.successors(column.oid, 10_000).cells:
            ((oid, tag, value),) = decode_message(
                encode_message_raw(1, b"", PduKind.RESPONSE, 1, 0, 0, cell)
            ).pdu.varbinds
            if oid[:size] != column.oid:
                break
            rows.append((oid, tag, value))
        return rows


def act_somehow(olt: Olt, rng: Random) -> None:
    world = olt.world
    onus, ports = list(world.onus), list(world.ports)
    actions: list[Callable[[], object]] = [
        lambda: world.take_down(rng.choice(onus), rng.choice((DownCause.LOS, DownCause.DYING_GASP))),
        lambda: world.bring_up(rng.choice(onus)),
        lambda: world.cut(rng.choice(ports)),
        lambda: world.restore(rng.choice(ports)),
        lambda: world.move(rng.choice(onus), rng.choice(ports)),
        lambda: world.add(rng.choice(ports)),
        lambda: world.remove(rng.choice(onus)),
    ]
    rng.choice(actions)()


@pytest.mark.parametrize("family", GIVING_IDS)
def test_what_is_reported_follows_every_change(family: str) -> None:
    olt = Olt(load_definitions()[family])
    rng = Random(family)  # noqa: S311 - repeatable on purpose
    [identity] = olt.definition.identity_columns()

    for step in range(1, STEPS):
        act_somehow(olt, rng)
        olt.world.advance(float(step))

        assert olt.reported(identity) == true_identities(olt.world, olt.definition)
        assert olt.reported("onu.run_state") == {onu.place: onu.state for onu in olt.world.onus}
        lit = {place for place, power in olt.reported("onu.rx_power").items() if power is not None}
        assert lit == {onu.place for onu in olt.world.onus if onu.is_online}


@pytest.mark.parametrize("key", ["pon.onu_count", "pon.onu_online"])
def test_ports_count_whom_they_have(key: str) -> None:
    olt = Olt(next(definition for definition in load_definitions().values() if definition.has_column(key)))
    rng = Random(key)  # noqa: S311 - repeatable on purpose

    for _ in range(STEPS):
        act_somehow(olt, rng)

        expected = {
            place: len(port.onus) if key == "pon.onu_count" else port.online_count
            for place, port in olt.world.ports.items()
        }
        assert olt.reported(key) == expected


def test_light_is_reported_as_of_now_once_time_has_been_reported() -> None:
    olt = Olt(load_definitions()["huawei_smartax"])
    olt.reported("onu.rx_power")

    olt.world.advance(50 * DRIFT_STEP_SECONDS)
    olt.personality.view.forget_drifting()

    assert olt.reported("onu.rx_power") == {
        onu.place: read_optics(onu, at=olt.world.now).rx_dbm if onu.is_online else None for onu in olt.world.onus
    }


def test_times_are_reported_in_the_calendar() -> None:
    olt = Olt(load_definitions()["huawei_smartax"])
    onu = next(onu for onu in olt.world.onus if onu.is_online)
    olt.world.advance(90.0)

    olt.world.take_down(onu, DownCause.DYING_GASP)

    assert olt.reported("onu.last_down")[onu.place] == datetime(2030, 1, 1, 0, 1, 30, tzinfo=UTC)
    assert olt.reported("onu.last_dying_gasp")[onu.place] == datetime(2030, 1, 1, 0, 1, 30, tzinfo=UTC)


def test_an_onu_that_never_failed_has_no_time_of_failure() -> None:
    olt = Olt(load_definitions()["huawei_smartax"])
    onu = next(onu for onu in olt.world.onus if onu.last_down_at is None)

    assert olt.reported("onu.last_down")[onu.place] is None
    assert olt.reported("onu.last_dying_gasp")[onu.place] is None


def test_counters_grow_with_time() -> None:
    olt = Olt(load_definitions()["huawei_smartax"])
    before = olt.reported("onu.up_bytes")

    olt.world.advance(2 * DRIFT_STEP_SECONDS)
    olt.personality.view.forget_drifting()

    after = olt.reported("onu.up_bytes")
    assert all(after[place] > before[place] for place in before)  # type: ignore[operator]


def test_cells_that_are_reported_twice_are_encoded_once() -> None:
    olt = Olt(load_definitions()["huawei_smartax"])
    view = olt.personality.view
    column = olt.definition.column("onu.description").oid

    first, second = view.successors(column, 40).cells, view.successors(column, 40).cells

    assert all(one is two for one, two in zip(first, second, strict=True))


def test_uptime_is_the_only_value_reported_anew_each_time() -> None:
    olt = Olt(load_definitions()["huawei_smartax"])
    system = (1, 3, 6, 1, 2, 1, 1)
    before = olt.personality.view.successors(system, 4).cells

    olt.world.advance(1.0)
    olt.personality.refresh_uptime()

    after = olt.personality.view.successors(system, 4).cells
    assert [one == two for one, two in zip(before, after, strict=True)] == [True, True, False, True]


def test_a_port_counts_who_waits_on_it() -> None:
    olt = Olt(load_definitions()["zte_c300_c320"])
    place, *others = olt.world.ports
    stranger = CustomerMaker(seed=1, olt_number=9).make(place, at=0.0)
    assert set(olt.reported("pon.autofind_count").values()) == {0}

    olt.personality.let_wait(stranger)

    assert olt.reported("pon.autofind_count") == {place: 1, **dict.fromkeys(others, 0)}


@pytest.mark.parametrize("family", GIVING_IDS)
def test_of_a_garbled_onu_nothing_is_reported_that_could_be_true(family: str) -> None:
    olt = Olt(load_definitions()[family])
    onu = next(onu for onu in olt.world.onus if onu.is_online)
    own = [column.key for column in olt.definition.columns_of(Scope.ONU) if column.shares is None]
    keys = [key for key in own if key not in olt.definition.naming_columns]
    before = {key: olt.reported(key) for key in keys}

    olt.world.garble(onu)
    assert [olt.reported(key)[onu.place] for key in keys] == [None] * len(keys)
    others = {onu.place for onu in olt.world.onus} - {onu.place}
    assert all(
        olt.reported(key).get(place) == reported.get(place) for key, reported in before.items() for place in others
    )
    olt.world.clear(onu)

    assert {key: olt.reported(key) for key in keys} == before


@pytest.mark.parametrize("family", TELLING_CAUSES)
def test_every_family_with_causes_tells_a_gasp_from_a_cut(family: str) -> None:
    """Of the causes of an outage, power and fibre can be told apart on every family that tells causes."""
    olt = Olt(load_definitions()[family])
    cut, dark = [port.place for port in olt.world.ports.values() if port.onus][:2]
    streets = {onu.street for onu in olt.world.ports[dark].onus.values()}

    by_cut = olt.world.cut(cut)
    by_dark = [onu for street in streets for onu in olt.world.power_off(dark, street)]

    reported = {place: DownCause(cause) for place, cause in olt.reported("onu.last_down_cause").items() if cause}
    assert {probable_cause(OutageScope.PON, [reported[onu.place]]) for onu in by_cut} == {OutageCause.FIBRE}
    assert {probable_cause(OutageScope.PON, [reported[onu.place]]) for onu in by_dark} == {OutageCause.POWER}
