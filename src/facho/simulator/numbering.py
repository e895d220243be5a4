"""How a family counts frames, slots, ports and ONUs, read from its indexes, and a chassis that counts that way."""

from collections.abc import Sequence
from dataclasses import dataclass

from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.vocabulary import Scope
from facho.simulator.config import ConfigError
from facho.simulator.shape import Chassis, Shape, plan_chassis, plan_single_card

# A family that shows no ONUs leaves the numbers to us.
FREE_CHOICE = range(128)


@dataclass(frozen=True, slots=True)
class Numbering:
    """The values that fit every ONU and PON index of a family; only 0 for a part that it does not have."""

    frame: range
    slot: range
    port: range
    onu: range


def numbering_of(definition: Definition) -> Numbering:
    """Find the numbers that all ONU and PON indexes of a family can carry."""
    indexes = [index for index in definition.indexes.values() if index.scope in (Scope.ONU, Scope.PON)]
    return Numbering(*(_shared_values(indexes, name) for name in Place._fields))


def _shared_values(indexes: Sequence[Index], name: str) -> range:
    if not indexes:
        return FREE_CHOICE
    ranges = [index.fields[name].values for index in indexes if name in index.fields]
    if not ranges:
        return range(1)
    return range(max(values.start for values in ranges), min(values.stop for values in ranges))


def shape_for(definition: Definition, onus: int, chassis: Chassis | None = None) -> Shape:
    """Lay out an OLT of this family with room for so many ONUs; slots count from 1 where the family leaves it open."""
    numbers = numbering_of(definition)
    size = chassis or _plan(numbers, onus)
    if size.cards > len(numbers.slot) or size.ports_per_card > len(numbers.port) or not size.holds(onus):
        raise ConfigError(f"{definition.key} has no room for {size.cards} cards of {size.ports_per_card} ports")
    return Shape(
        cards=size.cards,
        ports_per_card=size.ports_per_card,
        used_ports=size.used_ports,
        frame=numbers.frame.start,
        first_slot=max(numbers.slot.start, min(1, len(numbers.slot) - size.cards)),
        first_port=numbers.port.start,
        first_onu=numbers.onu.start,
    )


def _plan(numbers: Numbering, onus: int) -> Chassis:
    if len(numbers.port) == 1:
        # A family that does not tell ports has all its ONUs on one.
        return Chassis(1, 1, 1)
    return (plan_chassis if len(numbers.slot) > 1 else plan_single_card)(onus)
