"""Hands claimed executions to workers as messages. A message may get lost; the row is what has to be carried out."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from celery import Celery
from kombu.exceptions import OperationalError

from facho.executions.models import Execution, Origin
from facho.executions.onu_reads import HINT_TASK, READ_TASK
from facho.executions.runner import Hints
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import queue_of
from facho.polling.domain.ports import DatabaseGateway

logger = logging.getLogger(__name__)

FIRST_TRY, ANOTHER_TRY = "snmp_jobs.tasks.execute_one", "snmp_jobs.tasks.execute_one_retry"
PROBE = "hosts.tasks.probe_one"
# A GET on its own, for which a person waits: no node's run, so it is no `execute_one`.
SINGLE_GET = "snmp_get.tasks.get_poller_task"
DEFAULT_QUEUE, RETRY_QUEUE, HIGH_PRIORITY_QUEUE = "snmp_default", "snmp_retry", "snmp_highprio"
# One repeat: the connection may be one that a restart of the broker left behind.
RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


@dataclass(frozen=True, slots=True)
class Letter:
    execution_id: int
    task: str
    queue: str


class CeleryExecutor:
    """Sends one message for each execution, off the event loop; a failure is left to the re-send."""

    def __init__(self, app: Celery, database: DatabaseGateway, hints: Hints) -> None:
        self._app = app
        self._hints = hints
        self._database = database
        self._wanted: list[int] = []
        self._sending: asyncio.Task[None] | None = None
        # One thread: messages leave in the order of their urgency, and a broker that blocks holds up one thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="messages")

    def start(self, execution_id: int, token: int) -> None:
        """Have a message sent; what is asked for at the same time is sent together."""
        self._wanted.append(execution_id)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_wanted())

    def cancel(self, execution_id: int, reason: str) -> None:
        """Let the runner look at the row now; it would when it renews its lease."""
        self._hints.cancelled(execution_id)

    async def close(self) -> None:
        """Wait for messages in progress."""
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _send_wanted(self) -> None:
        while self._wanted:
            ids, self._wanted = self._wanted, []
            letters = await self._database.run(load_letters, ids)
            await asyncio.get_running_loop().run_in_executor(self._thread, self._send, letters)

    def _send(self, letters: Sequence[Letter]) -> None:
        try:
            with self._app.producer_pool.acquire(block=True) as producer:
                for letter in letters:
                    self._app.send_task(
                        letter.task,
                        [letter.execution_id],
                        queue=letter.queue,
                        producer=producer,
                        ignore_result=True,
                        retry=True,
                        retry_policy=RETRY_POLICY,
                    )
        except (OperationalError, OSError) as error:
            logger.warning("messages.not_sent count=%s error=%s", len(letters), type(error).__name__)


def queues_of(group: str) -> list[str]:
    return [queue_of(name, group) for name in (DEFAULT_QUEUE, RETRY_QUEUE, HIGH_PRIORITY_QUEUE)]


def load_letters(execution_ids: Sequence[int]) -> list[Letter]:
    """Address what still waits for a runner, in the order given: by hand first class, another try apart."""
    pending = Execution.objects.filter(id__in=execution_ids, status=ExecutionState.PENDING)
    rows = {row[0]: row for row in pending.values_list("id", "origin", "task_type", "attempt", "poller_group")}
    return [_letter(*rows[execution_id]) for execution_id in execution_ids if execution_id in rows]


def _letter(execution_id: int, origin: str, task_type: str, attempt: int, group: str) -> Letter:
    if origin == Origin.PROBE:
        return Letter(execution_id, PROBE, queue_of(DEFAULT_QUEUE, group))
    if task_type in (READ_TASK, HINT_TASK):
        return Letter(execution_id, SINGLE_GET, queue_of(HIGH_PRIORITY_QUEUE, group))
    task, queue = (ANOTHER_TRY, RETRY_QUEUE) if attempt > 1 else (FIRST_TRY, DEFAULT_QUEUE)
    return Letter(execution_id, task, queue_of(HIGH_PRIORITY_QUEUE if origin == Origin.MANUAL else queue, group))
