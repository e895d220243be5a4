"""One client in a process of its own walks a fleet once and tells what that cost it, as JSON.

`python -m bench.clients NAME` reads a Task as JSON from standard input.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.target import Community, Target
from facho.polling.snmp.walk import WalkOptions, walk_columns
from facho.polling.vendors.loader import load_definitions


@dataclass(frozen=True, slots=True)
class Task:
    """What to walk: the ports of OLTs on the loopback, and columns of a definition by key."""

    ports: list[int]
    vendor: str
    columns: list[str]
    repetitions: int
    community: str = "public"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one walk of the whole fleet cost the client."""

    rows: int
    cpu_seconds: float
    wall_seconds: float
    peak_mb: float


class _Allowed:
    def check(self) -> None:
        """Allow every packet."""


async def walk_with_facho(task: Task) -> int:
    """Walk all columns side by side, all OLTs at once, one request in flight for each."""
    oids = _oids(task)
    options = WalkOptions(max_repetitions=task.repetitions)
    async with Network() as network:

        async def walk(port: int) -> int:
            session = network.open(Target("127.0.0.1", Community(task.community.encode()), port=port), _Allowed())
            result = await walk_columns(session, oids, options)
            if result.failure is not None:
                raise result.failure
            return sum(map(len, result.rows))

        return sum(await asyncio.gather(*map(walk, task.ports)))


async def walk_and_decode_with_facho(task: Task) -> int:
    """Walk, and make typed values of places out of each row."""
    columns = [load_definitions()[task.vendor].column(key) for key in task.columns]
    oids = _oids(task)
    options = WalkOptions(max_repetitions=task.repetitions)
    async with Network() as network:

        async def walk(port: int) -> int:
            session = network.open(Target("127.0.0.1", Community(task.community.encode()), port=port), _Allowed())
            result = await walk_columns(session, oids, options)
            if result.failure is not None:
                raise result.failure
            decoded = [
                (column.index.decode(suffix), column.decode(tag, value))
                for column, rows in zip(columns, result.rows, strict=True)
                for suffix, tag, value in rows
            ]
            return len(decoded)

        return sum(await asyncio.gather(*map(walk, task.ports)))


async def walk_with_gufo(task: Task) -> int:
    """Walk one column after the other, as the library's public interface does it, all OLTs at once."""
    from gufo.snmp.aio import SnmpSession

    oids = [format_oid(oid) for oid in _oids(task)]

    async def walk(port: int) -> int:
        rows = []
        async with SnmpSession("127.0.0.1", port=port, community=task.community, timeout=30) as session:
            for oid in oids:
                rows.append([row async for row in session.getbulk(oid, task.repetitions)])
        return sum(map(len, rows))

    return sum(await asyncio.gather(*map(walk, task.ports)))


def _oids(task: Task) -> list[tuple[int, ...]]:
    definition = load_definitions()[task.vendor]
    return [definition.column(key).oid for key in task.columns]


CLIENTS: dict[str, Callable[[Task], Awaitable[int]]] = {
    "facho": walk_with_facho,
    "facho-decoded": walk_and_decode_with_facho,
    "gufo": walk_with_gufo,
}


async def measure(client: Callable[[Task], Awaitable[int]], task: Task) -> Cost:
    """Count only the walk: imports and definitions are paid before."""
    load_definitions()
    wall, cpu = time.perf_counter(), time.process_time()
    rows = await client(task)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Cost(rows, cpu, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(name: str) -> None:
    """Run one client and print its cost."""
    task = Task(**json.load(sys.stdin))
    print(json.dumps(asdict(asyncio.run(measure(CLIENTS[name], task)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
