"""Light that customers' devices receive: too weak, or much weaker than it used to be.

Judged of ONUs that are online, and in no outage that goes on; of the others nobody knows their light now.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from facho.alerts.conditions.finding import NOT_KNOWN, Finding, Findings, Question, numbers_of, olt_place, plain
from facho.hosts.models import Reachability
from facho.onus.models import OnuEvent, OnuReading, RunState, name_port
from facho.onus.words import EventKinds

# How far back what an ONU usually receives is looked for; after that it got used to less.
USUAL = timedelta(days=1)

_IS_WATCHED = Q(onu__is_present=True, onu__olt__enabled=True)
_IS_JUDGED = (
    Q(run_state=RunState.ONLINE, rx_power_cdbm__isnull=False)
    & ~Q(onu__olt__reachability=Reachability.DOWN)
    & (Q(outage__isnull=True) | Q(outage__ended_at__isnull=False))
)
_COLUMNS = (
    "onu_id",
    "rx_power_cdbm",
    "onu__onu_id",
    "onu__serial",
    "onu__description",
    "onu__olt_id",
    "onu__olt__name",
    "onu__pon_port__is_known",
    "onu__pon_port__frame",
    "onu__pon_port__slot",
    "onu__pon_port__port",
)


def find_weak_light(question: Question) -> Findings:
    """Find ONUs that receive less than the loosest rule wants; two queries."""
    loosest = max(bound.threshold + bound.margin for bound in question.bounds)
    weak = _readings().filter(_IS_JUDGED, rx_power_cdbm__lt=round(loosest * 100))
    found = {_subject(row): _finding(row, value=row["rx_power_cdbm"] / 100) for row in _rows(weak)}
    return found | _unjudged(question.open_subjects - found.keys())


def find_power_steps(question: Question) -> Findings:
    """Find ONUs that receive much less than within the last day; the value is by how many dB; three queries."""
    usual = _load_usual(question)
    readings = _readings().filter(_IS_JUDGED, onu_id__in=usual) if usual else OnuReading.objects.none()
    found = {
        _subject(row): _finding(row, value=round(dropped, 2), usual=usual[row["onu_id"]])
        for row in _rows(readings)
        if (dropped := usual[row["onu_id"]] - row["rx_power_cdbm"] / 100) > 0
    }
    return found | _unjudged(question.open_subjects - found.keys())


def _load_usual(question: Question) -> dict[int, float]:
    """Load from what their light dropped within the last day, in dBm: from the most, if it dropped twice."""
    drops = OnuEvent.objects.filter(kind=EventKinds.POWER_DROP, at__gt=question.now - USUAL).order_by()
    usual: dict[int, float] = {}
    for onu_id, before in drops.values_list("onu_id", "before"):
        usual[onu_id] = max(float(before), usual.get(onu_id, float("-inf")))
    return usual


def _readings() -> QuerySet[OnuReading]:
    # The weakest first: a message names no more than the first ones.
    return OnuReading.objects.filter(_IS_WATCHED).order_by("rx_power_cdbm", "onu_id")


def _unjudged(subjects: Collection[str]) -> Findings:
    """Find which of these ONUs are watched and cannot be judged."""
    if not subjects:
        return {}
    unknown = _readings().filter(onu_id__in=numbers_of(subjects, "onu")).exclude(_IS_JUDGED).order_by()
    return {f"onu {onu_id}": NOT_KNOWN for onu_id in unknown.values_list("onu_id", flat=True)}


def _rows(readings: QuerySet[OnuReading]) -> Iterable[dict[str, Any]]:
    yield from readings.values(*_COLUMNS)


def _subject(row: dict[str, Any]) -> str:
    return f"onu {row['onu_id']}"


def _finding(row: dict[str, Any], *, value: float, usual: float | None = None) -> Finding:
    port = name_port(**{name: row[f"onu__pon_port__{name}"] for name in ("frame", "slot", "port", "is_known")})
    facts = {
        "olt": plain(row["onu__olt__name"]),
        "place": port,
        "onu_id": row["onu_id"],
        "onu": plain(row["onu__serial"]) or f"{port}/{row['onu__onu_id']}",
        "description": plain(row["onu__description"]),
        "dbm": row["rx_power_cdbm"] / 100,
    }
    return Finding(
        facts if usual is None else {**facts, "usual_dbm": usual},
        olt_id=row["onu__olt_id"],
        place=olt_place(row["onu__olt_id"], port),
        value=value,
    )
