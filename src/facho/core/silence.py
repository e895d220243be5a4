"""Turns OLTs that do not answer into outages: joins who is polled, and how often, with what is known of their ONUs."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from statistics import median

from django.db import transaction
from django.db.models import Count, Min

from facho.hosts.models import Olt, Reachability
from facho.hosts.pauses import is_paused
from facho.onus.models import Onu, RunState
from facho.onus.outages import load_silences, save_outages
from facho.polling.domain.outage import Outage
from facho.polling.domain.outages import Cycle
from facho.polling.domain.silent_olts import OltVoice, judge_silence
from facho.snmp_jobs.models import WorkflowNode


@transaction.atomic
def follow_silence(now: datetime) -> None:
    """Open and end the outages of silent OLTs, and of the poller's own network when most of them are silent at once."""
    known = load_silences(now=now)
    is_quiet = Olt.objects.filter(enabled=True, reachability=Reachability.DOWN).exists()
    if not is_quiet and not any(outage.is_open for outage in known):
        return
    intervals = _load_intervals(now)
    voices = _load_voices(intervals, known, now)
    # Half of the OLTs are asked at least this often.
    cycle = Cycle(now, timedelta(seconds=median(intervals.values()) if intervals else 0))
    save_outages(known, judge_silence(voices, known, cycle))


def _load_intervals(now: datetime) -> dict[int, int]:
    """Return the OLTs that are polled, and how many seconds lie between two questions to each."""
    masters = WorkflowNode.objects.filter(
        ~is_paused("workflow__olt_id", now), enabled=True, is_chain_node=False, workflow__olt__enabled=True
    )
    return dict(masters.order_by().values_list("workflow__olt_id").annotate(Min("interval_seconds")))


def _load_voices(olt_ids: Iterable[int], known: Iterable[Outage], now: datetime) -> list[OltVoice]:
    rows = list(Olt.objects.filter(id__in=olt_ids).order_by("id").values_list("id", "reachability", "last_answer_at"))
    told = {outage.place.olt_id for outage in known if outage.is_open}
    new = [olt_id for olt_id, state, _ in rows if state == Reachability.DOWN and olt_id not in told]
    online = _load_online(new)
    return [
        OltVoice(olt_id, now if state == Reachability.DOWN else None, answered_at, online.get(olt_id, 0))
        for olt_id, state, answered_at in rows
    ]


def _load_online(olt_ids: list[int]) -> dict[int, int]:
    """Count the ONUs that were online when these OLTs were last heard."""
    if not olt_ids:
        return {}
    onus = Onu.objects.filter(olt_id__in=olt_ids, is_present=True, reading__run_state=RunState.ONLINE)
    return dict(onus.order_by().values_list("olt_id").annotate(Count("id")))
