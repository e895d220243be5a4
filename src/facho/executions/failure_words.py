"""What each kind of failure means to an operator, and what to look at."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.polling.domain.failure import FailureKind
from facho.polling.domain.suspension import UNREACHABLE

FAILURES: dict[str, Promise] = {
    FailureKind.TIMEOUT: _(
        "It does not answer. Is it on, is the address right, does a filter stand between?"
        " A wrong community looks the same."
    ),
    FailureKind.REFUSED: _("Nothing listens for SNMP at this address and port."),
    FailureKind.AUTH: _("It refuses our credentials: check community or SNMPv3 user and keys."),
    FailureKind.TOO_BIG: _("It cannot answer requests even of the smallest size."),
    FailureKind.MALFORMED: _("Its answer was not valid SNMP."),
    FailureKind.LOOP: _("It sent the same rows again and again; the read was stopped."),
    FailureKind.MISSING: _("It does not have the table that was asked for."),
    FailureKind.CANCELLED: _("The read was stopped before its end."),
    FailureKind.INTERNAL: _("Facho itself failed; the log says why."),
}

# Short, for a line of a list.
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
