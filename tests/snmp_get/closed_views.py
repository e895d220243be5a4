"""The families with ONUs, and which of their columns an SNMP view closes."""

from facho.polling.vendors.definition import IDENTITY, Definition
from facho.polling.vendors.index import LearnedIndex, Place, onu_number
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.simulator.personality import portless
from facho.simulator.world import SimulatedOnu
from facho.snmp_get.collector import PORT_COUNTS

FAMILIES = [key for key, each in load_definitions().items() if each.onu_indexes]
COUNTING = [key for key in FAMILIES if any(load_definitions()[key].has_column(c) for keys in PORT_COUNTS for c in keys)]


def identity_keys(family: Definition) -> list[str]:
    """What tells ONUs apart and is not needed to place them."""
    wanted = family.companions(family.identity_columns(family.job("descubrimiento").columns))
    stays = (*family.naming_columns, *family.listing_columns)
    return [key for key in dict.fromkeys((*wanted, *IDENTITY)) if family.has_column(key) and key not in stays]


def onu_keys(family: Definition) -> list[str]:
    return [column.key for column in family.columns_of(Scope.ONU)]


def stored_place(family: Definition, onu: SimulatedOnu) -> Place:
    """Return where an ONU is stored: a family that spells serials in its index has no other numbers of ONUs.

    One that tells no ports numbers them across its ports.
    """
    if not family.has_ports:
        return portless(onu.place)
    is_spelt = any(isinstance(index, LearnedIndex) and not index.forms for index in family.onu_indexes.values())
    return onu.place._replace(onu=onu_number(onu.serial) or 0) if is_spelt else onu.place
