"""The words for people behind the codes of the domain."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.dashboard.light import Light
from facho.polling.domain.planning import WaitReason

WAITS: dict[str, Promise] = {
    WaitReason.OLT_BUSY: _("its OLT is busy"),
    WaitReason.NO_POLLER: _("no poller is free"),
    WaitReason.OLT_UNREACHABLE: _("its OLT does not answer"),
}

LIGHTS: dict[str, Promise] = {
    Light.WEAK: _("weak"),
    Light.STRONG: _("too strong"),
}
