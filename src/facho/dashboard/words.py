"""The words for people behind the codes of the domain."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.dashboard.light import Light
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.planning import WaitReason
from facho.polling.domain.suspension import UNREACHABLE

WAITS: dict[str, Promise] = {
    WaitReason.OLT_BUSY: _("its OLT is busy"),
    WaitReason.NO_POLLER: _("no poller is free"),
    WaitReason.OLT_UNREACHABLE: _("its OLT does not answer"),
}

LIGHTS: dict[str, Promise] = {
    Light.WEAK: _("weak"),
    Light.STRONG: _("too strong"),
}

# Short, for a line of a list; what to do about them stands in `facho.executions.failure_words`.
FAILURES_IN_SHORT: dict[str, Promise] = {
    UNREACHABLE: pgettext_lazy("failure", "OLT does not answer"),
    FailureKind.TIMEOUT: pgettext_lazy("failure", "no answer"),
    FailureKind.REFUSED: pgettext_lazy("failure", "nothing listens"),
    FailureKind.AUTH: pgettext_lazy("failure", "credentials refused"),
    FailureKind.TOO_BIG: pgettext_lazy("failure", "answers do not fit"),
    FailureKind.MALFORMED: pgettext_lazy("failure", "not valid SNMP"),
    FailureKind.LOOP: pgettext_lazy("failure", "rows repeat"),
    FailureKind.MISSING: pgettext_lazy("failure", "table missing"),
    FailureKind.CANCELLED: pgettext_lazy("failure", "stopped"),
    FailureKind.INTERNAL: pgettext_lazy("failure", "Facho failed"),
}
