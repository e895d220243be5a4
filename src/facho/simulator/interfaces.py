"""The interfaces of a simulated OLT: its PON ports under the numbers of the family, and two uplinks beside them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from facho.polling.snmp.oid import Oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import SUB_ID_BITS, Index, Place
from facho.polling.vendors.learned_index import LearnedIndex
from facho.polling.vendors.vocabulary import LinkState, Scope
from facho.simulator.readings import Candidates, port_reading
from facho.simulator.world import OltWorld, PonPort

UPLINKS = 2
# Of Ethernet in IANA's list.
ETHERNET_TYPE = 6


class Interface(NamedTuple):
    """One interface; `port` is the PON port that it is, None for an uplink."""

    number: Oid
    place: Place
    port: PonPort | None = None

    @property
    def name(self) -> str:
        return f"ethernet{self.place.frame}/{self.place.slot}/{self.place.port}"


UPLINK: Mapping[str, Callable[[Interface], Candidates]] = MappingProxyType(
    {
        "if.name": lambda uplink: (uplink.name,),
        "if.descr": lambda uplink: (uplink.name,),
        "if.type": lambda uplink: (ETHERNET_TYPE,),
        "if.admin": lambda uplink: (LinkState.UP,),
        "if.oper": lambda uplink: (LinkState.UP,),
    }
)


def build_interfaces(world: OltWorld, definition: Definition) -> list[Interface]:
    """Number interfaces as the family does, and one after the other where it has no such numbers."""
    number_of = _port_numbers(definition, list(world.ports))
    ports = [Interface(number_of(place), place, port) for place, port in world.ports.items()]
    return [*ports, *_uplinks(definition, world, taken=len(ports))]


def interface_reading(key: str) -> Callable[[Interface], Candidates] | None:
    """Return how to read a key such as `if.name`, None for one that neither ports nor uplinks have."""
    of_port, of_uplink = port_reading(key), UPLINK.get(key)
    if of_port is None or of_uplink is None:
        return None
    return lambda interface: of_port(interface.port) if interface.port else of_uplink(interface)


def _uplinks(definition: Definition, world: OltWorld, *, taken: int) -> list[Interface]:
    slot = world.shape.first_slot + world.shape.cards
    places = [Place(world.shape.frame, slot, port) for port in range(UPLINKS)]
    formula = next((index for index in definition.indexes.values() if _tells_places(index)), None)
    if formula is not None:
        return [Interface(formula.encode(place), place) for place in places]
    return [Interface((number,), place) for number, place in enumerate(places, start=taken + 1)]


def _tells_places(index: Index) -> bool:
    return index.scope is Scope.INTERFACE and index.length == 1 and "slot" in index.fields


def _port_numbers(definition: Definition, places: list[Place]) -> Callable[[Place], Oid]:
    for index in definition.indexes.values():
        encode = _port_encoder(index)
        if encode is not None:
            return encode
    numbers = {place: (number,) for number, place in enumerate(places, start=1)}
    return lambda place: numbers[place]


def _port_encoder(index: Index) -> Callable[[Place], Oid] | None:
    if isinstance(index, LearnedIndex):
        return None
    if index.scope is Scope.PON and index.length == 1:
        return index.encode
    # Ports and uplinks in one space of numbers.
    if _tells_places(index) and not index.fixed:
        return index.encode
    if index.scope is not Scope.ONU or index.length == 1 or not _begins_with_port(index):
        return None
    lowest = index.fields["onu"].values.start
    return lambda place: index.encode(place._replace(onu=lowest))[:1]


def _begins_with_port(index: Index) -> bool:
    return "port" in index.fields and index.fields["port"].shift >= SUB_ID_BITS * (index.length - 1)
