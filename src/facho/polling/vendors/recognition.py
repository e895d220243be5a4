"""Tells which family a device belongs to, from the two values that every SNMP agent gives."""

from collections.abc import Collection

from facho.polling.snmp.ber import Oid
from facho.polling.vendors.definition import Definition, Refusal, oid_of
from facho.polling.vendors.loader import load_definitions

GENERIC_KEY = "generic"


def recognise(sys_object_id: Oid | str, sys_descr: str) -> Definition | Refusal | None:
    """Return the family's definition, a refusal for look-alikes, or the generic one.

    None only if the device reported nothing. A family that accepts the device wins over one that refuses it.
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


def tables_to_ask(sys_object_id: Oid | str) -> tuple[Oid, ...]:
    """Return the tables that would show which family a device is of; empty if its id leaves no choice."""
    rivals = [each for each in load_definitions().values() if each.may_be(sys_object_id)]
    return tuple(dict.fromkeys(table for each in rivals for table in each.recognition.tables))


def recognise_by_tables(
    verdict: Definition | Refusal | None, sys_object_id: Oid | str, answering: Collection[Oid]
) -> Definition | Refusal | None:
    """Return the family whose tables have rows: the one that the device names if its own have, else another one."""
    rivals = [each for each in load_definitions().values() if each.may_be(sys_object_id)]
    shown = [each for each in rivals if not set(answering).isdisjoint(each.recognition.tables)]
    return verdict if not shown or verdict in shown else shown[0]
