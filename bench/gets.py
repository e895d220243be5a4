"""What a value costs that is asked for by ONU, as production reads light, next to one that is walked.

Two products on PostgreSQL read the same columns of one simulated fleet, in turns: one by GET, port by port and of the
ONUs online, one by walk. Rounds are those of the part `values`. CPU is that of the product and its server. Agents that
answer large GETs only slowly or not at all are not played here: `devices` has one.
"""

from contextlib import ExitStack
from statistics import median

from bench.end_to_end import LATENCY_MS, Pipeline, measure_rounds, running_on_postgresql
from bench.fleet import running_fleet
from bench.product import KEYS, ProductTask
from bench.report import Section, Target

OLTS = 40
WALKED, ASKED = "walked", "asked for by GET"
# A GET carries few ONUs, and each of its values comes with its own OID.
OF_WALKED = 3.0


def measure_section(*, olts: int, onus: int, rounds: int) -> Section:
    olts = min(olts, OLTS)
    with ExitStack() as stack:
        fleet = stack.enter_context(running_fleet(olts=olts, onus=onus, latency_ms=LATENCY_MS, speed=1.0))
        pipelines: dict[str, Pipeline] = {
            name: stack.enter_context(running_on_postgresql(ProductTask(fleet.ports, max(olts // 4, 1), query_type)))
            for name, query_type in ((WALKED, "walk"), (ASKED, "get"))
        }
        samples = measure_rounds(fleet, pipelines, rounds)
    found = {
        name: (
            median(sample.cpu for sample in taken),
            median(sample.server_cpu for sample in taken),
            median(sample.values_per_second for sample in taken),
            median(sample.simulator_share for sample in taken),
        )
        for name, taken in samples.items()
    }
    return Section(
        f"{olts} OLTs with {onus} ONUs each, {len(KEYS)} values an ONU, by walk and by GET",
        ("Read", "CPU s per million values", "Of it the server's", "Values a second", "Simulator, cores"),
        [(name, *figures) for name, figures in found.items()],
        [Target("CPU per value by GET, of one that is walked", found[ASKED][0] / found[WALKED][0], OF_WALKED)],
    )
