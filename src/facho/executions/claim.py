"""The right to speak to one OLT, and what a run may ask about itself while it holds it."""

from asyncio import Event
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from facho.polling.domain.clock import Clock
from facho.polling.domain.lease import HeldLease
from facho.polling.domain.yielding import should_yield
from facho.polling.snmp.errors import OwnershipLost


@dataclass(slots=True)
class Claim:
    """The holder's own view of its claim; it permits nothing that it cannot prove."""

    execution_id: int
    token: int
    lease: HeldLease
    clock: Clock
    # Whether another node of the OLT is due; asked only when this run is long enough to give way.
    another_is_due: Callable[[], Awaitable[bool]]
    yield_after_seconds: float
    started_at: float
    lost_because: str = ""
    # Set by who knows that the row has something new to say.
    renew_now: Event = field(default_factory=Event)

    def check(self) -> None:
        """Raise unless this process may still speak to the OLT."""
        if self.lost_because:
            raise OwnershipLost(self.lost_because)
        if not self.lease.is_valid(self.clock.monotonic()):
            raise OwnershipLost("the lease ran out")

    async def should_yield(self) -> bool:
        """Tell whether this run gives way to a due node of its OLT."""
        running = self.clock.monotonic() - self.started_at
        if running < self.yield_after_seconds:
            return False
        is_due = await self.another_is_due()
        return should_yield(
            running_seconds=running, another_is_due=is_due, yield_after_seconds=self.yield_after_seconds
        )

    def lose(self, reason: str) -> None:
        """Stop every further packet; the first reason stays."""
        self.lost_because = self.lost_because or reason
