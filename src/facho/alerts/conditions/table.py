"""Which condition is behind each kind of rule, and the threshold that a rule has unless it says otherwise."""

from facho.alerts.conditions.finding import Condition
from facho.alerts.conditions.light import find_power_steps, find_weak_light
from facho.alerts.conditions.nodes import find_suspended_nodes
from facho.alerts.conditions.outages import find_lost_network, find_pon_outages, find_unreachable_olts
from facho.alerts.conditions.polling import (
    find_missing_leader,
    find_overload,
    find_saturated_pollers,
    find_untaken_messages,
)
from facho.alerts.conditions.quotas import find_quotas_at_risk, find_violations
from facho.alerts.conditions.waiting_onus import find_waiting_onus
from facho.alerts.models import Kind
from facho.polling.domain.light_bands import WEAKEST_CDBM
from facho.polling.domain.onu_events import POWER_STEP_CDBM
from facho.polling.domain.poller_load import SATURATED_ABOVE

CONDITIONS = {
    Kind.QUOTA_VIOLATED: Condition(find_violations),
    Kind.QUOTA_AT_RISK: Condition(find_quotas_at_risk),
    Kind.NODE_SUSPENDED: Condition(find_suspended_nodes),
    Kind.OLT_UNREACHABLE: Condition(find_unreachable_olts),
    Kind.NETWORK_LOST: Condition(find_lost_network),
    Kind.POLLERS_SATURATED: Condition(find_saturated_pollers, SATURATED_ABOVE),
    Kind.QUEUE_OVERLOAD: Condition(find_overload, 0),
    Kind.NO_LEADER: Condition(find_missing_leader),
    Kind.MESSAGES_NOT_TAKEN: Condition(find_untaken_messages),
    Kind.PON_OUTAGE: Condition(find_pon_outages),
    Kind.WEAK_LIGHT: Condition(find_weak_light, WEAKEST_CDBM / 100, is_low_wrong=True),
    Kind.POWER_STEP: Condition(find_power_steps, POWER_STEP_CDBM / 100),
    Kind.ONU_WAITING: Condition(find_waiting_onus),
}
