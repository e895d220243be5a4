"""One client in a process of its own walks a fleet once and tells what that cost it, as JSON.

`python -m bench.clients NAME` reads a Task as JSON from standard input. Only the walk is counted: imports and
definitions are paid before.
"""

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from types import MappingProxyType

from gufo.snmp.aio import SnmpSession

from bench.private_database import private_database
from bench.processes import peak_mb
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.target import Community, Target
from facho.polling.snmp.walk import WalkOptions, WalkResult, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.loader import load_definitions

DECODED = "facho-decoded"
ADDRESS = "127.0.0.1"
TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Task:
    """What to walk: OLTs by their ports on the loopback, columns of a definition by their keys."""

    ports: list[int]
    vendor: str
    keys: list[str]
    repetitions: int
    community: str = "public"

    @property
    def columns(self) -> list[Column]:
        definition = load_definitions()[self.vendor]
        return [definition.column(key) for key in self.keys]


@dataclass(frozen=True, slots=True)
class Cost:
    rows: int
    cpu_seconds: float
    wall_seconds: float
    peak_mb: float


class _Always:
    def check(self) -> None:
        """Allow every packet."""


async def walk_with_facho(task: Task) -> int:
    return await _walk_fleet(task, lambda result: sum(map(len, result.rows)))


async def walk_and_decode_with_facho(task: Task) -> int:
    """Walk, and make a table of places and typed values of it, as the product does."""
    # Needs the models, which the caller has made ready.
    from facho.snmp_get.reading import GatheredOnus

    definition = load_definitions()[task.vendor]

    def decode(result: WalkResult) -> int:
        gathered = GatheredOnus(definition)
        gathered.add_walk(task.keys, result.rows)
        return len(gathered.table()) * len(task.keys)

    return await _walk_fleet(task, decode)


async def _walk_fleet(task: Task, use: Callable[[WalkResult], int]) -> int:
    """Walk all OLTs at once, each with one request in flight."""
    oids = [column.oid for column in task.columns]
    options = WalkOptions(max_repetitions=task.repetitions)
    async with Network() as network:

        async def walk(port: int) -> int:
            session = network.open(Target(ADDRESS, Community(task.community.encode()), port=port), _Always())
            result = await walk_columns(session, oids, options)
            if result.failure is not None:
                raise result.failure
            return use(result)

        return sum(await asyncio.gather(*map(walk, task.ports)))


async def walk_with_gufo(task: Task) -> int:
    """Walk all OLTs at once, the columns of an OLT one after the other: what the library's interface offers."""
    oids = [format_oid(column.oid) for column in task.columns]

    async def walk(port: int) -> int:
        async with SnmpSession(ADDRESS, port=port, community=task.community, timeout=TIMEOUT_SECONDS) as session:
            rows = [[row async for row in session.getbulk(oid, task.repetitions)] for oid in oids]
        return sum(map(len, rows))

    return sum(await asyncio.gather(*map(walk, task.ports)))


CLIENTS: Mapping[str, Callable[[Task], Awaitable[int]]] = MappingProxyType(
    {"facho": walk_with_facho, DECODED: walk_and_decode_with_facho, "gufo": walk_with_gufo}
)


async def measure(name: str, task: Task) -> Cost:
    load_definitions()
    if name == DECODED:
        importlib.import_module("facho.snmp_get.reading")
    wall, cpu = time.perf_counter(), time.process_time()
    rows = await CLIENTS[name](task)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Cost(rows, cpu, wall, peak_mb(os.getpid()))


def main(name: str) -> None:
    task = Task(**json.load(sys.stdin))
    # Of the product, only what decodes knows models.
    with private_database() if name == DECODED else nullcontext():
        print(json.dumps(asdict(asyncio.run(measure(name, task)))))


if __name__ == "__main__":
    main(sys.argv[1])
