"""Puts what happened to an ONU into words, in the language of whoever reads them: the one place that has the words."""

from collections.abc import Mapping
from types import MappingProxyType

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.onus.event_models import OnuEvent
from facho.onus.words import DownCauses, EventKinds, RunState

_SENTENCES: Mapping[str, Promise] = MappingProxyType(
    {
        EventKinds.NEW: gettext_lazy("Seen for the first time"),
        EventKinds.MOVED: gettext_lazy("Moved here from %(other)s"),
        EventKinds.GONE: gettext_lazy("Not found any more"),
        EventKinds.RETURNED: gettext_lazy("Found again"),
        EventKinds.DUPLICATE_SERIAL: gettext_lazy("The same serial is also at %(other)s"),
        EventKinds.DUPLICATE_MAC: gettext_lazy("The same hardware address is also at %(other)s"),
        EventKinds.CALM: gettext_lazy("Calm again: %(state)s"),
        EventKinds.UP: gettext_lazy("Went up"),
        EventKinds.DOWN: gettext_lazy("Went down"),
        EventKinds.FLAPPING: gettext_lazy("Goes up and down; told again when it is calm"),
        EventKinds.POWER_DROP: gettext_lazy("Light dropped from %(before)s to %(after)s dBm"),
        EventKinds.POWER_RISE: gettext_lazy("Light rose from %(before)s to %(after)s dBm"),
        EventKinds.DESCRIPTION_CHANGED: gettext_lazy('Description changed from "%(before)s" to "%(after)s"'),
    }
)
_STATES: Mapping[str, str | Promise] = MappingProxyType(dict(RunState.choices))
_CAUSES: Mapping[str, str | Promise] = MappingProxyType(dict(DownCauses.choices))


def describe_event(event: OnuEvent) -> str:
    """Say on one line what happened, and why where it was told. Plain text: a page has to escape it."""
    sentence = str(_SENTENCES[event.kind]) % {
        "other": f"{event.other_port}/{event.other_number}",
        "state": _STATES.get(event.after, event.after),
        "before": event.before,
        "after": event.after,
    }
    if not event.cause:
        return sentence
    return _("%(sentence)s: %(cause)s") % {"sentence": sentence, "cause": _CAUSES[event.cause]}
