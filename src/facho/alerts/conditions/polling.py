"""Polling itself: pollers that are too few, nodes that are late, nobody who leads, nobody who carries runs out."""

from collections import defaultdict
from datetime import timedelta

from facho.alerts.conditions.finding import Finding, Findings, Question
from facho.executions.processes import load_live_processes
from facho.executions.untaken import load_longest_waits
from facho.polling.domain.node_queue import OVERLOAD_LENGTH
from facho.zabbix_pollers.activity import load_busy_percentages
from facho.zabbix_pollers.models import Poller
from facho.zabbix_pollers.queue_read_model import load_candidates

# By then a claim was handed out a second time, and every worker has looked for it.
LONG_WAIT = timedelta(seconds=60)


def find_saturated_pollers(question: Question) -> Findings:
    """Find how busy each group of pollers was over the last minute, in per cent."""
    busy, groups = load_busy_percentages(question.now), defaultdict(list)
    for poller_id, group in Poller.objects.order_by().values_list("poller_id", "group"):
        groups[group].append(busy.get(poller_id, 0.0))
    return {
        f"pollers {group}".rstrip(): Finding(
            {"group": group, "pollers": len(shares), "busy": (share := round(sum(shares) / len(shares), 1))},
            value=share,
        )
        for group, shares in groups.items()
    }


def find_overload(question: Question) -> Findings:
    """Find how many due nodes are late by more than their interval, or wait if they are too many anyway.

    Who waits for an OLT that does not answer is late by that, which has an alert of its own.
    """
    due = load_candidates(question.now).due
    late = sum(node.is_delayed(question.now) and not node.is_olt_silent for node in due)
    value = len(due) if len(due) > OVERLOAD_LENGTH else late
    return {"queue": Finding({"waiting": len(due), "late": late}, value=value)}


def find_missing_leader(question: Question) -> Findings:
    """Find whether whoever looks has seen that nobody leads."""
    since = question.leaderless_since
    return {} if since is None else {"leader": Finding(since=since)}


def find_untaken_messages(question: Question) -> Findings:
    """Find groups of which no worker is heard, or whose claims wait too long; where no process speaks none needs to."""
    waits, processes = load_longest_waits(question.now), load_live_processes()
    served = {group for process in processes for group in process.groups}
    unserved = set(Poller.objects.order_by().values_list("group", flat=True)) - served if processes else set()
    stuck = {group for group, wait in waits.items() if wait > LONG_WAIT}
    return {
        f"messages {group}".rstrip(): Finding(
            {
                "group": group,
                "has_worker": group not in unserved,
                "seconds": int(waits.get(group, timedelta(0)).total_seconds()),
            }
        )
        for group in unserved | stuck
    }
