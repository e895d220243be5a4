"""How large a simulated OLT is: cards, ports, and how its ONUs spread over the ports."""

import math
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from facho.polling.vendors.index import Place

USED_PORT_SHARE = 0.7
TYPICAL_ONUS_PER_PORT = 32
DENSE_ONUS_PER_PORT = 96
MAX_ONUS_PER_PORT = 128


@dataclass(frozen=True, slots=True)
class Shape:
    """The chassis of one OLT; the first numbers are those the brand counts from."""

    cards: int
    ports_per_card: int
    used_ports: int
    frame: int = 0
    first_slot: int = 1
    first_port: int = 0
    first_onu: int = 0

    @property
    def places(self) -> list[Place]:
        return [
            Place(self.frame, self.first_slot + card, self.first_port + port)
            for card in range(self.cards)
            for port in range(self.ports_per_card)
        ]

    @property
    def boards(self) -> list[Place]:
        return [Place(self.frame, self.first_slot + card) for card in range(self.cards)]


class Chassis(NamedTuple):
    cards: int
    ports_per_card: int
    used_ports: int

    def holds(self, onus: int) -> bool:
        """Whether that many ONUs fit on its used ports, and these on its cards."""
        return 0 < self.used_ports <= self.cards * self.ports_per_card and onus <= self.used_ports * MAX_ONUS_PER_PORT


def plan_chassis(onus: int) -> Chassis:
    """Choose a size for a number of ONUs, with room left as in the field."""
    used = max(math.ceil(onus / TYPICAL_ONUS_PER_PORT), 1)
    ports = math.ceil(used / USED_PORT_SHARE)
    ports_per_card = 8 if ports <= 8 else 16
    return Chassis(math.ceil(ports / ports_per_card), ports_per_card, used)


def plan_single_card(onus: int) -> Chassis:
    """Choose a size for a device without slots: more ONUs per port before more ports."""
    usual = plan_chassis(onus)
    ports = max(usual.ports_per_card, math.ceil(onus / DENSE_ONUS_PER_PORT))
    return Chassis(1, ports, min(usual.used_ports, ports))


def spread_onus(shape: Shape, onus: int, rng: Random) -> dict[Place, list[int]]:
    """Give every ONU a port and an id, unevenly and with gaps, as years of moves leave them."""
    places = shape.places
    used = sorted(rng.sample(places, shape.used_ports))
    ports = len(used)
    weights = [rng.uniform(0.4, 1.6) for _ in range(ports)]
    scale = onus / sum(weights)
    counts = [min(int(weight * scale), MAX_ONUS_PER_PORT) for weight in weights]
    left = onus - sum(counts)
    while left:
        port = rng.randrange(ports)
        if counts[port] < MAX_ONUS_PER_PORT:
            counts[port] += 1
            left -= 1
    spread: dict[Place, list[int]] = {place: [] for place in places}
    for place, count in zip(used, counts, strict=True):
        last = min(count + count // 8 + 1, MAX_ONUS_PER_PORT)
        spread[place] = sorted(rng.sample(range(shape.first_onu, shape.first_onu + last), count))
    return spread
