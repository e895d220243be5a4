"""What the rules' words of ONUs, events and outages are called when people read them."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.polling.domain import onu_events, onu_state, outages
from facho.polling.vendors import vocabulary


class RunStateChoice(models.TextChoices):
    """The state the OLT reports; unknown if it could not be read."""

    UNKNOWN = onu_state.RunState.UNKNOWN.value, _("unknown")
    ONLINE = onu_state.RunState.ONLINE.value, _("online")
    OFFLINE = onu_state.RunState.OFFLINE.value, _("offline")


class ShownState(models.TextChoices):
    ONLINE = onu_state.RunState.ONLINE.value, _("online")
    OFFLINE = onu_state.RunState.OFFLINE.value, _("offline")
    UNKNOWN = onu_state.RunState.UNKNOWN.value, _("unknown")
    ABSENT = "absent", _("absent")


class AdminStates(models.TextChoices):
    ENABLED = vocabulary.AdminState.ENABLED.value, _("enabled")
    DISABLED = vocabulary.AdminState.DISABLED.value, _("disabled")


class DownCauses(models.TextChoices):
    LOS = onu_state.DownCause.LOS.value, _("loss of signal")
    LOF = onu_state.DownCause.LOF.value, _("loss of frame")
    SIGNAL_FAIL = onu_state.DownCause.SIGNAL_FAIL.value, _("signal fail")
    LOSS_OF_ACK = onu_state.DownCause.LOSS_OF_ACK.value, _("loss of acknowledgement")
    LOSS_OF_PLOAM = onu_state.DownCause.LOSS_OF_PLOAM.value, _("loss of PLOAM")
    LOSS_OF_KEY = onu_state.DownCause.LOSS_OF_KEY.value, _("loss of key")
    DYING_GASP = onu_state.DownCause.DYING_GASP.value, _("dying gasp")
    POWER_OFF = onu_state.DownCause.POWER_OFF.value, _("power off")
    DEACTIVATED = onu_state.DownCause.DEACTIVATED.value, _("deactivated")
    RESET = onu_state.DownCause.RESET.value, _("reset")
    AUTH_FAILED = onu_state.DownCause.AUTH_FAILED.value, _("authentication failed")
    ROGUE = onu_state.DownCause.ROGUE.value, _("rogue ONU")
    OTHER = onu_state.DownCause.OTHER.value, _("another cause")
    UNKNOWN = onu_state.DownCause.UNKNOWN.value, _("unknown cause")


class EventKinds(models.TextChoices):
    NEW = onu_events.EventKind.NEW.value, _("new")
    MOVED = onu_events.EventKind.MOVED.value, _("moved")
    GONE = onu_events.EventKind.GONE.value, _("gone")
    RETURNED = onu_events.EventKind.RETURNED.value, _("returned")
    DUPLICATE_SERIAL = onu_events.EventKind.DUPLICATE_SERIAL.value, _("duplicate serial")
    DUPLICATE_MAC = onu_events.EventKind.DUPLICATE_MAC.value, _("duplicate hardware address")
    CALM = onu_events.EventKind.CALM.value, _("stable again")
    UP = onu_events.EventKind.UP.value, _("went up")
    DOWN = onu_events.EventKind.DOWN.value, _("went down")
    FLAPPING = onu_events.EventKind.FLAPPING.value, _("flapping")
    POWER_DROP = onu_events.EventKind.POWER_DROP.value, _("light dropped")
    POWER_RISE = onu_events.EventKind.POWER_RISE.value, _("light rose")
    DESCRIPTION_CHANGED = onu_events.EventKind.DESCRIPTION_CHANGED.value, _("description changed")


class OutageScopes(models.TextChoices):
    PON = outages.OutageScope.PON.value, _("PON port")
    CARD = outages.OutageScope.CARD.value, _("card")
    OLT = outages.OutageScope.OLT.value, _("OLT")
    NETWORK = outages.OutageScope.NETWORK.value, _("the poller's network")


class OutageCauses(models.TextChoices):
    POWER = outages.OutageCause.POWER.value, _("no power at the customers")
    FIBRE = outages.OutageCause.FIBRE.value, _("fibre cut")
    CARD = outages.OutageCause.CARD.value, _("card failed")
    OLT = outages.OutageCause.OLT.value, _("OLT does not answer")
    NETWORK = outages.OutageCause.NETWORK.value, _("the poller lost its network")
    UNKNOWN = outages.OutageCause.UNKNOWN.value, _("unknown cause")
