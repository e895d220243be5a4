"""A walk costs no more than the fastest library known, and the simulator less than what it is to measure."""

import pytest
from bench.walk_cost import DECODED, FACHO, GUFO, KEYS, measure_walks

# A small fleet on a machine that does other things: `make bench` holds it to the figures themselves.
SLACK = 2.0
OLTS, ONUS = 20, 250


@pytest.mark.thorough
@pytest.mark.slow
def test_walking_costs_no_more_than_gufo_snmp_does() -> None:
    found = measure_walks([FACHO, DECODED, GUFO], olts=OLTS, onus=ONUS, rounds=3)

    ours = found[FACHO]
    assert {figures.rows for figures in found.values()} == {OLTS * ONUS * len(KEYS)}
    assert ours.cpu_us_per_varbind <= SLACK * found[GUFO].cpu_us_per_varbind
    assert ours.simulator_us_per_varbind <= SLACK * ours.cpu_us_per_varbind
    assert ours.peak_mb <= 150
