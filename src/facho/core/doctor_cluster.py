"""Examines what several machines make up together: workers with their slots, groups, queues, versions, clocks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count
from django.utils.translation import gettext as _
from redis import Redis, RedisError

from facho.core.findings import Finding, error, ok, warning
from facho.core.processes.report import VERSION
from facho.executions.celery_executor import queues_of
from facho.executions.models import ProductProcess
from facho.executions.processes import load_live_processes, load_still_workers
from facho.executions.untaken import load_longest_waits
from facho.hosts.models import Olt
from facho.polling.domain.clock import CLOCK_TOLERANCE
from facho.polling.domain.poller_groups import DEFAULT_GROUP
from facho.zabbix_pollers.models import Poller

REDIS_SECONDS = 3.0
# By then a claim has been handed out again, and every worker has looked for it.
LONG_WAIT = timedelta(seconds=30)
# Beat sends a message a second: nobody has read them for minutes.
MANY_BEATS = 300
BEAT_QUEUE = "zabbix_scheduler"


def examine_cluster(now: datetime) -> Iterator[Finding]:
    """Look at processes, groups and queues; creates and changes nothing."""
    processes = load_live_processes()
    pollers = dict(Poller.objects.order_by("group").values_list("group").annotate(n=Count("id")))
    yield from _slots(processes, pollers)
    yield from _still()
    yield from _groups(pollers)
    yield _versions(processes)
    yield _clocks(processes)
    yield from _queues(list(pollers) or [DEFAULT_GROUP], now)


def _slots(processes: Sequence[ProductProcess], pollers: Mapping[str, int]) -> Iterator[Finding]:
    """Compare, group by group, what may run at once with what could be carried out at once."""
    slots = Counter[str]()
    for process in processes:
        for group in process.groups:
            slots[group] += process.slots
    for group, count in pollers.items():
        name, told = _named("workers", group), {"slots": slots[group], "pollers": count}
        if not slots[group]:
            command = f"celery -A facho.core worker -Q {','.join(queues_of(group))} -c {count + 1}"
            yield error(name, _("No worker is heard of, so nothing is polled: start `%s`.") % command)
        elif slots[group] < count:
            text = _("%(slots)s slots for %(pollers)s pollers: start more workers, or give them more slots (-c).")
            yield error(name, text % told)
        else:
            yield ok(name, _("%(slots)s slots for %(pollers)s pollers") % told)


def _still() -> Iterator[Finding]:
    """Find workers that say that they live and complete nothing, while others of their groups do."""
    for worker in load_still_workers():
        text = _("%(worker)s completes nothing, though there is work in its group: restart it.")
        yield error("consumption", text % {"worker": worker.owner})


def _groups(pollers: Mapping[str, int]) -> Iterator[Finding]:
    """Compare the groups that pollers have with those of the settings and of the OLTs."""
    known = {group: count for group, count in pollers.items() if group != DEFAULT_GROUP}
    if pollers and known != settings.FACHO_POLLER_GROUPS:
        here, there = (",".join(f"{g}:{n}" for g, n in each.items()) for each in (settings.FACHO_POLLER_GROUPS, known))
        text = _('FACHO_POLLER_GROUPS is "%(here)s" here and "%(there)s" for the leader: set it alike everywhere.')
        yield warning("groups", text % {"here": here, "there": there})
    if not known:
        return
    lost = Olt.objects.exclude(poller_group__in=pollers).order_by("poller_group")
    for group, count in lost.values_list("poller_group").annotate(n=Count("id")):
        text = _("%(count)s OLTs name the poller group %(group)s, which has no pollers: add it to FACHO_POLLER_GROUPS.")
        yield error("groups", text % {"count": count, "group": group})


def _versions(processes: Sequence[ProductProcess]) -> Finding:
    others = [process for process in processes if process.version != VERSION]
    if others:
        told = ", ".join(f"{process.owner} {process.version}" for process in others)
        text = _("This is %(version)s, others run at the same time: %(others)s. Finish the upgrade.")
        return warning("versions", text % {"version": VERSION, "others": told})
    return ok("versions", _("%(version)s, in %(count)s processes") % {"version": VERSION, "count": len(processes)})


def _clocks(processes: Sequence[ProductProcess]) -> Finding:
    """Compare every process's clock with the database's, which all of them have in common."""
    ahead = {process.owner: process.clock_ahead.total_seconds() for process in processes}
    wrong = {owner: seconds for owner, seconds in ahead.items() if abs(seconds) > CLOCK_TOLERANCE.total_seconds()}
    if wrong:
        told = ", ".join(f"{owner} {seconds:+.0f} s" for owner, seconds in wrong.items())
        text = _("These clocks differ from the database's: %s. Set the clock of every machine by NTP.")
        return error("clocks", text % told)
    most = max(map(abs, ahead.values()), default=0.0)
    return ok("clocks", _("differ by at most %s ms") % round(most * 1000))


def _queues(groups: Sequence[str], now: datetime) -> Iterator[Finding]:
    """Tell how many messages nobody has read yet, and how long the oldest claim has been waiting for a worker."""
    lengths = _lengths([name for group in groups for name in queues_of(group)] + [BEAT_QUEUE])
    waits = load_longest_waits(now)
    for group in groups:
        age = waits.get(group, timedelta(0))
        told = ", ".join(f"{name} {lengths.get(name, '?')}" for name in queues_of(group))
        words = {"queues": told, "seconds": int(age.total_seconds())}
        if age > LONG_WAIT:
            text = _("%(queues)s; the oldest has waited for %(seconds)s s: restart the workers of this group.")
            yield error(_named("queues", group), text % words)
        else:
            yield ok(_named("queues", group), _("%(queues)s; the oldest has waited for %(seconds)s s") % words)
    if lengths.get(BEAT_QUEUE, 0) > MANY_BEATS:
        text = _("%s messages of beat lie unread: start a worker on the queue zabbix_scheduler, or stop beat.")
        yield warning("beat", text % lengths[BEAT_QUEUE])


def _lengths(names: Sequence[str]) -> dict[str, int]:
    """Count messages; that Redis does not answer is told as a finding of its own."""
    try:
        with Redis.from_url(settings.REDIS_URL, socket_timeout=REDIS_SECONDS) as redis:
            return {name: int(redis.llen(name)) for name in names}
    except RedisError:
        return {}


def _named(subject: str, group: str) -> str:
    return f"{subject}.{group}" if group else subject
