"""What runs beside a block is broken off with it, and never fails unheard."""

import asyncio

import pytest

from facho.infrastructure.gateway import background


async def test_a_failure_is_reported_when_it_happens_and_stops_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("a defect of ours")

    async with background(fail(), "watch"):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "task.failed name=watch" in caplog.text

    assert "a defect of ours" in caplog.text


async def test_the_end_of_the_block_waits_until_the_work_has_let_go(caplog: pytest.LogCaptureFixture) -> None:
    done = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("let go")

    async with background(work(), "watch"):
        await asyncio.sleep(0)

    assert done == ["let go"]
    assert caplog.text == ""


async def test_a_failure_while_letting_go_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("a defect of ours")

    async with background(work(), "watch"):
        await asyncio.sleep(0)

    assert "task.failed name=watch" in caplog.text
