"""Spaces the packets to one device."""

import asyncio

from facho.polling.snmp.errors import BudgetSpent


class Pace:
    """Gives out turns at most `packets_per_second` times a second, without bursts; None means at once."""

    def __init__(self, packets_per_second: float | None) -> None:
        self._gap_s = 1.0 / packets_per_second if packets_per_second else 0.0
        self._next_at = 0.0

    async def wait_turn(self, deadline: float) -> None:
        """Wait for the next turn; BudgetSpent when it comes after the deadline."""
        if not self._gap_s:
            return
        now = asyncio.get_running_loop().time()
        turn_at = max(now, self._next_at)
        if turn_at >= deadline:
            raise BudgetSpent("the next packet may only leave after the time is over")
        self._next_at = turn_at + self._gap_s
        if turn_at > now:
            await asyncio.sleep(turn_at - now)
