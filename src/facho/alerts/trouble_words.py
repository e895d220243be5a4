"""Says why a message did not arrive. The sentences are fixed: what a server or a library says may hold the address."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.outcome import Outcome, Trouble

SENTENCES = {
    Trouble.UNREACHABLE: gettext_lazy("The server cannot be reached."),
    Trouble.ADDRESS_REFUSED: gettext_lazy(
        "The server stands inside the network; FACHO_WEBHOOK_ALLOW does not list it."
    ),
    Trouble.TIMED_OUT: gettext_lazy("The server did not answer in time."),
    Trouble.CERTIFICATE: gettext_lazy("The certificate of the server is not trusted here."),
    Trouble.NOT_TAKEN: gettext_lazy("The service did not take the message."),
    Trouble.UNUSABLE: gettext_lazy("The address cannot be used: enter it again."),
    Trouble.KEY_LOST: gettext_lazy("The address cannot be decrypted: restore the encryption keys, or enter it again."),
    Trouble.CRASHED: gettext_lazy("The message could not be handed over; the log tells more."),
}


def describe(outcome: Outcome) -> str:
    """Put the trouble of a try into a sentence, in the language of the process."""
    if outcome.trouble is None:
        return ""
    if outcome.answer is not None:
        return _("The server refused it with status %(status)s.") % {"status": outcome.answer}
    return str(SENTENCES[outcome.trouble])
