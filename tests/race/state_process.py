"""An engine as a script, which starts on a signal: schedules and runs nodes until somebody kills it.

What an OLT answers depends on the question: a discovery ends at once, a walk fails, a get never ends. With the word
`well` everything is answered.
"""

import asyncio
import sys

from facho.core.product import open_product
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind, QueryType

GOOD = Collected(was_heard=True)
SILENCE = Collected(failure=Failure(FailureKind.TIMEOUT, "no answer"))


class Olts:
    """A collector whose OLTs are well, or hang and fall silent."""

    def __init__(self, *, are_well: bool) -> None:
        self._are_well = are_well

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Answer by the type of the question."""
        if not self._are_well and request.query_type is QueryType.GET:
            await asyncio.Event().wait()
        return SILENCE if not self._are_well and request.query_type is QueryType.WALK else GOOD


async def poll(*, are_well: bool) -> None:
    """Schedule and run for ever."""
    from facho.core.wiring import ENGINE, build_scheduler, open_parts
    from facho.executions.runner import InProcessExecutor

    async with open_parts(ENGINE) as parts:
        runner = parts.runner(Olts(are_well=are_well))
        executor = InProcessExecutor(runner, lambda: scheduler.on_task_completed())
        scheduler = build_scheduler(parts, executor)
        await scheduler.scheduler_loop(asyncio.Event())


if __name__ == "__main__":
    open_product()
    sys.stdin.readline()
    asyncio.run(poll(are_well="well" in sys.argv))
