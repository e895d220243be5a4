"""Hands claimed executions to whoever carries them out: here, tasks on this process's own loop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from facho.executions.runner import NodeRunner

logger = logging.getLogger(__name__)


class Executor(Protocol):
    """Takes an execution and returns at once."""

    def start(self, execution_id: int, token: int) -> None:
        """See to it that a runner takes the execution; asked twice, the second time changes nothing."""

    def cancel(self, execution_id: int, reason: str) -> None:
        """Let the execution end before its next packet, if it runs here."""


class InProcessExecutor:
    """Runs each execution as a task of this event loop and tells when one has ended."""

    def __init__(self, runner: NodeRunner, on_task_completed: Callable[[], None]) -> None:
        self._runner = runner
        self._on_task_completed = on_task_completed
        self._tasks: set[asyncio.Task[bool]] = set()

    def start(self, execution_id: int, token: int) -> None:
        """Begin the execution without waiting for it."""
        task = asyncio.create_task(self._runner.run(execution_id, token), name=f"execution-{execution_id}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def cancel(self, execution_id: int, reason: str) -> None:
        """Pass the wish on to the runner."""
        self._runner.cancel(execution_id, reason)

    async def drain(self, *, timeout_seconds: float) -> None:
        """Let what is in hand finish; what is not done by then is left to the claims' recovery."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception():
            logger.error("execution.lost %s", task.get_name(), exc_info=task.exception())
        self._on_task_completed()
