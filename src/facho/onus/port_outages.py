"""Follows the outages of an OLT's ports and cards from poll to poll."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from facho.onus.known_onus import PresentOnu, load_present
from facho.onus.models import OltMemory
from facho.onus.outages import load_port_outages, save_outages
from facho.polling.domain.onu_events import OnuStatus
from facho.polling.domain.outage import Outage
from facho.polling.domain.outages import Cycle, Member, judge_ports

# What was seen longer ago than this is no part of what is seen now, however seldom states are read.
LONGEST_CYCLE = timedelta(hours=1)
# Two reads of states in one moment are not the same one.
SHORTEST_CYCLE = timedelta(seconds=1)


def follow_outages(olt_id: int, members: Sequence[Member], *, has_changes: bool, now: datetime) -> None:
    """Open, extend and end outages; without an outage and without a change there is nothing to judge."""
    known = load_port_outages(olt_id, now=now)
    if known or has_changes:
        _judge(olt_id, members, known, now)


def end_abandoned_outages(olt_id: int, *, now: datetime) -> None:
    """Judge again what goes on after ONUs have left their places: nobody may be left of whom a poll could tell."""
    known = load_port_outages(olt_id, now=now)
    if any(outage.is_open for outage in known):
        members = [member_of(onu, onu.status) for onu in load_present(olt_id, ()).values()]
        _judge(olt_id, members, known, now)


def member_of(onu: PresentOnu, status: OnuStatus) -> Member:
    """Return an ONU as the judgement of outages sees it."""
    state = (status.state, status.state_since, status.cause)
    return Member(onu.id, onu.place, *state, onu.outage_id, onu.is_port_known)


def _judge(olt_id: int, members: Sequence[Member], known: Sequence[Outage], now: datetime) -> None:
    save_outages(known, judge_ports(olt_id, members, known, Cycle(now, _cycle_length(olt_id, now))))


def _cycle_length(olt_id: int, now: datetime) -> timedelta:
    """Return the time since states were last read; the rules take what was seen then for the same cycle."""
    states_at = OltMemory.objects.filter(olt_id=olt_id).values_list("states_at", flat=True).first()
    passed = now - states_at if states_at else LONGEST_CYCLE
    # Back in time only goes a clock that was set.
    return min(max(passed, SHORTEST_CYCLE), LONGEST_CYCLE) if passed >= timedelta(0) else LONGEST_CYCLE
