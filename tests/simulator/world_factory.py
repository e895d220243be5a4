"""Small worlds for tests."""

from random import Random

from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.definition import MAC, SERIAL, Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.simulator.readings import ONU_READINGS
from facho.simulator.world import CustomerMaker, OltWorld, Shape, spread_onus

# The families that tell a lost fibre from lost power.
TELLING_CAUSES = sorted(
    key
    for key, definition in load_definitions().items()
    if (column := definition.columns.get("onu.last_down_cause")) and DownCause.LOS in column.rule.words.values()
)
SHAPE = Shape(cards=2, ports_per_card=4, used_ports=4)


def make_world(*, onus: int = 20, seed: int = 1, number: int = 0, offline_share: float = 0.0) -> OltWorld:
    customers = CustomerMaker(seed=seed, olt_number=number, offline_share=offline_share)
    return OltWorld("olt-001", SHAPE, customers, spread(SHAPE, onus, seed=seed))


def spread(shape: Shape, onus: int, *, seed: int = 7) -> dict[Place, list[int]]:
    return spread_onus(shape, onus, Random(seed))  # noqa: S311 - repeatable on purpose


def true_identities(world: OltWorld, definition: Definition) -> dict[Place, str]:
    """Return by what the family tells the ONUs apart: serials, else hardware addresses, else what it calls them."""
    [key] = definition.identity_columns()
    reading = ONU_READINGS["serial" if key == SERIAL else "mac" if key == MAC else "description"]
    return {onu.place: str(reading(onu)[0]) for onu in world.onus}
