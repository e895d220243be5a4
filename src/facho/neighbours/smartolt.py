"""ONUs, ports and OLTs in the words of SmartOLT's API, for programs that were written for it.

Its texts are data, not words for people: they are the same in every language. What Facho does not know is null, and
what cannot be known now, behind an OLT that does not answer, is `Unknown`, never down.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Avg, Count, Max, Q, QuerySet
from django.utils import timezone

from facho.accounts.scope import OltScope
from facho.hosts.models import Olt, OltData, Reachability, WaitingOnu
from facho.onus.models import Onu, Outage, PonPort
from facho.onus.search import of_code
from facho.onus.shown_state import in_state, load_port_counts, shown_state_column
from facho.onus.words import AdminStates, DownCauses, OutageCauses, OutageScopes, ShownState
from facho.plant.models import Box
from facho.polling.domain.onu_state import WEAKEST_CDBM

Shaped = dict[str, Any]

# ONUs that are read at a time.
BATCH = 5_000
# A little light more than too little; SmartOLT's bounds are set by port, and Facho has one for all.
WARNING_CDBM = -2500
NOTHING = "-"
ONLINE, POWER_FAIL, LOS, OFFLINE, UNKNOWN = "Online", "Power fail", "LOS", "Offline", "Unknown"
VERY_GOOD, WARNING, CRITICAL = "Very good", "Warning", "Critical"
POWER_CAUSES = frozenset({DownCauses.DYING_GASP, DownCauses.POWER_OFF})
FIBRE_CAUSES = frozenset(
    {DownCauses.LOS, DownCauses.LOF, DownCauses.SIGNAL_FAIL, DownCauses.LOSS_OF_ACK, DownCauses.LOSS_OF_PLOAM}
)
ADMIN_WORDS = {AdminStates.ENABLED: "Enabled", AdminStates.DISABLED: "Disabled"}
OUTAGE_WORDS = {OutageCauses.FIBRE: LOS, OutageCauses.POWER: POWER_FAIL}
# Of an OLT, of its card or of the whole chassis: where families report it.
TEMPERATURES = ("chassis.temperature", "board.temperature")
# What SmartOLT says about an ONU and Facho does not keep.
_NOT_KEPT: Mapping[str, Any] = {
    **dict.fromkeys(
        ("gpon_channel", "onu_type_id", "odb_port", "mode", "wan_mode", "vlan", "ip_address", "subnet_mask")
    ),
    **dict.fromkeys(("default_gateway", "dns1", "dns2", "username", "password", "mgmt_ip_mode", "mgmt_ip_address")),
    **dict.fromkeys(("tr069", "catv", "custom_template_name", "authorization_date")),
    **dict.fromkeys(("service_ports", "ethernet_ports", "wifi_ports", "voip_ports"), ()),
}
# OLT, frame, slot, port and ONU.
_PLACE_ID = re.compile(r"([0-9]{1,18})-([0-9]{1,5})-([0-9]{1,5})-([0-9]{1,5})-([0-9]{1,9})")
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
MAX_ID_LENGTH = 64


class OnuRow(NamedTuple):
    """What is read of an ONU, by lookup, and its shown state."""

    pk: int
    onu_id: int
    serial: str
    mac: str
    description: str
    name: str
    model: str
    admin_state: str
    olt_id: int
    olt__name: str
    pon_port__frame: int
    pon_port__slot: int
    pon_port__port: int
    pon_port__is_known: bool
    reading__last_down_cause: str | None
    reading__state_since: datetime | None
    reading__rx_power_cdbm: int | None
    reading__olt_rx_power_cdbm: int | None
    reading__distance_m: int | None
    customer__label: str | None
    customer__address: str | None
    customer__phone: str | None
    customer__latitude: float | None
    customer__longitude: float | None
    attachment__box_id: int | None
    attachment__box__name: str | None
    attachment__box__latitude: float | None
    attachment__box__longitude: float | None
    attachment__box__zone_id: int | None
    attachment__box__zone__name: str | None
    shown: str

    @property
    def external_id(self) -> str:
        """The serial, else the hardware address, else the place: what the ONU is known again by."""
        return self.serial or self.mac or self.place_id

    @property
    def place_id(self) -> str:
        return f"{self.olt_id}-{self.pon_port__frame}-{self.pon_port__slot}-{self.pon_port__port}-{self.onu_id}"

    @property
    def status(self) -> str:
        if self.shown == ShownState.ONLINE:
            return ONLINE
        if self.shown != ShownState.OFFLINE:
            return UNKNOWN
        cause = self.reading__last_down_cause
        return POWER_FAIL if cause in POWER_CAUSES else LOS if cause in FIBRE_CAUSES else OFFLINE

    @property
    def is_lit(self) -> bool:
        """Whether its light is that of now: what was read of an ONU that is down says nothing."""
        return self.shown == ShownState.ONLINE


def select_onus(*conditions: Q) -> QuerySet[Onu]:
    """Select the ONUs that SmartOLT would list: one that left its OLT is configured nowhere."""
    return Onu.objects.filter(*conditions, is_present=True).order_by("pk")


def load_rows(onus: QuerySet[Onu]) -> list[OnuRow]:
    return [OnuRow(*row) for row in onus.values_list(*OnuRow._fields[:-1], shown_state_column())]


def load_in_batches(onus: QuerySet[Onu]) -> Iterator[OnuRow]:
    """Yield all, one query a batch: however many there are, few are in memory and no query stays open."""
    last = 0
    while batch := load_rows(onus.filter(pk__gt=last)[:BATCH]):
        yield from batch
        last = batch[-1].pk


def of_external_id(text: str) -> Q | None:
    """Match by serial, hardware address or place as `OLT-frame-slot-port-ONU`; None for a text that is none of them."""
    if not text or len(text) > MAX_ID_LENGTH or not text.isprintable():
        return None
    if found := _PLACE_ID.fullmatch(text):
        olt, frame, slot, port, number = map(int, found.groups())
        place = {"pon_port__frame": frame, "pon_port__slot": slot, "pon_port__port": port}
        return of_code(text) | Q(olt_id=olt, onu_id=number, **place)
    return of_code(text)


def of_status(word: str) -> Q:
    """Match by status, in the words that SmartOLT's filter has; KeyError for others."""
    down = in_state(ShownState.OFFLINE)
    by_power, by_fibre = (Q(reading__last_down_cause__in=causes) for causes in (POWER_CAUSES, FIBRE_CAUSES))
    return {
        "online": in_state(ShownState.ONLINE),
        "pwrfail": down & by_power,
        "los": down & by_fibre,
        "offline": down & ~by_power & ~by_fibre,
    }[word]


def of_signal(word: str) -> Q:
    """Match by signal, in the words that SmartOLT's filter has; KeyError for others."""
    bounds = {
        "very_good": {"gte": WARNING_CDBM},
        "warning": {"gte": WEAKEST_CDBM, "lt": WARNING_CDBM},
        "critical": {"lt": WEAKEST_CDBM},
    }[word]

    def within(power: str) -> Q:
        return Q(**{f"reading__{power}__{lookup}": bound for lookup, bound in bounds.items()})

    only_at_olt = Q(reading__rx_power_cdbm__isnull=True) & within("olt_rx_power_cdbm")
    return in_state(ShownState.ONLINE) & (within("rx_power_cdbm") | only_at_olt)


def shape_status(row: OnuRow) -> Shaped:
    return {
        **_shape_place(row),
        "zone_id": _text(row.attachment__box__zone_id),
        "name": _name(row),
        "address": row.customer__address or "",
        "contact": row.customer__phone or "",
        "odb_id": _text(row.attachment__box_id),
        "status": row.status,
        "last_status_change": _since(row),
    }


def shape_signal(row: OnuRow) -> Shaped:
    at_onu, at_olt = _lit(row)
    return {
        **_shape_place(row),
        "zone_id": _text(row.attachment__box__zone_id),
        "signal": judge_signal(at_onu, at_olt),
        "signal_1310": _dbm(at_olt),
        "signal_1490": _dbm(at_onu),
    }


def shape_admin(row: OnuRow) -> Shaped:
    return {**_shape_place(row), "zone_id": _text(row.attachment__box__zone_id), "admin_status": _admin(row)}


def shape_details(row: OnuRow) -> Shaped:
    at_onu, at_olt = _lit(row)
    latitude, longitude = _point(row)
    return {
        **_shape_place(row),
        "pon_type": "gpon" if row.serial else "epon" if row.mac else None,
        "olt_name": row.olt__name,
        "onu_type_name": row.model or None,
        "zone_id": _text(row.attachment__box__zone_id),
        "zone_name": row.attachment__box__zone__name,
        "name": _name(row),
        "address": row.customer__address or "",
        "contact": row.customer__phone or "",
        "odb_id": _text(row.attachment__box_id),
        "odb_name": row.attachment__box__name,
        "administrative_status": _admin(row),
        "status": row.status,
        "last_status_change": _since(row),
        "signal": judge_signal(at_onu, at_olt),
        "signal_1310": _number(at_olt),
        "signal_1490": _number(at_onu),
        "distance": _text(row.reading__distance_m),
        "latitude": _text(latitude),
        "longitude": _text(longitude),
        **_NOT_KEPT,
    }


def shape_point(row: OnuRow) -> Shaped:
    latitude, longitude = _point(row)
    return {"unique_external_id": row.external_id, "latitude": _text(latitude), "longitude": _text(longitude)}


def answer_status(row: OnuRow) -> Shaped:
    return {"onu_status": row.status, "last_status_change": _since(row)}


def answer_signal(row: OnuRow) -> Shaped:
    at_onu, at_olt = _lit(row)
    distance = f" ({row.reading__distance_m}m)" if row.reading__distance_m is not None else ""
    is_known = at_onu is not None or at_olt is not None
    return {
        "onu_signal": judge_signal(at_onu, at_olt),
        "onu_signal_value": f"{_dbm(at_onu)} / {_dbm(at_olt)}{distance}" if is_known else NOTHING,
        "onu_signal_1310": _dbm(at_olt),
        "onu_signal_1490": _dbm(at_onu),
    }


def answer_details(row: OnuRow) -> Shaped:
    return {"onu_details": shape_details(row)}


def answer_admin(row: OnuRow) -> Shaped:
    return {"administrative_status": _admin(row)}


def judge_signal(at_onu_cdbm: int | None, at_olt_cdbm: int | None) -> str:
    """Judge by what the ONU receives, or where it does not say, by what the OLT receives of it."""
    power = at_olt_cdbm if at_onu_cdbm is None else at_onu_cdbm
    if power is None:
        return NOTHING
    return CRITICAL if power < WEAKEST_CDBM else WARNING if power < WARNING_CDBM else VERY_GOOD


def load_olts(scope: OltScope) -> list[Shaped]:
    olts = scope.narrow(Olt.objects.order_by("pk"), "")
    rows = olts.values_list("pk", "name", "address", "port", "model__brand__name", "model__name")
    return [
        {
            "id": str(pk),
            "name": name,
            "olt_hardware_version": f"{brand}-{model}" if model else None,
            "ip": address,
            "telnet_port": None,
            "snmp_port": str(port),
        }
        for pk, name, address, port, brand, model in rows
    ]


def load_uptimes(scope: OltScope) -> list[Shaped]:
    """Load time since the start and temperature as last reported; two queries. Nothing is said of a silent OLT."""
    olts = scope.narrow(Olt.objects.all(), "")
    values: dict[tuple[int, str], tuple[str, str]] = {}
    wanted = OltData.objects.filter(olt__in=olts, name__in=("sys.uptime", *TEMPERATURES)).exclude(value="")
    for olt_id, name, value, unit in wanted.order_by("pk").values_list("olt_id", "name", "value", "unit"):
        known, _unit = values.get((olt_id, name), ("", ""))
        # Of several cards the hottest.
        if _float(value) > _float(known):
            values[olt_id, name] = value, unit
    shaped = []
    for pk, name, enabled, reachability in olts.order_by("pk").values_list("pk", "name", "enabled", "reachability"):
        is_heard = enabled and reachability != Reachability.DOWN
        hottest = next((values[pk, each] for each in TEMPERATURES if (pk, each) in values), None)
        shaped.append(
            {
                "olt_id": str(pk),
                "olt_name": name,
                "uptime": _uptime(*values.get((pk, "sys.uptime"), ("", ""))) if is_heard else None,
                "env_temp": f"{_float(hottest[0]):.0f}°C" if is_heard and hottest else None,
            }
        )
    return shaped


def load_ports(olt: Olt) -> list[Shaped]:
    """Load the PON ports of an OLT with what their ONUs are like; four queries."""
    ports = list(PonPort.objects.filter(olt=olt, is_known=True).order_by("frame", "slot", "port"))
    counts = load_port_counts([port.pk for port in ports])
    lit = select_onus(Q(olt=olt), in_state(ShownState.ONLINE)).order_by().values_list("pon_port_id")
    light = dict(lit.annotate(Avg("reading__rx_power_cdbm")))
    sent = OltData.objects.filter(olt=olt, name="pon.tx_power").exclude(value="").values_list("place", "value")
    powers = dict(sent)
    return [
        {
            "board": str(port.slot),
            "pon_port": str(port.port),
            "pon_type": None,
            "admin_status": None,
            "operational_status": None,
            "description": None,
            "min_range": None,
            "max_range": None,
            "tx_power": powers.get(str(port)),
            "onus_count": counts[port.pk].total,
            "online_onus_count": counts[port.pk].online if counts[port.pk].is_known else None,
            "average_signal": None if (mean := light.get(port.pk)) is None else round(mean / 100, 2),
        }
        for port in ports
    ]


def load_outage_ports(olt: Olt) -> list[Shaped]:
    """Load the PON ports of an OLT that are out now, by their open outages; two queries."""
    outages = {
        (frame, slot, port): cause
        for frame, slot, port, cause in Outage.objects.filter(olt=olt, scope=OutageScopes.PON, ended_at=None)
        .order_by("frame", "slot", "port")
        .values_list("frame", "slot", "port", "cause")
    }
    slots, numbers = {slot for _frame, slot, _port in outages}, {port for _frame, _slot, port in outages}
    down, cause = in_state(ShownState.OFFLINE), "reading__last_down_cause__in"
    onus = select_onus(Q(olt=olt, pon_port__slot__in=slots, pon_port__port__in=numbers)).order_by()
    counted = onus.values_list("pon_port__frame", "pon_port__slot", "pon_port__port").annotate(
        Count("pk"),
        los=Count("pk", filter=down & Q(**{cause: FIBRE_CAUSES})),
        power=Count("pk", filter=down & Q(**{cause: POWER_CAUSES})),
        latest=Max("reading__state_since", filter=down),
    )
    counts = {(frame, slot, port): figures for frame, slot, port, *figures in counted}
    shaped = []
    for (frame, slot, port), why in outages.items():
        total, los, power, latest = counts.get((frame, slot, port), (0, 0, 0, None))
        shaped.append(
            {
                "olt_id": str(olt.pk),
                "olt_name": olt.name,
                "board": str(slot),
                "port": str(port),
                "pon_description": None,
                "total_onus": str(total),
                "cause": OUTAGE_WORDS.get(OutageCauses(why), OFFLINE),
                "los_count": str(los),
                "power_count": str(power),
                "latest_status_change": None if latest is None else _time(latest),
            }
        )
    return shaped


def load_waiting(onus: QuerySet[WaitingOnu]) -> list[Shaped]:
    rows = onus.order_by("olt_id", "frame", "slot", "port", "serial")
    return [
        {
            "pon_type": "epon" if _MAC.fullmatch(serial) else "gpon",
            "board": str(slot),
            "port": str(port),
            "onu": None,
            "sn": serial,
            "onu_type_name": model or None,
            "onu_type_id": None,
            "olt_id": str(olt_id),
            "possible_actions": [],
        }
        for olt_id, slot, port, serial, model in rows.values_list("olt_id", "slot", "port", "serial", "model")
    ]


def load_boxes(boxes: QuerySet[Box]) -> list[Shaped]:
    rows = boxes.order_by("name").values_list("pk", "name", "outputs", "latitude", "longitude", "zone_id", "zone__name")
    return [
        {
            "id": str(pk),
            "name": name,
            "nr_of_ports": _text(outputs),
            "latitude": _text(latitude),
            "longitude": _text(longitude),
            "zone_id": str(zone_id),
            "zone_name": zone_name,
        }
        for pk, name, outputs, latitude, longitude, zone_id, zone_name in rows
    ]


def _shape_place(row: OnuRow) -> Shaped:
    return {
        "unique_external_id": row.external_id,
        "sn": row.serial or row.mac,
        "olt_id": str(row.olt_id),
        "board": str(row.pon_port__slot) if row.pon_port__is_known else None,
        "port": str(row.pon_port__port) if row.pon_port__is_known else None,
        "onu": str(row.onu_id),
    }


def _name(row: OnuRow) -> str:
    return row.customer__label or row.description or row.name


def _admin(row: OnuRow) -> str | None:
    return ADMIN_WORDS[AdminStates(row.admin_state)] if row.admin_state else None


def _lit(row: OnuRow) -> tuple[int | None, int | None]:
    return (row.reading__rx_power_cdbm, row.reading__olt_rx_power_cdbm) if row.is_lit else (None, None)


def _point(row: OnuRow) -> tuple[float | None, float | None]:
    if row.customer__latitude is not None:
        return row.customer__latitude, row.customer__longitude
    return row.attachment__box__latitude, row.attachment__box__longitude


def _since(row: OnuRow) -> str | None:
    return None if row.reading__state_since is None or row.status == UNKNOWN else _time(row.reading__state_since)


def _time(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S")


def _text(value: float | None) -> str | None:
    return None if value is None else str(value)


def _number(cdbm: int | None) -> str:
    return NOTHING if cdbm is None else f"{cdbm / 100:.2f}"


def _dbm(cdbm: int | None) -> str:
    return NOTHING if cdbm is None else f"{cdbm / 100:.2f} dBm"


def _float(text: str) -> float:
    """Read what a device sent; other texts are less than any number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    return number if math.isfinite(number) else -math.inf


def _uptime(value: str, unit: str) -> str | None:
    seconds = _float(value) / (100 if unit == "cs" else 1)
    if not 0 <= seconds < 1e12:
        return None
    days, rest = divmod(int(seconds), 86_400)
    return f"{days} days, {rest // 3600:02}:{rest % 3600 // 60:02}"


# The names of all fields of an ONU.
DETAILS = frozenset(shape_details(OnuRow._make([0, 0, *[""] * 6, 0, "", 0, 0, 0, True, *[None] * 16, ""])))
