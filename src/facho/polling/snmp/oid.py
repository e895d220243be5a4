"""Object identifiers as tuples: reading, writing, containment, and the few that every agent has."""

from facho.polling.snmp.ber_values import MAX_SUB_IDS, Oid

__all__ = [
    "GENERIC_TRAPS",
    "IF_ENTRY",
    "SNMP_TRAP_ADDRESS",
    "SNMP_TRAP_COMMUNITY",
    "SNMP_TRAP_ENTERPRISE",
    "SNMP_TRAP_OID",
    "SYSTEM",
    "SYS_DESCR",
    "SYS_NAME",
    "SYS_OBJECT_ID",
    "SYS_UP_TIME",
    "USM_STATS",
    "Oid",
    "format_oid",
    "is_under",
    "parse_oid",
    "suffix_of",
]

SYSTEM: Oid = (1, 3, 6, 1, 2, 1, 1)
SYS_DESCR: Oid = (*SYSTEM, 1, 0)
SYS_OBJECT_ID: Oid = (*SYSTEM, 2, 0)
SYS_UP_TIME: Oid = (*SYSTEM, 3, 0)
SYS_NAME: Oid = (*SYSTEM, 5, 0)
# What a notification has before or behind its own varbinds.
SNMP_TRAP_OID: Oid = (1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0)
SNMP_TRAP_ENTERPRISE: Oid = (1, 3, 6, 1, 6, 3, 1, 1, 4, 3, 0)
SNMP_TRAP_ADDRESS: Oid = (1, 3, 6, 1, 6, 3, 18, 1, 3, 0)
SNMP_TRAP_COMMUNITY: Oid = (1, 3, 6, 1, 6, 3, 18, 1, 4, 0)
# coldStart to egpNeighborLoss, from 1.
GENERIC_TRAPS: Oid = (1, 3, 6, 1, 6, 3, 1, 1, 5)
# Counters by whose number a v3 agent says why it does not take a message.
USM_STATS: Oid = (1, 3, 6, 1, 6, 3, 15, 1, 1)
IF_ENTRY: Oid = (1, 3, 6, 1, 2, 1, 2, 2, 1)

_MAX_SUB_ID = 0xFFFF_FFFF


def parse_oid(text: str) -> Oid:
    """Parse a dotted OID, with or without a leading dot; ValueError otherwise, names included."""
    parts = text.removeprefix(".").split(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise ValueError("an OID is numbers joined by dots")
    oid = tuple(map(int, parts))
    if not 2 <= len(oid) <= MAX_SUB_IDS or max(oid) > _MAX_SUB_ID:
        raise ValueError("an OID has 2 to 128 numbers of 32 bits")
    if oid[0] > 2 or (oid[0] < 2 and oid[1] > 39):
        raise ValueError("an OID starts with 0, 1 or 2, and below 2 the next number is at most 39")
    return oid


def format_oid(oid: Oid) -> str:
    """Format an OID or index suffix with dots, without a leading one."""
    return ".".join(map(str, oid))


def is_under(oid: Oid, prefix: Oid) -> bool:
    """Whether `oid` is in the subtree of `prefix`; the root itself is not."""
    return len(oid) > len(prefix) and oid[: len(prefix)] == prefix


def suffix_of(oid: Oid, prefix: Oid) -> Oid:
    """Return what follows `prefix` in `oid`; ValueError if it is elsewhere."""
    if not is_under(oid, prefix):
        raise ValueError(f"{format_oid(oid)} is not under {format_oid(prefix)}")
    return oid[len(prefix) :]
