"""The numbers of rows as a simulated OLT gives them: by the formula of its family, or one after the other."""

from collections.abc import Callable
from itertools import count

from facho.polling.snmp.oid import Oid
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.learned_index import LearnedIndex, spell_serial
from facho.simulator.onu import Onu
from facho.simulator.world import PonPort

# Far above the interfaces of any OLT, which are numbered from 1.
FIRST_ONU = 1_000


class RowNumbers:
    """Numbers for families without a formula; who comes later has a higher one, wherever it hangs."""

    def __init__(self, ports: list[Place]) -> None:
        self._numbers: dict[Place, Oid] = {place: (number,) for number, place in enumerate(ports, start=1)}
        self._free = count(FIRST_ONU)

    def of(self, owner: Onu | PonPort) -> Oid:
        """Return the number of a port or of whoever is at an ONU's place."""
        place = owner.place
        if place not in self._numbers:
            self._numbers[place] = (next(self._free),)
        return self._numbers[place]

    def by(self, index: Index) -> Callable[[Onu], Oid]:
        """Return how the rows of an index about ONUs are numbered."""
        if not isinstance(index, LearnedIndex):
            return lambda onu: index.encode(onu.place)
        return self.of if index.forms else lambda onu: spell_serial(onu.serial)
