"""ONUs that receive too little light. Offline ONUs and those in a current outage are not judged.

Neither are those that lost light with others while a rule reports them together: one cause is one alert.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from django.db.models import (
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Coalesce
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, Threshold, plain
from facho.alerts.conditions.branch_decay import BRANCH_DECAY
from facho.alerts.conditions.branch_decay import USUAL_DB as BRANCH_DECAY_DB
from facho.alerts.conditions.branch_step import BRANCH_STEP, USUAL_DB
from facho.alerts.models import AlertRule, Severity
from facho.hosts.models import Reachability
from facho.onus.models import OnuReading, RunStateChoice, name_port
from facho.plant.models import FindingKinds, FindingOnu
from facho.polling.domain.onu_state import WEAKEST_CDBM

_IS_WATCHED = Q(onu__is_present=True, onu__olt__enabled=True)
_RULES = AlertRule.objects.filter(enabled=True, olt_group__isnull=True)
_TELLS_OF_STEP = _RULES.annotate(least_db=Coalesce("threshold", Value(USUAL_DB))).filter(
    kind=BRANCH_STEP.code, least_db__lte=OuterRef("lost_db")
)
# dB and dB a day, times days: databases compare spans of time, and none turns one into a number as the other does.
_TELLS_OF_DECAY = _RULES.annotate(
    least=ExpressionWrapper(
        Value(timedelta(days=1), DurationField()) * Coalesce("threshold", Value(BRANCH_DECAY_DB)), DurationField()
    )
).filter(kind=BRANCH_DECAY.code, least__lte=OuterRef("lost_so_far"))
_LOST_WITH_OTHERS = FindingOnu.objects.annotate(
    lost_db=-F("finding__size_db"),
    lost_so_far=ExpressionWrapper(
        ExpressionWrapper(F("finding__judged_at") - F("finding__since"), DurationField()) * F("finding__size_db"),
        DurationField(),
    ),
).filter(
    Q(finding__kind=FindingKinds.COMMON_STEP) & Exists(_TELLS_OF_STEP)
    | Q(finding__kind=FindingKinds.BRANCH_DECAY) & Exists(_TELLS_OF_DECAY),
    onu_id=OuterRef("onu_id"),
    is_hit=True,
    finding__ended_at__isnull=True,
)
_IS_JUDGED = (
    Q(run_state=RunStateChoice.ONLINE, rx_power_cdbm__isnull=False)
    & ~Q(onu__olt__reachability=Reachability.DOWN)
    & (Q(outage__isnull=True) | Q(outage__ended_at__isnull=False))
    & ~Exists(_LOST_WITH_OTHERS)
)


def find_weak_light(question: Question) -> Findings:
    """Find ONUs that receive less than the loosest rule wants; two queries."""
    loosest = max(bound.threshold + bound.margin for bound in question.bounds)
    rows = load_light(judged_readings().filter(rx_power_cdbm__lt=round(loosest * 100)))
    found = {f"onu {row['onu_id']}": light_finding(row, value=row["rx_power_cdbm"] / 100) for row in rows}
    return found | unjudged(question.open_subjects - found.keys())


def judged_readings() -> QuerySet[OnuReading]:
    """Select the readings that can be judged, the weakest first: a message lists the first ones only."""
    return OnuReading.objects.filter(_IS_WATCHED, _IS_JUDGED).order_by("rx_power_cdbm", "onu_id")


def unjudged(subjects: Collection[str]) -> Findings:
    """Find which of these ONUs are watched and cannot be judged."""
    if not subjects:
        return {}
    onu_ids = [int(subject.removeprefix("onu ")) for subject in subjects]
    unknown = OnuReading.objects.filter(_IS_WATCHED, onu_id__in=onu_ids).exclude(_IS_JUDGED).order_by()
    return {f"onu {onu_id}": Finding(is_known=False) for onu_id in unknown.values_list("onu_id", flat=True)}


def load_light(readings: QuerySet[OnuReading]) -> Iterable[dict[str, Any]]:
    onu = ("onu__onu_id", "onu__serial", "onu__description", "onu__olt_id", "onu__olt__name")
    port = ("onu__pon_port__is_known", "onu__pon_port__frame", "onu__pon_port__slot", "onu__pon_port__port")
    rows: Iterable[dict[str, Any]] = readings.values("onu_id", "rx_power_cdbm", *onu, *port)
    return rows


def light_finding(row: dict[str, Any], *, value: float, **facts: float) -> Finding:
    port = name_port(**{name: row[f"onu__pon_port__{name}"] for name in ("frame", "slot", "port", "is_known")})
    return Finding(
        {
            "olt": plain(row["onu__olt__name"]),
            "place": port,
            "onu_id": row["onu_id"],
            "onu": plain(row["onu__serial"]) or f"{port}/{row['onu__onu_id']}",
            "description": plain(row["onu__description"]),
            "dbm": row["rx_power_cdbm"] / 100,
            **facts,
        },
        olt_id=row["onu__olt_id"],
        port=port,
        value=value,
    )


def write_powers(facts: KnownFacts) -> KnownFacts:
    """Write powers in the reader's language, and the ONU with its description, by which customers are known."""
    powers = {name: number_format(facts[name], 2) for name in ("dbm", "usual_dbm") if name in facts}
    onu = " · ".join(str(name) for name in (facts["onu"], facts.get("description")) if name)
    return KnownFacts({**facts, **powers, "onu": onu})


WEAK_LIGHT = Condition(
    code="weak_light",
    label=gettext_lazy("weak light"),
    looks_for=gettext_lazy("ONUs that receive too little light while they are online and in no outage."),
    find=find_weak_light,
    sentence=lambda facts: _("%(olt)s %(place)s: ONU %(onu)s receives %(dbm)s dBm") % write_powers(facts),
    threshold=Threshold(
        usual=WEAKEST_CDBM / 100,
        low=-40.0,
        high=0.0,
        unit=gettext_lazy("dBm at the ONU; usually less than -27"),
        is_low_wrong=True,
    ),
    default_rule=DefaultRule(
        gettext_lazy("Weak light"), Severity.WARNING, hold_minutes=15, clear_minutes=30, clear_margin=1.0
    ),
)
