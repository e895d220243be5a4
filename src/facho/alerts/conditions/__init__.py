"""Every condition that rules can look for: one file each. A new one is imported and listed here."""

from datetime import datetime

from facho.alerts.condition import Condition, Facts, KnownFacts
from facho.alerts.conditions.branch_decay import BRANCH_DECAY
from facho.alerts.conditions.branch_step import BRANCH_STEP
from facho.alerts.conditions.light_decay import LIGHT_DECAY
from facho.alerts.conditions.messages_not_taken import MESSAGES_NOT_TAKEN
from facho.alerts.conditions.network_lost import NETWORK_LOST
from facho.alerts.conditions.no_leader import NO_LEADER
from facho.alerts.conditions.node_suspended import NODE_SUSPENDED
from facho.alerts.conditions.olt_unreachable import OLT_UNREACHABLE
from facho.alerts.conditions.onu_waiting import ONU_WAITING
from facho.alerts.conditions.pollers_saturated import POLLERS_SATURATED
from facho.alerts.conditions.pon_outage import PON_OUTAGE
from facho.alerts.conditions.power_step import POWER_STEP
from facho.alerts.conditions.queue_overload import QUEUE_OVERLOAD
from facho.alerts.conditions.quota_at_risk import QUOTA_AT_RISK
from facho.alerts.conditions.quota_violated import QUOTA_VIOLATED
from facho.alerts.conditions.weak_light import WEAK_LIGHT
from facho.onus.outages import describe_breaks
from facho.polling.domain.outages import OutageBreak

# By code, in the order in which forms and the API offer them.
CONDITIONS: dict[str, Condition] = {
    condition.code: condition
    for condition in (
        QUOTA_VIOLATED,
        QUOTA_AT_RISK,
        NODE_SUSPENDED,
        OLT_UNREACHABLE,
        NETWORK_LOST,
        POLLERS_SATURATED,
        QUEUE_OVERLOAD,
        NO_LEADER,
        MESSAGES_NOT_TAKEN,
        PON_OUTAGE,
        WEAK_LIGHT,
        POWER_STEP,
        BRANCH_STEP,
        BRANCH_DECAY,
        LIGHT_DECAY,
        ONU_WAITING,
    )
}
CHOICES = [(condition.code, condition.label) for condition in CONDITIONS.values()]


def sentence_of(code: str, facts: Facts) -> str:
    """Write what is wrong in one line, in the active language; of a recurring outage, when it was over in between."""
    sentence = CONDITIONS[code].sentence(KnownFacts(facts))
    breaks = [OutageBreak(*map(datetime.fromisoformat, pair)) for pair in facts.get("breaks", ())]
    if not breaks:
        return sentence
    return f"{sentence} · {describe_breaks(breaks, started_at=datetime.fromisoformat(facts['started_at']))}"
