"""Says in sentences why a node waits, or when it runs."""

from collections.abc import Callable
from datetime import datetime

from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.executions.models import Origin
from facho.polling.domain.first_discovery import FirstDiscovery
from facho.polling.domain.planning import WaitReason
from facho.zabbix_pollers.activity import Holder, our_shards
from facho.zabbix_pollers.explain import Explanation, QueuePlace, Situation


def sentences(explanation: Explanation) -> list[str]:
    """Tell where the node stands, the most important first; times are local."""
    situation = explanation.situation
    if situation in _PLAIN:
        words = {"since": _time(explanation.since), "at": _time(explanation.until)}
        said = [str(_PLAIN[situation]) % words]
    else:
        said = _SAY[situation](explanation)
    if situation in (Situation.GAVE_WAY, Situation.QUEUED):
        said += _waits(explanation)
    if situation in (Situation.PAUSED, Situation.OUTSIDE_HOURS, Situation.NOT_DUE) and explanation.runs_at:
        said.append(_("Next run: %(at)s.") % {"at": _time(explanation.runs_at)})
    if not explanation.is_polling and explanation.situation in _WOULD_START:
        said.append(_("Polling is stopped: nothing starts until the engine runs."))
    return said


def describe_holder(holder: Holder) -> str:
    """Say who holds an OLT and since when."""
    words = {"name": holder.name, "since": _time(holder.since), "poller": holder.poller_id}
    if holder.node_id is None and holder.origin == Origin.PROBE:
        return _("a probe holds it since %(since)s") % words
    if holder.node_id is None:
        return _('a question by hand ("%(name)s") holds it since %(since)s') % words
    if holder.poller_id is None:
        return _("%(name)s holds it since %(since)s") % words
    return _("%(name)s holds it since %(since)s, on poller #%(poller)s") % words


def _running(explanation: Explanation) -> list[str]:
    holder = explanation.holder
    words = {"since": _time(explanation.since), "poller": holder.poller_id if holder else "-"}
    said = [_("It is running since %(since)s, on poller #%(poller)s.") % words]
    if holder and holder.node_id != holder.master_node_id:
        said.append(_("The member of the chain that runs now: %(name)s.") % {"name": holder.name})
    return said


def _suspended(explanation: Explanation) -> list[str]:
    words = {"since": _time(explanation.since), "reason": explanation.reason, "probe": _time(explanation.until)}
    said = [_("It is suspended since %(since)s, after failing too often (%(reason)s).") % words]
    if explanation.until:
        return [*said, _("Its OLT is asked next at %(probe)s; if it answers, the node continues.") % words]
    return [*said, _("A person has to resume it.")]


def _chained(explanation: Explanation) -> list[str]:
    if explanation.master is None:
        return []
    words = {"id": explanation.master.node_id, "name": explanation.master.name}
    with_master = _("It runs after its master, node %(id)s (%(name)s). Of the master:") % words
    return [with_master, *sentences(explanation.master)]


def _paused(explanation: Explanation) -> list[str]:
    words = {"until": _time(explanation.until), "note": explanation.reason}
    if explanation.reason:
        return [_("It is paused until %(until)s: %(note)s.") % words]
    return [_("It is paused until %(until)s.") % words]


def _awaits_discovery(explanation: Explanation) -> list[str]:
    """Say that the discovery comes first, where that stands, and what to do when it does not come by itself."""
    said = [_("It reads ONUs and waits for the first complete discovery of its OLT; it runs right after it.")]
    discovery = explanation.discovery
    if discovery is None:
        return [*said, _("This OLT has no discovery: put a discovery job on it.")]
    words = {"id": discovery.node_id, "name": discovery.name}
    said += [_("The discovery is node %(id)s (%(name)s):") % words, *sentences(discovery)]
    if explanation.reason == FirstDiscovery.DISABLED:
        said.append(_("Enable the discovery, or no ONU of this OLT is read."))
    if explanation.reason == FirstDiscovery.SUSPENDED:
        said.append(_("Find out why the discovery fails: until it ends well, no ONU of this OLT is read."))
    return said


def _waits(explanation: Explanation) -> list[str]:
    """Say what it waits for, and at which place."""
    if explanation.place is None:
        return []
    said = [_for_what(explanation.place, explanation.holder)]
    place = {"number": explanation.place.number, "size": explanation.place.size, "on_olt": explanation.place.on_olt}
    return [*said, _("Place %(number)s of %(size)s in the queue, %(on_olt)s on its OLT.") % place]


def _for_what(place: QueuePlace, holder: Holder | None) -> str:
    if place.reason is WaitReason.OLT_BUSY and holder:
        return _("Its OLT is busy: %(holder)s.") % {"holder": describe_holder(holder)}
    is_alone = len(our_shards()) == 1
    return {
        None: _("Nothing keeps it: it starts at once."),
        WaitReason.OLT_BUSY: _("Another node of its OLT goes first."),
        WaitReason.NO_POLLER: _("No poller is free.") if is_alone else _("No poller of its engine is free."),
        WaitReason.FIRST_DISCOVERY: _("The first discovery of its OLT comes first."),
        WaitReason.OLT_UNREACHABLE: _("Its OLT does not answer; another node is trying whether it is back."),
    }[place.reason]


def _time(moment: datetime | None) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M:%S}" if moment else "-"


_PLAIN: dict[Situation, Promise] = {
    Situation.OLT_DISABLED: gettext_lazy("Its OLT is disabled."),
    Situation.DISABLED: gettext_lazy("It is disabled."),
    Situation.RETRY: gettext_lazy("Its last try failed; it is tried again at %(at)s."),
    Situation.GAVE_WAY: gettext_lazy("It gave way to others and continues as soon as its OLT is free."),
    Situation.QUEUED: gettext_lazy("It is due since %(since)s and waits."),
    Situation.OUTSIDE_HOURS: gettext_lazy("It is outside the hours in which it may run; they begin at %(at)s."),
    Situation.NOT_DUE: gettext_lazy("It is not due yet."),
    Situation.NOT_SCHEDULED: gettext_lazy("It has no next run: enable it again to give it one."),
}
_SAY: dict[Situation, Callable[[Explanation], list[str]]] = {
    Situation.RUNNING: _running,
    Situation.SUSPENDED: _suspended,
    Situation.CHAINED: _chained,
    Situation.PAUSED: _paused,
    Situation.AWAITS_DISCOVERY: _awaits_discovery,
}
_WOULD_START = frozenset(
    {Situation.RETRY, Situation.GAVE_WAY, Situation.QUEUED, Situation.OUTSIDE_HOURS, Situation.NOT_DUE}
)
