"""Plays a fleet until it is stopped, in one or more processes: `python -m bench.fleet FIRST OLTS ONUS …`.

ONUs fail and return and their light moves, but none is added or moved: what is polled stays as many values. All light
of a simulated OLT moves at once, so each OLT has a minute of its own: a fleet that moved in one second would have the
simulator encode all of it in that second, while a real one spreads over the minute.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from bench.processes import Conversation, answer, conversation, cpu_seconds
from bench.truth import true_values
from facho.core.processes.supervisor import raise_descriptor_limit
from facho.polling.vendors.loader import load_definitions
from facho.simulator.readings import DRIFT_STEP_SECONDS
from facho.simulator.server import SimulatedOlt, SimulatorConfig, WorldClock
from facho.simulator.world import NATURAL, STILL

VENDOR = "huawei_smartax"
# Multiples of it, without their whole part, lie evenly between 0 and 1, however many there are.
GOLDEN = 0.618034


@dataclass(frozen=True, slots=True)
class Fleet:
    """A running fleet by the ports of its OLTs."""

    ports: list[int]
    players: Sequence[Conversation]

    @property
    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(player.pid) for player in self.players)

    @property
    def max_in_flight(self) -> int:
        """The most requests that any OLT had to answer at a time."""
        return max(player.ask("max_in_flight") for player in self.players)

    def stand_still(self) -> None:
        """Stop world time."""
        for player in self.players:
            player.ask("stand_still")

    def move_on(self, seconds: float, keys: Sequence[str]) -> None:
        """Let world time jump, and stand still there with these columns encoded."""
        for player in self.players:
            player.ask("move_on", seconds, *keys)

    def go_on(self) -> None:
        for player in self.players:
            player.ask("go_on")

    def truth(self, keys: Sequence[str]) -> dict[int, dict[str, list[Any]]]:
        """Return by port and index suffix what is true now, in the order of the keys."""
        told = [player.ask("truth", *keys) for player in self.players]
        return {int(port): rows for part in told for port, rows in part.items()}


@contextmanager
def running_fleet(
    *, olts: int, onus: int, latency_ms: float, speed: float = 0.0, processes: int = 1
) -> Iterator[Fleet]:
    """Play the fleet until the block is left; without a speed nothing happens on it."""
    shares = [range(olts)[number::processes] for number in range(processes)]
    with ExitStack() as stack:
        players = [
            stack.enter_context(
                conversation(
                    "bench.fleet",
                    str(share.start),
                    str(share.step),
                    str(len(share)),
                    *map(str, (onus, latency_ms, speed)),
                )
            )
            for share in shares
            if share
        ]
        yield Fleet([port for player in players for port in player.ask("ports")], players)


class _StoppableClock(WorldClock):
    _stopped_at: float | None = None

    def now(self) -> float:
        return super().now() if self._stopped_at is None else self._stopped_at

    def stop(self) -> None:
        self._stopped_at = self.now()

    def jump(self, seconds: float) -> None:
        self._stopped_at = self.now() + seconds

    def go_on(self) -> None:
        if self._stopped_at is not None:
            self.skip(self._stopped_at - super().now())
            self._stopped_at = None


def clock_of(number: int, speed: float) -> _StoppableClock:
    """Return world time of an OLT; its light moves at another second of the minute than that of others."""
    clock = _StoppableClock(speed=speed)
    clock.skip(number * GOLDEN % 1 * DRIFT_STEP_SECONDS)
    return clock


async def _play(numbers: Sequence[int], config: SimulatorConfig) -> None:
    definition = load_definitions()[VENDOR]
    clocks = {number: clock_of(number, config.speed) for number in numbers}
    olts = [SimulatedOlt(config, definition, number, clock) for number, clock in clocks.items()]
    for olt in olts:
        olt.open()
    # A fleet is hundreds of thousands of objects that stay: looking through them again and again would stall it.
    gc.freeze()

    def move_on(seconds: float, *keys: str) -> None:
        oids = {definition.column(key).oid for key in keys}
        for olt, clock in zip(olts, clocks.values(), strict=True):
            clock.jump(seconds)
            olt.encode_ahead(oids)

    def stand_still() -> None:
        for clock in clocks.values():
            clock.stop()

    def go_on() -> None:
        for clock in clocks.values():
            clock.go_on()

    functions: Mapping[str, Callable[..., object]] = {
        "ports": lambda: [olt.port for olt in olts],
        "max_in_flight": lambda: max(olt.counters.max_in_flight for olt in olts),
        "stand_still": stand_still,
        "move_on": move_on,
        "go_on": go_on,
        "truth": lambda *keys: {
            olt.port: true_values(olt, keys, at=clock.now()) for olt, clock in zip(olts, clocks.values(), strict=True)
        },
    }
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def read() -> None:
        line = sys.stdin.readline()
        answer(line, functions) if line else ended.set()

    loop.add_reader(sys.stdin, read)
    await ended.wait()


if __name__ == "__main__":
    first, step, count, onus = map(int, sys.argv[1:5])
    latency_ms, speed = map(float, sys.argv[5:])
    raise_descriptor_limit()
    asyncio.run(
        _play(
            range(first, first + step * count, step),
            SimulatorConfig(
                vendor=VENDOR,
                onus=onus,
                latency_ms=latency_ms,
                speed=speed or 1.0,
                life=replace(NATURAL, moves=0.0, arrivals=0.0) if speed else STILL,
            ),
        )
    )
