"""Small worlds for tests."""

from random import Random

from facho.polling.vendors.definition import MAC, Definition
from facho.polling.vendors.index import Place
from facho.simulator.customers import CustomerMaker
from facho.simulator.readings import ONU
from facho.simulator.shape import Shape, spread_onus
from facho.simulator.world import OltWorld

SHAPE = Shape(cards=2, ports_per_card=4, used_ports=4)


def make_world(*, onus: int = 20, seed: int = 1, number: int = 0, offline_share: float = 0.0) -> OltWorld:
    customers = CustomerMaker(seed=seed, olt_number=number, offline_share=offline_share)
    return OltWorld("olt-001", SHAPE, customers, spread(SHAPE, onus, seed=seed))


def spread(shape: Shape, onus: int, *, seed: int = 7) -> dict[Place, list[int]]:
    return spread_onus(shape, onus, Random(seed))  # noqa: S311 - repeatable on purpose


def true_identities(world: OltWorld, definition: Definition) -> dict[Place, str]:
    """Return by what the family tells the ONUs apart: serials, or hardware addresses where it has no serials."""
    [key] = definition.identity_columns()
    addresses = {onu.place: str(ONU["mac"](onu)[0]) for onu in world.onus}
    return addresses if key == MAC else {onu.place: onu.serial for onu in world.onus}
