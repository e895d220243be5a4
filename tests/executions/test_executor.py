"""What becomes of executions under way when their process is stopped."""

import asyncio

import pytest

from facho.executions import runner
from facho.executions.runner import drain


async def wait_for_answer(answer: asyncio.Event) -> None:
    """Be a run that is broken off, and whose session waits for the device before it closes."""
    try:
        await asyncio.Event().wait()
    finally:
        await answer.wait()


async def test_a_drained_process_knows_which_olts_still_work_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LAST_ANSWERS_SECONDS", 0.5)
    answered, unanswered = asyncio.Event(), asyncio.Event()
    answered.set()
    quick, slow = (asyncio.create_task(wait_for_answer(answer)) for answer in (answered, unanswered))
    done = asyncio.create_task(asyncio.sleep(0))

    asking = await drain({quick: 1, slow: 2, done: 3}, timeout_seconds=0.05)

    assert asking == {2}
    slow.cancel()
