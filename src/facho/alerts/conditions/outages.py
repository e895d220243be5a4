"""What is out: PON ports and cards, OLTs that do not answer, the poller's own network."""

from django.db.models import Q

from facho.alerts.conditions.finding import Finding, Findings, Question, olt_place, plain
from facho.onus.models import Outage
from facho.onus.words import OutageScopes

# A part of a larger outage is told with that one, as long as it lasts; a port's own row ends when its card is out.
_GOES_ON = Q(ended_at__isnull=True) | Q(part_of__isnull=False, part_of__ended_at__isnull=True)

# Nobody asks an OLT that is disabled, so its outages would never end.
_IS_WATCHED = Q(olt__isnull=True) | Q(olt__enabled=True)


def find_pon_outages(question: Question) -> Findings:
    """Find ports and cards that lost many ONUs at once."""
    return _find(OutageScopes.PON, OutageScopes.CARD)


def find_unreachable_olts(question: Question) -> Findings:
    """Find OLTs that do not answer."""
    return _find(OutageScopes.OLT)


def find_lost_network(question: Question) -> Findings:
    """Find whether most OLTs fell silent at once."""
    return _find(OutageScopes.NETWORK)


def _find(*scopes: OutageScopes) -> Findings:
    outages = Outage.objects.filter(_GOES_ON, _IS_WATCHED, scope__in=scopes).select_related("olt").order_by("id")
    columns = ("scope", "frame", "slot", "port", "cause", "started_at", "affected", "affected_olts", "ended_at")
    only = outages.only(*columns, "part_of_id", "acknowledged_at", "olt__name")
    return {_subject(outage): _finding(outage) for outage in only}


def _subject(outage: Outage) -> str:
    # A place has one open outage, and one that comes back soon is the same.
    return f"{outage.scope} {outage.olt_id or ''} {outage.place}".rstrip()


def _finding(outage: Outage) -> Finding:
    is_port = outage.scope in (OutageScopes.PON, OutageScopes.CARD)
    facts = {
        "outage_id": outage.id,
        "scope": outage.scope,
        "cause": outage.cause,
        "affected": outage.affected,
        "affected_olts": outage.affected_olts,
    }
    return Finding(
        facts | ({"olt": plain(outage.olt.name), "place": outage.place} if outage.olt else {}),
        olt_id=outage.olt_id,
        place=olt_place(outage.olt_id) if outage.olt_id and is_port else (),
        since=outage.started_at,
        is_known=outage.part_of_id is None,
        is_acknowledged=outage.acknowledged_at is not None,
    )
