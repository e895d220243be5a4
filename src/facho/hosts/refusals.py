"""Says of a device that answers like an OLT and is none why it is not polled, from what it told of itself."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext

from facho.polling.vendors.definition import Refusal
from facho.polling.vendors.recognition import recognise

if TYPE_CHECKING:
    from facho.hosts.models import Olt


def refusal_of(olt: "Olt") -> str:
    """Return the sentence, nothing for an OLT; who names the vendor by hand knows better."""
    if olt.vendor or not olt.sys_object_id:
        return ""
    verdict = recognise(olt.sys_object_id, olt.sys_descr)
    return gettext(verdict.sentence) if isinstance(verdict, Refusal) else ""
