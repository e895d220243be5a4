"""ONUs that an OLT sees and has not been told to serve."""

from facho.alerts.conditions.finding import Finding, Findings, Question, olt_place, plain
from facho.hosts.models import WaitingOnu


def find_waiting_onus(question: Question) -> Findings:
    """Find the ONUs that wait to be authorised."""
    waiting = WaitingOnu.objects.filter(olt__enabled=True).select_related("olt").order_by()
    columns = ("frame", "slot", "port", "serial", "model", "first_seen_at", "olt__name")
    return {f"waiting {row.olt_id} {row.pon_port} {plain(row.serial)}": _finding(row) for row in waiting.only(*columns)}


def _finding(row: WaitingOnu) -> Finding:
    facts = {"olt": plain(row.olt.name), "place": row.pon_port, "onu": plain(row.serial), "model": plain(row.model)}
    return Finding(facts, olt_id=row.olt_id, place=olt_place(row.olt_id, row.pon_port), since=row.first_seen_at)
