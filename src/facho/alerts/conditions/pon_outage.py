"""PON ports and cards that lost many ONUs at once."""

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Facts, Finding, Findings, KnownFacts, plain
from facho.alerts.models import Severity
from facho.infrastructure.statements import Select
from facho.onus.models import Outage
from facho.onus.words import OutageCauses, OutageScopes

# A port's own row ends when its card is out: the larger outage reports it while it lasts.
_GOES_ON = Q(ended_at__isnull=True) | Q(part_of__isnull=False, part_of__ended_at__isnull=True)

# A disabled OLT is not polled, so its outages would never end.
_IS_WATCHED = Q(olt__isnull=True) | Q(olt__enabled=True)


_ANY = Select(lambda: Outage.objects.filter(_GOES_ON).order_by().values_list("id")[:1])


def find_outages(*scopes: OutageScopes) -> Findings:
    """Find current outages of these scopes; one query, and one that says whether there are any at all."""
    if not _ANY.rows():
        return {}
    outages = Outage.objects.filter(_GOES_ON, _IS_WATCHED, scope__in=scopes).select_related("olt").order_by("id")
    columns = ("scope", "frame", "slot", "port", "cause", "started_at", "affected", "affected_olts", "ended_at")
    times = ("resumed_at", "breaks")
    findings = {}
    for outage in outages.only(*columns, *times, "part_of_id", "acknowledged_at", "olt__name"):
        facts: Facts = {
            "outage_id": outage.id,
            "scope": outage.scope,
            "cause": outage.cause,
            "affected": outage.affected,
            "affected_olts": outage.affected_olts,
        }
        if outage.breaks:
            facts |= {"started_at": outage.started_at.isoformat(), "breaks": outage.breaks}
        is_port = outage.scope in (OutageScopes.PON, OutageScopes.CARD)
        # A place has one open outage, and one that comes back soon is the same.
        findings[f"{outage.scope} {outage.olt_id or ''} {outage.place}".rstrip()] = Finding(
            facts | ({"olt": plain(outage.olt.name), "place": outage.place} if outage.olt else {}),
            olt_id=outage.olt_id,
            is_placed=is_port,
            # An alert that begins at the return is about the time since then; its sentence has the earlier times.
            since=outage.resumed_at,
            is_known=outage.part_of_id is None,
            is_acknowledged=outage.acknowledged_at is not None,
        )
    return findings


def sentence(facts: KnownFacts) -> str:
    names = {
        "scope": dict(OutageScopes.choices).get(facts["scope"], "?"),
        "cause": dict(OutageCauses.choices).get(facts["cause"], "?"),
    }
    text = _("%(olt)s, %(scope)s %(place)s: %(affected)s ONUs out, probably: %(cause)s")
    return text % KnownFacts({**facts, **names})


PON_OUTAGE = Condition(
    code="pon_outage",
    label=gettext_lazy("PON outage"),
    looks_for=gettext_lazy("PON ports and cards that lost many ONUs at once."),
    find=lambda question: find_outages(OutageScopes.PON, OutageScopes.CARD),
    sentence=sentence,
    default_rule=DefaultRule(gettext_lazy("Port or card is out"), Severity.CRITICAL, clear_minutes=5),
)
