"""What a run lets others know while it goes on. Nothing depends on it: who misses a hint finds out from the rows."""

from collections.abc import Callable
from typing import Protocol

from facho.executions.run import Run


class Hints(Protocol):
    """Tells others without waiting; a hint may get lost."""

    def held(self, run: Run) -> None:
        """Say that the run holds its OLT, for a lease from now."""

    def let_go(self, run: Run) -> None:
        """Say that it no longer does."""

    def ended(self) -> None:
        """Say that an OLT, and perhaps a poller, has become free."""

    def cancelled(self, execution_id: int) -> None:
        """Say that whoever runs the execution should look whether it shall stop."""

    async def listen(self, *, on_ended: Callable[[], None], on_cancelled: Callable[[int], None]) -> None:
        """React to what others say, until cancelled; without others it returns at once."""


class NoHints:
    """Says nothing, where nobody else is there to hear it."""

    def held(self, run: Run) -> None:
        """Say nothing."""

    def let_go(self, run: Run) -> None:
        """Say nothing."""

    def ended(self) -> None:
        """Say nothing."""

    def cancelled(self, execution_id: int) -> None:
        """Say nothing."""

    async def listen(self, *, on_ended: Callable[[], None], on_cancelled: Callable[[int], None]) -> None:
        """Hear nothing."""
