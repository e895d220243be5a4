"""The HTTP server waits for a signal instead of looking for one."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import uvicorn
from bench.virtual_loop import VirtualTimeLoop

from facho.core.processes.web import WebServer


class CountingServer(WebServer):
    ticks = 0

    async def on_tick(self, counter: int) -> bool:
        self.ticks += 1
        return await super().on_tick(counter)


async def idle_server() -> tuple[CountingServer, asyncio.Task[None]]:
    server = CountingServer(uvicorn.Config("facho.core.processes.web:build_application", log_config=None))
    return server, asyncio.create_task(server.main_loop())


def run_virtual(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(work)


def test_idle_server_wakes_once_a_second() -> None:
    async def wait_a_minute() -> None:
        server, serving = await idle_server()

        await asyncio.sleep(60)

        assert 59 <= server.ticks <= 61
        serving.cancel()

    run_virtual(wait_a_minute())


def test_signal_ends_the_server_without_waiting_for_the_next_second() -> None:
    async def end() -> None:
        server, serving = await idle_server()
        await asyncio.sleep(0.5)
        loop = asyncio.get_running_loop()
        asked_at = loop.time()

        server.handle_exit(signal.SIGTERM, None)
        await serving

        assert loop.time() - asked_at < 0.1

    run_virtual(end())
