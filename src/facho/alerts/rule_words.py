"""What a rule of each kind looks for, in the words of whoever sets it up: what it finds, and in which unit."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.alerts.models import Kind

LOOKS_FOR: dict[Kind, Promise] = {
    Kind.QUOTA_VIOLATED: _("OLTs that got fewer runs in an hour than they should, until an hour goes well."),
    Kind.QUOTA_AT_RISK: _("Task types that will miss their quota of this hour. OLTs that are silent are left out."),
    Kind.NODE_SUSPENDED: _("Nodes that failed too often, unless their OLT does not answer at all."),
    Kind.OLT_UNREACHABLE: _("OLTs that do not answer, unless the poller itself lost its network."),
    Kind.NETWORK_LOST: _("Most OLTs fell silent at once: the poller's own network."),
    Kind.POLLERS_SATURATED: _("Pollers that are nearly always busy, by poller group."),
    Kind.QUEUE_OVERLOAD: _("Nodes that wait for longer than their interval."),
    Kind.NO_LEADER: _("Nothing is polled because no scheduler leads. Seen by the web and by schedulers that wait."),
    Kind.MESSAGES_NOT_TAKEN: _("No worker of a group is heard of, or none takes what was claimed."),
    Kind.PON_OUTAGE: _("PON ports and cards that lost many ONUs at once."),
    Kind.WEAK_LIGHT: _("ONUs that receive too little light while they are online and in no outage."),
    Kind.POWER_STEP: _("ONUs that receive much less than within the last day."),
    Kind.ONU_WAITING: _("ONUs that an OLT sees and has not been told to serve."),
}

THRESHOLDS: dict[Kind, Promise] = {
    Kind.POLLERS_SATURATED: _("per cent of the pollers' time in the last minute; usually more than 75"),
    Kind.QUEUE_OVERLOAD: _("nodes that are late by more than their interval; usually more than 0"),
    Kind.WEAK_LIGHT: _("dBm at the ONU; usually less than -27"),
    Kind.POWER_STEP: _("dB of light lost; usually more than 3, and never less"),
}
