"""The right to send packets to one OLT: an owner, a fencing token and a lease on a monotonic clock."""

from dataclasses import dataclass

from facho.polling.domain.clock import Clock
from facho.polling.domain.lease import HeldLease
from facho.polling.snmp.errors import OwnershipLost


@dataclass(slots=True)
class Claim:
    """The holder's own view of its claim; it permits nothing that it cannot prove."""

    execution_id: int
    token: int
    lease: HeldLease
    clock: Clock
    lost_because: str = ""

    def check(self) -> None:
        """Raise unless this process may still speak to the OLT."""
        if self.lost_because:
            raise OwnershipLost(self.lost_because)
        if not self.lease.is_valid(self.clock.monotonic()):
            raise OwnershipLost("the lease ran out")

    def lose(self, reason: str) -> None:
        """Stop every further packet; the first reason stays."""
        self.lost_because = self.lost_because or reason
