"""What a cause means for whoever has to repair it, and what the neighbours of an ONU say about its fault."""

from collections.abc import Mapping
from types import MappingProxyType

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.onus.port_view import PortCounts
from facho.onus.words import DownCauses, ShownState

_LOST_POWER = gettext_lazy("It said that its electricity was going: ask the customer before anyone drives there.")
_LOST_LIGHT = gettext_lazy("Its light is gone: look at fibre, connectors and bends.")
_NOT_ALLOWED = gettext_lazy("The OLT does not let it in: look at its registration.")
HINTS: Mapping[str, Promise] = MappingProxyType(
    {
        DownCauses.DYING_GASP: _LOST_POWER,
        DownCauses.POWER_OFF: _LOST_POWER,
        DownCauses.LOS: _LOST_LIGHT,
        DownCauses.LOF: _LOST_LIGHT,
        DownCauses.SIGNAL_FAIL: _LOST_LIGHT,
        DownCauses.LOSS_OF_ACK: _LOST_LIGHT,
        DownCauses.LOSS_OF_PLOAM: _LOST_LIGHT,
        DownCauses.LOSS_OF_KEY: _NOT_ALLOWED,
        DownCauses.AUTH_FAILED: _NOT_ALLOWED,
        DownCauses.DEACTIVATED: gettext_lazy("Somebody switched it off at the OLT."),
        DownCauses.RESET: gettext_lazy("It was started again."),
        DownCauses.ROGUE: gettext_lazy("It sends when it must not, and disturbs its whole port."),
    }
)
# From this share of the others on, the port is the fault and not the customer.
MANY_OUT = 0.3


def tell_neighbours(state: ShownState, port: PortCounts | None) -> str:
    """Tell a single fault from a cut by the others of the port; nothing to tell unless this one is out."""
    if port is None:
        return _("This OLT does not tell ports, so nobody knows who shares its fibre.")
    if state is not ShownState.OFFLINE:
        return ""
    others, others_out = port.total - 1, port.offline - 1
    if others <= 0:
        return _("It is the only one of its port, so the port tells nothing.")
    if others_out <= 0:
        return _("All others of the port carry service: the fault is between the splitter and this customer.")
    if others_out / others >= MANY_OUT:
        return _("Many of the port are out: look at the port and its fibre first.")
    return _("Most others of the port carry service: probably a fault of single customers.")
