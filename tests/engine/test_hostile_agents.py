"""Twenty hostile agents at once: the engine stays small, serves the honest OLTs, and believes no forged answer."""

import time
from pathlib import Path

import pytest
from hostile_fleet import Product, running_product, simulated

from facho.onus.raw_values import decode_block
from facho.simulator.agent import FORGED_VALUE, HOSTILE

pytestmark = pytest.mark.slow

VENDOR = "huawei_smartax"
HOSTILE_OLTS = 20
HONEST_OLTS = 4
HONEST_ONUS = 48
# Enough for all of them at once.
POLLERS = 26
MAX_ENGINE_MB = 300.0
# It may take this long on a machine that has no time for it.
PATIENCE_SECONDS = 600.0

FINISHED = """
    SELECT olt.name, run.status, run.failure_kind, run.error FROM snmp_executions run JOIN hosts_olt olt
    ON olt.id = run.olt_id WHERE run.node_id IS NOT NULL AND run.finished_at IS NOT NULL
"""
ATTEMPTS = """
    SELECT olt.name, try.failure_kind FROM execution_attempts try JOIN snmp_executions run ON run.id = try.execution_id
    JOIN hosts_olt olt ON olt.id = run.olt_id
"""
HONEST_ONU_COUNT = """
    SELECT count(*) FROM onus_onu JOIN hosts_olt olt ON olt.id = olt_id WHERE olt.name LIKE 'honest%'
"""
FORGED = "SELECT coalesce(sum(json_extract(result, '$.forged_answers')), 0) FROM snmp_executions"


def is_through(product: Product) -> bool:
    """Every honest OLT was read, and some hostile one was stopped for what it sent."""
    served = {
        name for name, status, _, _ in product.rows(FINISHED) if status == "SUCCESS" and name.startswith("honest")
    }
    stopped = {name for name, kind in product.rows(ATTEMPTS) if kind == "tooMuch"}
    return len(served) == HONEST_OLTS and bool(stopped)


@pytest.mark.parametrize(
    ("attack_seconds", "onus"), [(10.0, 500), pytest.param(90.0, 2000, marks=pytest.mark.thorough)]
)
def test_twenty_hostile_agents_neither_bloat_nor_fool_the_engine(
    tmp_path: Path, attack_seconds: float, onus: int
) -> None:
    hostile = simulated(HOSTILE_OLTS, "--hostile", "all", "--onus", str(onus), "--vendor", VENDOR, "--seed", "7")
    honest = simulated(HONEST_OLTS, "--onus", str(HONEST_ONUS), "--vendor", VENDOR)
    with hostile as bad, honest as good:
        names = list(HOSTILE)
        olts = {f"{names[n % len(names)]}-{n}": olt for n, olt in enumerate(bad)}
        olts |= {f"honest-{n}": olt for n, olt in enumerate(good)}
        with running_product(tmp_path, olts, pollers=POLLERS) as product:
            product.command("node", "run", "--all")
            began_at = time.monotonic()
            while time.monotonic() < began_at + attack_seconds or not is_through(product):
                assert time.monotonic() < began_at + PATIENCE_SECONDS, "not in time"
                assert product.engine_peak_mb <= MAX_ENGINE_MB
                product.look()

            assert product.engine_peak_mb <= MAX_ENGINE_MB
            assert product.rows(HONEST_ONU_COUNT) == [(HONEST_OLTS * HONEST_ONUS,)]
            failed = [row for row in product.rows(FINISHED) if row[0].startswith("honest") and row[1] == "FAILED"]
            assert failed == []
            [(forged,)] = product.rows(FORGED)
            assert forged > 0
            blocks = [decode_block(block) for (block,) in product.rows("SELECT block FROM onu_data")]
            lies = [block for block in blocks if FORGED_VALUE in block.values.octets]
            assert lies == []
