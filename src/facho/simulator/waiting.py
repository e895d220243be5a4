"""The ONUs that hang on a simulated OLT and that nobody has authorised: what its autofind table tells of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from facho.polling.vendors.index import Index, Place
from facho.simulator.mib import Rows
from facho.simulator.onu import Onu
from facho.simulator.readings import Candidates, Moment, OnuReading

AUTOFIND: Mapping[str, OnuReading] = MappingProxyType(
    {
        "autofind.serial": lambda onu: (onu.serial,),
        "autofind.model": lambda onu: (onu.model,),
        "autofind.sw_version": lambda onu: (f"V{onu.salt % 3 + 1}.{onu.salt % 7}",),
        "autofind.slot": lambda onu: (onu.place.slot,),
        "autofind.port": lambda onu: (onu.place.port,),
    }
)


class WaitingRoom:
    """Who waits, in the order of arrival; an ONU's id in its place is the number of its row."""

    def __init__(self, moment: Moment) -> None:
        self.onus: list[Onu] = []
        self._time = moment.onu_reading("onu.last_up")
        self._rows: dict[str, Rows[Onu]] = {}
        self._numbers = 0

    def rows(self, index: Index) -> Rows[Onu]:
        """Return the rows of the tables with this index."""
        if index.name not in self._rows:
            self._rows[index.name] = Rows(lambda onu: index.encode(onu.place), self.onus)
        return self._rows[index.name]

    def reading(self, key: str) -> Callable[[Onu], Candidates] | None:
        """Return how to read a key such as `autofind.serial`."""
        return self._time if key == "autofind.time" else AUTOFIND.get(key)

    def add(self, onu: Onu) -> None:
        """Let an ONU wait on the port of its place."""
        self._numbers += 1
        onu.place = onu.place._replace(onu=self._numbers)
        self.onus.append(onu)
        for rows in self._rows.values():
            rows.insert(onu)

    def remove(self, onu: Onu) -> None:
        """Let an ONU wait no longer."""
        self.onus.remove(onu)
        for rows in self._rows.values():
            rows.remove(onu)

    def count(self, port: Place) -> int:
        """Return how many wait on a PON port."""
        return sum(onu.place.pon == port for onu in self.onus)
