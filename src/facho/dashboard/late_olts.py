"""Which OLTs are behind: a node of theirs has waited for longer than its whole interval."""

from datetime import datetime, timedelta

from facho.snmp_jobs.due import startable_nodes


def load_late_olts(now: datetime) -> frozenset[int]:
    """Load the OLTs that have a node which is delayed as the queue has it; one query over what is due."""
    due = startable_nodes(now).filter(next_run_at__lt=now).order_by()
    rows = due.values_list("workflow__olt_id", "next_run_at", "interval_seconds")
    return frozenset(olt_id for olt_id, due_at, seconds in rows if due_at and now - due_at > timedelta(seconds=seconds))
