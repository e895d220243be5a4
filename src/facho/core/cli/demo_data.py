"""What the demo needs in the database: its simulated OLTs with their jobs, and a login."""

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import cos, pi, sin
from random import Random

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from numpy.typing import NDArray

from facho.accounts.roles import Role, give_role
from facho.alerts.conditions.weak_light import WEAK_LIGHT, judged_readings, light_finding, load_light
from facho.alerts.models import Alert, AlertRule, AlertState
from facho.alerts.store import offer_default_rules
from facho.api.tokens import create_token
from facho.core.data_folder import DataFolder, write_private
from facho.core.processes.simulator import demo_config
from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.onus.history import Samples, append
from facho.onus.history_codec import DAY_SECONDS, HistoryGrid, encode_grid
from facho.onus.history_models import STATE_CODES, HistorySamples, HistoryStay, Metric, to_steps
from facho.onus.models import OltMemory, Onu, OnuCustomer, OnuEvent, OnuReading, Outage, PonPort
from facho.onus.words import EventKinds, OutageCauses, OutageScopes
from facho.plant.models import AttachmentSources, Box, BoxKinds, OnuAttachment, PortDays, Zone
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.definition import Definition
from facho.simulator import story
from facho.simulator.readings import UPSTREAM_DB, hardware_address, lost_by_plant, read_optics
from facho.simulator.server import build_world, choose_definitions
from facho.simulator.world import OltWorld, SimulatedOnu
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode

USER = "admin"
# What the simulator calls its OLTs; a visitor's own are left alone.
SIMULATED_NAME = r"^olt-[0-9]{3}$"


@dataclass(frozen=True, slots=True)
class DemoOlt:
    """A line that the simulator printed: name, host, port, vendor, community."""

    name: str
    host: str
    port: int
    vendor: str
    community: str

    @classmethod
    def parse(cls, line: str) -> "DemoOlt":
        name, host, port, vendor, community = line.split()
        return cls(name, host, int(port), vendor, community)


@dataclass(frozen=True, slots=True)
class Access:
    """How to get in; kept in the demo's folder, so that it is the same at the next start."""

    user: str
    password: str
    token: str


@transaction.atomic
def save_olts(simulated: Sequence[DemoOlt], *, now: datetime) -> None:
    """Have exactly the simulated OLTs, at the ports they got this time, each due at once; others stay as they are."""
    ours = Olt.objects.filter(name__regex=SIMULATED_NAME)
    ours.exclude(name__in=[olt.name for olt in simulated]).delete()
    # Ports change hands between starts: parked rows cannot collide while they do.
    ours.update(address="0.0.0.0", port=F("id"))  # noqa: S104 no socket
    for line in simulated:
        olt, _is_new = Olt.objects.update_or_create(
            name=line.name,
            defaults={
                "host": line.host,
                "address": line.host,
                "port": line.port,
                "vendor": line.vendor,
                "community": Secret(line.community),
            },
        )
        # As often as the definitions say: what a visitor sees is what an installation gets.
        apply_ready_made_jobs(olt, now=now)
    masters = WorkflowNode.objects.filter(is_chain_node=False, workflow__olt__name__in=[o.name for o in simulated])
    masters.update(run_requested_at=now)


def load_first_port() -> int | None:
    """Return the first port of the simulated OLTs at the last start, so that they can have it again."""
    ports = Olt.objects.filter(name__regex=SIMULATED_NAME).order_by("port").values_list("port", flat=True)
    return ports.first()


def provide_access(folder: DataFolder) -> Access:
    """Return the demo's login and token; made once, then read from the mark file."""
    if folder.demo_mark.exists():
        return Access(**json.loads(folder.demo_mark.read_text()))
    with transaction.atomic():
        User.objects.filter(username=USER).delete()
        password = secrets.token_urlsafe(9)
        user = User.objects.create_user(USER, password=password)
        give_role(user, Role.ADMIN)
        access = Access(USER, password, create_token(user))
    write_private(folder.demo_mark, json.dumps(asdict(access)))
    return access


# As often as light is read by default.
STEP_SECONDS = 1_800
# What the last polls before the beginning are apart, and how long they wait.
POLL_SECONDS, WAITING_SECONDS = 300, 7_200
CUSTOMER_SHARE = 0.92
FIRST_NAMES = (
    "Ana", "Luis", "Marta", "Diego", "Elena", "Pablo", "Rosa", "Javier", "Carmen", "Tomás", "Lucía", "Andrés", "Sofía",
    "Mateo", "Julia", "Raúl", "Inés", "Bruno", "Clara", "Hugo", "Alma", "Óscar", "Nora", "Iván",
)  # fmt: skip
SURNAMES = (
    "Rivas", "Montes", "Quiroga", "Salas", "Peralta", "Aguirre", "Cordero", "Villalba", "Ibarra", "Luna", "Rocha",
    "Ferreyra", "Maldonado", "Benítez", "Cabrera", "Duarte", "Escobar", "Figueroa", "Godoy", "Herrera", "Jara", "Leiva",
    "Miranda", "Navarro", "Ocampo", "Paredes", "Robles", "Zárate",
)  # fmt: skip
STREETS = ("Calle Los Cedros", "Av. San Martín", "Calle 12", "Pasaje El Sauce", "Av. Libertad", "Calle Las Rosas")
# Nobody lives there: the plain of a high desert.
TOWN = (-21.52, -68.04)
ZONES = ("Centro", "San Martín", "El Sauce", "Las Rosas", "Los Cedros")
TAGS = ("", "", "", "", "empresa", "VIP", "plan 300", "plan 600")


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """A simulated OLT as it began, with the row that it has."""

    olt: Olt
    number: int
    world: OltWorld
    # By what a discovery of its family finds ONUs again: their serial, or their hardware address.
    identity: str

    def code_of(self, onu: SimulatedOnu) -> str:
        return onu.serial if self.identity == "serial" else hardware_address(onu.serial)


def new_worlds(olts: int, onus: int) -> list[DemoWorld]:
    """Build the worlds of OLTs that have no ONU yet, again: they are the same at every start."""
    config, definitions = demo_config(olts, onus), choose_definitions(demo_config(olts, onus).vendor)
    rows = {olt.name: olt for olt in Olt.objects.filter(onus__isnull=True)}
    found = []
    for number in range(olts):
        definition = definitions[number % len(definitions)]
        olt = rows.get(f"{config.name_prefix}-{number + 1:03d}")
        identity = _identity(definition)
        if olt is not None and identity:
            found.append(DemoWorld(olt, number, build_world(olt.name, config, definition, number), identity))
    return found


def _identity(definition: Definition) -> str:
    columns = {key for job in definition.jobs if job.query_type is QueryType.DISCOVERY for key in job.columns}
    return next((name for name in ("serial", "mac") if f"onu.{name}" in columns), "")


@transaction.atomic
def save_inventory(worlds: Sequence[DemoWorld], *, now: datetime) -> None:
    """Write ports, ONUs, customers, what was read last, and what happened to them."""
    for each in worlds:
        _save_olt(each, now)
    _save_alert(now)


def _save_olt(each: DemoWorld, now: datetime) -> None:
    since = now - timedelta(days=story.PAST_DAYS)
    ports = PonPort.objects.bulk_create(
        PonPort(olt=each.olt, frame=place.frame, slot=place.slot, port=place.port)
        for place, port in each.world.ports.items()
        if port.onus
    )
    ids = {(port.frame, port.slot, port.port): port.id for port in ports}
    simulated = list(each.world.onus)
    onus = Onu.objects.bulk_create(
        Onu(
            olt=each.olt,
            pon_port_id=ids[onu.place[:3]],
            onu_id=onu.place.onu,
            **{each.identity: each.code_of(onu)},
            description=onu.description,
            model=onu.model,
            first_seen_at=since,
        )
        for onu in simulated
    )
    rows = {onu.serial: row for onu, row in zip(simulated, onus, strict=True)}
    OnuReading.objects.bulk_create(_readings(each, rows, now))
    points = save_plant(each, rows, ids)
    customers = list(_customers(each, onus))
    for customer in customers:
        customer.latitude, customer.longitude = points[customer.onu_id]
    OnuCustomer.objects.bulk_create(customers)
    faults = story.past_faults(each.world, each.number)
    OnuEvent.objects.bulk_create([*_events(faults, rows, now), *_flaps(each, rows, now)])
    Outage.objects.bulk_create(_outages(each.olt, faults, now))
    OltMemory.objects.create(olt=each.olt, walked_at=now, states_at=now)
    Olt.objects.filter(id=each.olt.id).update(discovered_at=since)


def save_plant(
    each: DemoWorld, rows: dict[str, Onu], port_ids: dict[tuple[int, int, int], int]
) -> dict[int, tuple[float, float]]:
    """Write a zone with a splitter for each port and a box for each street; return where each ONU is."""
    rng = Random(f"plant/{each.olt.name}")  # noqa: S311 a made-up town
    round_number, name = divmod(each.number, len(ZONES))
    called = f"{ZONES[name]} {round_number + 1}" if round_number else ZONES[name]
    middle = (TOWN[0] + 0.03 * (each.number // 3), TOWN[1] + 0.045 * (each.number % 3))
    zone = Zone.objects.create(name=called, latitude=middle[0], longitude=middle[1])
    ports = [(place, port) for place, port in each.world.ports.items() if port.onus]
    found: dict[int, tuple[float, float]] = {}
    attached = []
    for number, (place, port) in enumerate(ports):
        port_id = port_ids[place.frame, place.slot, place.port]
        angle = 2 * pi * number / len(ports) + 0.3
        about = {"zone": zone, "pon_port_id": port_id}
        latitude, longitude = away(middle, 0.006, angle)
        split = {"kind": BoxKinds.SPLITTER, "outputs": 8, "latitude": latitude, "longitude": longitude}
        splitter = Box.objects.create(name=f"{called} S-{number + 1:02}", **split, **about)
        streets = sorted({onu.street for onu in port.onus.values()})
        for row, street in enumerate(streets):
            spread = (row - (len(streets) - 1) / 2) * min(0.35, 4 / len(ports) / max(len(streets), 1))
            spot = away(middle, 0.009 + 0.0016 * (row % 3) + rng.uniform(0, 0.0006), angle + spread)
            box = Box.objects.create(
                name=f"{called} CTO-{number + 1:02}{chr(ord('A') + row % 26)}{row // 26 or ''}",
                parent=splitter, outputs=16, latitude=spot[0], longitude=spot[1], **about,
            )  # fmt: skip
            for onu in port.onus.values():
                if onu.street == street:
                    onu_id = rows[onu.serial].id
                    found[onu_id] = away(spot, rng.uniform(0.0002, 0.0008), rng.uniform(0, 2 * pi))
                    attached.append(OnuAttachment(onu_id=onu_id, box=box, source=AttachmentSources.IMPORT))
    OnuAttachment.objects.bulk_create(attached)
    return found


def away(point: tuple[float, float], degrees: float, angle: float) -> tuple[float, float]:
    return round(point[0] + degrees * sin(angle), 6), round(point[1] + degrees * cos(angle), 6)


def _readings(each: DemoWorld, rows: dict[str, Onu], now: datetime) -> Iterator[OnuReading]:
    unsteady = {onu.serial for onu in story.flapping(each.world)}
    for onu in each.world.onus:
        optics = read_optics(onu, at=0.0)
        is_online, began_at = onu.is_online, onu.last_up_at if onu.is_online else onu.last_down_at
        if onu.serial in unsteady:
            began_at = -story.FLAP_SECONDS
        light = {
            "distance_m": onu.distance_m,
            "rx_power_cdbm": round(optics.rx_dbm * 100),
            "tx_power_cdbm": round(optics.tx_dbm * 100),
            "olt_rx_power_cdbm": round(optics.olt_rx_dbm * 100),
            "temperature_tenths": round(optics.temperature_c * 10),
            "power_at": now,
            "power_reference_cdbm": round(optics.rx_dbm * 100),
            "power_reference_at": now,
        }
        yield OnuReading(
            onu=rows[onu.serial],
            run_state=RunState.ONLINE if is_online else RunState.OFFLINE,
            state_since=now + timedelta(seconds=began_at or 0.0),
            last_down_cause="" if is_online or onu.last_down_cause is None else onu.last_down_cause,
            flap_changes=12 if onu.serial in unsteady else 0,
            flap_since=_flapping_since(now) if onu.serial in unsteady else None,
            **(light if is_online else {}),
        )


def _customers(each: DemoWorld, onus: Iterable[Onu]) -> Iterator[OnuCustomer]:
    """Invent customers; the area is that of the ONU's description."""
    rng = Random(f"people/{each.olt.name}")  # noqa: S311 made-up people, not secrets
    for onu in onus:
        if rng.random() > CUSTOMER_SHARE:
            continue
        code, _, area = onu.description.partition(" ")
        yield OnuCustomer(
            onu=onu,
            label=f"{rng.choice(FIRST_NAMES)} {rng.choice(SURNAMES)} {rng.choice(SURNAMES)}",
            address=f"{rng.choice(STREETS)} {rng.randrange(10, 990)}, {area}",
            phone=f"+00 555 {rng.randrange(100, 1000)} {rng.randrange(1000, 10_000)}",
            tags=rng.choice(TAGS),
            notes=code,
        )


def _events(faults: Iterable[story.PastFault], rows: dict[str, Onu], now: datetime) -> Iterator[OnuEvent]:
    for fault in faults:
        moments = ((fault.began_at, EventKinds.DOWN, fault.cause), (fault.ended_at, EventKinds.UP, None))
        for seconds, kind, cause in moments:
            for onu in fault.onus:
                row = rows[onu.serial]
                yield OnuEvent(
                    olt_id=row.olt_id,
                    pon_port_id=row.pon_port_id,
                    onu=row,
                    onu_number=row.onu_id,
                    at=now + timedelta(seconds=seconds),
                    kind=kind,
                    cause=cause or "",
                )


def _flaps(each: DemoWorld, rows: dict[str, Onu], now: datetime) -> Iterator[OnuEvent]:
    for onu in story.flapping(each.world):
        row = rows[onu.serial]
        place = {"olt_id": row.olt_id, "pon_port_id": row.pon_port_id, "onu": row, "onu_number": row.onu_id}
        yield OnuEvent(at=_flapping_since(now), kind=EventKinds.FLAPPING, **place)


def _flapping_since(now: datetime) -> datetime:
    """When the next change after the last ones told apart came."""
    return now - timedelta(minutes=story.FLAPPED_MINUTES_AGO[-1]) + timedelta(seconds=story.FLAP_SECONDS)


def _outages(olt: Olt, faults: Iterable[story.PastFault], now: datetime) -> Iterator[Outage]:
    for fault in faults:
        if fault.place is None or not fault.onus:
            continue
        began_at = now + timedelta(seconds=fault.began_at)
        yield Outage(
            scope=OutageScopes.PON,
            olt=olt,
            frame=fault.place.frame,
            slot=fault.place.slot,
            port=fault.place.port,
            cause=OutageCauses.POWER if fault.cause is DownCause.DYING_GASP else OutageCauses.FIBRE,
            started_at=began_at,
            resumed_at=began_at,
            ended_at=now + timedelta(seconds=fault.ended_at),
            affected=len(fault.onus),
            down=0,
        )


def _save_alert(now: datetime) -> None:
    """Let the weakest ONU have alerted somebody who has not looked yet; the next passes judge the others."""
    offer_default_rules()
    rule = AlertRule.objects.filter(kind=WEAK_LIGHT.code, enabled=True).first()
    weakest = next(iter(load_light(judged_readings()[:1])), None)
    if rule is None or weakest is None:
        return
    finding = light_finding(weakest, value=weakest["rx_power_cdbm"] / 100)
    began_at = now - timedelta(hours=3)
    Alert.objects.get_or_create(
        rule=rule,
        subject=f"onu {weakest['onu_id']}",
        resolved_at=None,
        defaults={
            "olt_id": finding.olt_id,
            "state": AlertState.FIRING,
            "severity": rule.severity,
            "facts": finding.facts,
            "place": "/".join(finding.place),
            "began_at": began_at,
            "fired_at": began_at + timedelta(minutes=rule.hold_minutes),
        },
    )


def save_history(worlds: Sequence[DemoWorld], *, now: datetime) -> None:
    """Write what light and state were, a block for each port, metric and day; a transaction for each OLT."""
    for each in worlds:
        stored = Onu.objects.filter(olt=each.olt).values_list(each.identity, "id", "pon_port_id")
        found = {code: (onu_id, port_id) for code, onu_id, port_id in stored}
        codes = {onu.serial: each.code_of(onu) for onu in each.world.onus}
        rows = {serial: found[code] for serial, code in codes.items() if code in found}
        faults = story.past_faults(each.world, each.number)
        blocks: list[HistorySamples] = []
        present: list[SimulatedOnu] = []
        for port in each.world.ports.values():
            # Between starting and writing somebody may have moved.
            onus = [onu for onu in port.onus.values() if onu.serial in rows]
            onus.sort(key=lambda onu: rows[onu.serial][0])
            if onus:
                present += onus
                blocks += _blocks(onus, rows, faults, now)
        with transaction.atomic():
            HistorySamples.objects.bulk_create(blocks, ignore_conflicts=True)
            stays = (HistoryStay(onu_id=onu_id, pon_port_id=port_id) for onu_id, port_id in rows.values())
            HistoryStay.objects.bulk_create(stays, ignore_conflicts=True)
            if present:
                _write_polls(present, rows, faults, now)
    # Days computed before the history was written are empty.
    PortDays.objects.all().delete()


def _blocks(
    onus: Sequence[SimulatedOnu], rows: dict[str, tuple[int, int]], faults: Sequence[story.PastFault], now: datetime
) -> Iterator[HistorySamples]:
    began = int(now.timestamp())
    at = np.arange(began - story.PAST_DAYS * DAY_SECONDS, began - WAITING_SECONDS, STEP_SECONDS)
    moments = (at - began).astype(np.float64)
    values = _values_at(onus, faults, moments)
    steps = {metric: to_steps(metric, each.ravel()).reshape(each.shape) for metric, each in values.items()}
    ids = np.array([rows[onu.serial][0] for onu in onus], dtype=np.int64)
    days = at // DAY_SECONDS
    edges = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(at)]
    for first, end in pairwise(edges):
        ends_at = datetime.fromtimestamp(int(days[first] + 1) * DAY_SECONDS, UTC)
        for metric, layer in steps.items():
            grid = HistoryGrid(ids, at[first:end], layer[np.newaxis, :, first:end])
            if grid.has_values:
                port_id = rows[onus[0].serial][1]
                yield HistorySamples(pon_port_id=port_id, metric=metric, ends_at=ends_at, data=encode_grid(grid))


def _values_at(
    onus: Sequence[SimulatedOnu], faults: Sequence[story.PastFault], moments: NDArray[np.float64]
) -> dict[Metric, NDArray[np.float64]]:
    is_down = _downtime(onus, faults, moments)
    light, (down_db, up_db) = story.light_of(onus, moments), lost_by_plant(onus, moments)
    light[is_down] = np.nan
    return {
        Metric.RX_POWER: light,
        Metric.OLT_RX_POWER: light + down_db - up_db - UPSTREAM_DB,
        Metric.STATE: np.where(is_down, STATE_CODES[RunState.OFFLINE], STATE_CODES[RunState.ONLINE]).astype(np.float64),
    }


def _write_polls(
    onus: Sequence[SimulatedOnu], rows: dict[str, tuple[int, int]], faults: Sequence[story.PastFault], now: datetime
) -> None:
    """Let the last polls wait as real ones do: who watches light begins with them."""
    at = np.arange(-WAITING_SECONDS, 0, POLL_SECONDS)
    values = _values_at(onus, faults, at.astype(np.float64))
    ids, ports = (np.array(its, dtype=np.int64) for its in zip(*(rows[onu.serial] for onu in onus), strict=True))
    for column, seconds in enumerate(at.tolist()):
        samples = Samples(ids, ports, {metric: its[:, column] for metric, its in values.items()})
        append(now + timedelta(seconds=seconds), samples)


def _downtime(
    onus: Sequence[SimulatedOnu], faults: Iterable[story.PastFault], moments: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return when ONUs (rows) were down: in faults, and since they went down if they still are."""
    is_down = np.zeros((len(onus), len(moments)), dtype=bool)
    places = {onu.serial: row for row, onu in enumerate(onus)}
    for fault in faults:
        during = (moments >= fault.began_at) & (moments < fault.ended_at)
        for onu in fault.onus:
            if onu.serial in places:
                is_down[places[onu.serial], during] = True
    for row, onu in enumerate(onus):
        if not onu.is_online and onu.last_down_at is not None:
            is_down[row, moments >= onu.last_down_at] = True
    return is_down
