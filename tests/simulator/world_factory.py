"""Small worlds for tests."""

from random import Random

from facho.polling.vendors.index import Place
from facho.simulator.customers import CustomerMaker
from facho.simulator.shape import Shape, spread_onus
from facho.simulator.world import OltWorld

SHAPE = Shape(cards=2, ports_per_card=4, used_ports=4)


def make_world(*, onus: int = 20, seed: int = 1, number: int = 0, offline_share: float = 0.0) -> OltWorld:
    customers = CustomerMaker(seed=seed, olt_number=number, offline_share=offline_share)
    return OltWorld("olt-001", SHAPE, customers, spread(SHAPE, onus, seed=seed))


def spread(shape: Shape, onus: int, *, seed: int = 7) -> dict[Place, list[int]]:
    return spread_onus(shape, onus, Random(seed))  # noqa: S311 - repeatable on purpose
