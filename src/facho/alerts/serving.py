"""Serves several receivers at once, each one thing at a time and in its order, so that none waits for another."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial

from facho.alerts.sender import Reach
from facho.polling.domain.ports import Clock, DatabaseGateway

logger = logging.getLogger(__name__)

RECEIVERS_AT_ONCE = 8
# How long a stopping process waits for current tries: one that is cut off may have arrived, and is sent again.
GRACE_SECONDS = 4.0


class Serving(ABC):
    """Sends each receiver, by its id, what comes next until nothing does; keeps only the current tries."""

    # What is logged when a receiver cannot be served.
    not_served: str

    def __init__(
        self, database: DatabaseGateway, clock: Clock, reach: Reach, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self._database, self._clock, self._reach = database, clock, reach
        self._is_wanted = is_wanted
        self._places = asyncio.Semaphore(RECEIVERS_AT_ONCE)
        self.under_way: dict[int, asyncio.Task[None]] = {}

    def start(self, receivers: Iterable[int]) -> None:
        for receiver in receivers:
            if receiver not in self.under_way:
                task = self.under_way[receiver] = asyncio.create_task(self._serve(receiver))
                task.add_done_callback(partial(self._ended, receiver))

    async def settle(self) -> None:
        """Wait until every receiver that is being served has been."""
        await asyncio.gather(*self.under_way.values())

    async def close(self) -> None:
        """Wait for current tries, but not for long."""
        if tasks := list(self.under_way.values()):
            _done, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    @abstractmethod
    async def send_next(self, receiver: int) -> bool:
        """Try what comes next; False when there is nothing, or it did not arrive."""

    async def _serve(self, receiver: int) -> None:
        async with self._places:
            while self._is_wanted() and await self.send_next(receiver):
                pass

    def _ended(self, receiver: int, task: asyncio.Task[None]) -> None:
        """Log what kept a receiver from being served; the next look tries it again."""
        del self.under_way[receiver]
        if not task.cancelled() and task.exception():
            logger.error("%s id=%s", self.not_served, receiver, exc_info=task.exception())
