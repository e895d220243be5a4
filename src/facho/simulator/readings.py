"""What a simulated OLT says for each key of a definition; several candidates, because brands know different words."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.column import Column
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import (
    AdminState,
    ConfigState,
    Cost,
    LinkState,
    MatchState,
    PhaseState,
    Typed,
    Unit,
)
from facho.simulator.plant import Floats
from facho.simulator.world import OltWorld, SimulatedOnu, SimulatedPort

# Readings change in steps, so that everything encoded in between can be reused.
DRIFT_STEP_SECONDS = 60.0
DAY_SECONDS = 86_400.0
WAVE_DB = 0.35
NOISE_DB = 0.1
FLOOR_DBM = -39.5
# By how much less an OLT receives than its ONUs.
UPSTREAM_DB = 1.7


@dataclass(frozen=True, slots=True)
class Optics:
    rx_dbm: float
    tx_dbm: float
    olt_rx_dbm: float
    temperature_c: float
    voltage_v: float
    bias_ma: float


def drift_step(at: float) -> int:
    """Readings are constant within a step."""
    return int(at // DRIFT_STEP_SECONDS)


def read_optics(onu: SimulatedOnu, *, at: float) -> Optics:
    step = drift_step(at)
    moment = step * DRIFT_STEP_SECONDS
    wave = math.sin(moment / 3600.0 * (0.3 + (onu.salt & 7) / 8.0) + onu.salt)
    down_db, up_db = (float(lost[0, 0]) for lost in lost_by_plant([onu], np.array([moment])))
    rx = max(
        onu.rx_dbm
        + WAVE_DB * wave
        + NOISE_DB * _noise(onu.salt, step)
        - (onu.fade_db_per_day * moment / DAY_SECONDS)
        - onu.loss_db
        - down_db,
        FLOOR_DBM,
    )
    temperature = onu.temperature_c + 4.0 * math.sin(2 * math.pi * moment / DAY_SECONDS) + _noise(onu.salt + 1, step)
    return Optics(
        rx_dbm=round(rx, 2),
        tx_dbm=round(onu.tx_dbm + 0.05 * _noise(onu.salt + 2, step), 2),
        olt_rx_dbm=round(max(rx + down_db - up_db, FLOOR_DBM) - UPSTREAM_DB + 0.3 * _noise(onu.salt + 3, step), 2),
        temperature_c=round(temperature),
        voltage_v=round(3.3 + 0.04 * _noise(onu.salt + 4, step), 3),
        bias_ma=round(12 + (onu.salt & 3) + (temperature - 45) / 10),
    )


def lost_by_plant(onus: Sequence[SimulatedOnu], at: Floats) -> tuple[Floats, Floats]:
    """What faults of the plant take from each ONU (rows) at moments (columns): from its light, and from the OLT's."""
    down, up = np.zeros((len(onus), len(at))), np.zeros((len(onus), len(at)))
    for row, onu in enumerate(onus):
        for fault, number in onu.plant_faults:
            lost = fault.lost_db(at[np.newaxis, :], number)
            down[row] += lost[0][0]
            up[row] += lost[1][0]
    return down, up


def _noise(salt: int, step: int) -> float:
    """A repeatable number from -1 to 1."""
    mixed = (salt * 2_654_435_761 + step * 40_503 + 0x9E37) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2_246_822_519) & 0xFFFFFFFF
    return (mixed >> 8) / 0x7FFFFF - 1.0


# In order of preference; the first that the column can carry is sent, and nothing when it can carry none.
Candidates = tuple[Typed | None, ...]
NO_VALUE: Candidates = (None,)
OnuReading = Callable[[SimulatedOnu], Candidates]
PortReading = Callable[[SimulatedPort], Candidates]
BoardReading = Callable[[Place], Candidates]

UP_BEFORE_SECONDS = 12 * 86_400
COUNTED_BEFORE_SECONDS = 30 * 86_400
# What is counted in bytes carries up to 320 Mbit/s, as some hundred customers do together.
BYTES_OF_A_CROWD = 40_000
TYPICAL: Mapping[Unit | None, float] = {
    Unit.DBM: 3.0,
    Unit.CELSIUS: 42.0,
    Unit.VOLT: 3.3,
    Unit.MILLIAMPERE: 14.0,
    Unit.PERCENT: 23,
    Unit.METRE: 1_000,
    Unit.KILOBIT_PER_SECOND: 100_000,
    Unit.MEGABIT_PER_SECOND: 1_000,
}
TEXTS: Mapping[str, Candidates] = {"model": ("OLT-16",), "version": ("V1.2.3",), "sw_version": ("V1.2.3",)}
# Interface type of a GPON port in IANA's list.
GPON_INTERFACE_TYPE = 250


class Moment:
    """Converts world seconds to device values: calendar times and current readings."""

    def __init__(self, world: OltWorld, epoch: datetime) -> None:
        self._world = world
        self._epoch = epoch

    @property
    def at(self) -> datetime:
        return self._epoch + timedelta(seconds=self._world.now)

    @property
    def uptime_ticks(self) -> int:
        return int((UP_BEFORE_SECONDS + self._world.now) * 100) & 0xFFFF_FFFF

    def onu_reading(self, key: str) -> OnuReading | None:
        """Return the reader of a key such as `onu.rx_power`, None if no simulated ONU has it."""
        name = key.removeprefix("onu.")
        if name in OPTICAL:
            pick, world = OPTICAL[name], self._world
            return lambda onu: (pick(read_optics(onu, at=world.now)),) if onu.is_online else NO_VALUE
        if name in TIMES:
            return lambda onu: self._time(TIMES[name](onu))
        return ONU_READINGS.get(name)

    def _time(self, at: float | None) -> Candidates:
        return NO_VALUE if at is None else ((self._epoch + timedelta(seconds=at)).replace(microsecond=0),)


def plain_reading(column: Column, *, salt: int, at: float) -> Candidates:
    """Return a plausible value for a column the world does not model."""
    if column.rule.words:
        return tuple(column.rule.words.values())
    if column.cost is Cost.COUNTER:
        a_second = (salt * 311 + column.oid[-1] * 53) % 997 + 3
        counted = int((COUNTED_BEFORE_SECONDS + at) * a_second * (BYTES_OF_A_CROWD if column.unit is Unit.BYTE else 1))
        return (counted, counted & 0xFFFF_FFFF)
    if column.rule.decoder.is_numeric:
        return (TYPICAL.get(column.unit, 1), None)
    return TEXTS.get(column.key.rpartition(".")[2], (None, ""))


def port_name(port: SimulatedPort) -> str:
    place = port.place
    return f"GPON {place.frame}/{place.slot}/{place.port}"


def hardware_address(serial: str) -> str:
    return f"02:00:{serial[-8:-6]}:{serial[-6:-4]}:{serial[-4:-2]}:{serial[-2:]}"


def _phase(onu: SimulatedOnu) -> Candidates:
    if onu.is_online:
        return (PhaseState.WORKING,)
    if onu.last_down_cause is DownCause.DYING_GASP:
        return (PhaseState.DYING_GASP, PhaseState.OFFLINE)
    return (PhaseState.LOS, PhaseState.OFFLINE)


def _down_cause(onu: SimulatedOnu) -> Candidates:
    if onu.last_down_cause is None:
        return (None, DownCause.UNKNOWN)
    if onu.last_down_cause is DownCause.DYING_GASP:
        return (DownCause.DYING_GASP, DownCause.POWER_OFF, DownCause.OTHER, DownCause.UNKNOWN)
    return (onu.last_down_cause, DownCause.OTHER, DownCause.UNKNOWN)


def _link(port: SimulatedPort) -> Candidates:
    return (LinkState.DOWN,) if port.is_cut else (LinkState.UP,)


ONU_READINGS: Mapping[str, OnuReading] = {
    "serial": lambda onu: (onu.serial,),
    "serial_registered": lambda onu: (onu.serial,),
    "vendor": lambda onu: (onu.serial[:4],),
    "description": lambda onu: (onu.description,),
    "name": lambda onu: (onu.description.split(" ", 1)[0],),
    "model": lambda onu: (onu.model,),
    "type": lambda onu: (onu.model,),
    "hw_version": lambda onu: (f"HW{onu.salt % 4 + 1}",),
    "sw_version": lambda onu: (f"V{onu.salt % 3 + 1}.{onu.salt % 7}",),
    "line_profile": lambda onu: ("internet",),
    "service_profile": lambda onu: (onu.model,),
    "mac": lambda onu: (hardware_address(onu.serial),),
    "run_state": lambda onu: (onu.state,),
    "phase_state": _phase,
    "pon_port": lambda onu: (onu.place.port if onu.is_online else 0,),
    "admin_state": lambda onu: (AdminState.ENABLED,),
    "config_state": lambda onu: (ConfigState.NORMAL if onu.is_online else ConfigState.INITIAL,),
    "match_state": lambda onu: (MatchState.MATCH if onu.is_online else MatchState.INITIAL,),
    "distance": lambda onu: (onu.distance_m,) if onu.is_online else (None, onu.distance_m),
    "last_down_cause": _down_cause,
    "loid": lambda onu: NO_VALUE,
    "catv_rx_power": lambda onu: NO_VALUE,
}

OPTICAL: Mapping[str, Callable[[Optics], float]] = {
    "rx_power": lambda optics: optics.rx_dbm,
    "tx_power": lambda optics: optics.tx_dbm,
    "olt_rx_power": lambda optics: optics.olt_rx_dbm,
    "temperature": lambda optics: optics.temperature_c,
    "voltage": lambda optics: optics.voltage_v,
    "bias": lambda optics: optics.bias_ma,
}

TIMES: Mapping[str, Callable[[SimulatedOnu], float | None]] = {
    "last_up": lambda onu: onu.last_up_at,
    "last_down": lambda onu: onu.last_down_at,
    "last_dying_gasp": lambda onu: onu.last_down_at if onu.last_down_cause is DownCause.DYING_GASP else None,
}

PORT_READINGS: Mapping[str, PortReading] = {
    "pon.onu_count": lambda port: (len(port.onus),),
    "pon.onu_offline": lambda port: (len(port.onus) - port.online_count,),
    "pon.onu_online": lambda port: (port.online_count,),
    "pon.name": lambda port: (port_name(port),),
    "pon.admin_state": lambda port: (AdminState.ENABLED,),
    "autofind.count": lambda port: (0,),
    "pon.status": lambda port: (*_link(port), RunState.OFFLINE if port.is_cut else RunState.ONLINE),
    "pon.description": lambda port: (port_name(port),),
    "if.name": lambda port: (port_name(port),),
    "if.descr": lambda port: (port_name(port),),
    "if.type": lambda port: (GPON_INTERFACE_TYPE,),
    "if.admin": lambda port: (LinkState.UP,),
    "if.oper": _link,
}

OLT_READINGS: Mapping[str, Callable[[OltWorld], Candidates]] = {
    "chassis.onu_count": lambda world: (sum(1 for _ in world.onus),)
}

BOARD_READINGS: Mapping[str, BoardReading] = {
    "board.type": lambda place: ("GPON",),
    "board.description": lambda place: (f"GPON card {place.slot}",),
    "board.serial": lambda place: (f"CARD{place.frame:02d}{place.slot:04d}",),
}
