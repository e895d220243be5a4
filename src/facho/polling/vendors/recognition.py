"""Tells which family a device belongs to, from the two values that every SNMP agent gives."""

from facho.polling.snmp.ber import Oid
from facho.polling.vendors.definition import Definition, Refusal, oid_of
from facho.polling.vendors.loader import load_definitions

GENERIC_KEY = "generic"


def recognise(sys_object_id: Oid | str, sys_descr: str) -> Definition | Refusal | None:
    """Return the family's definition, a refusal for look-alikes, the generic one for strangers.

    None only when the device said nothing to go by. A family that takes the device wins over one that refuses it.
    """
    refusal: Refusal | None = None
    for candidate in load_definitions().values():
        verdict = candidate.recognise(sys_object_id, sys_descr)
        if isinstance(verdict, Definition):
            return verdict
        refusal = refusal or verdict
    if refusal or not oid_of(sys_object_id):
        return refusal
    return load_definitions()[GENERIC_KEY]
