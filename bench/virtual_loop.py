"""An event loop with real sockets and a virtual clock: the hours of a simulation pass in seconds.

Everything that waits has to live in the loop, the agents as well as their manager: the clock jumps when nothing
is left to do, and knows nothing of other threads and processes.
"""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any

# How long, in real time, a datagram on the loopback may need before silence is taken for silence.
_GRACE_SECONDS = 0.001


class _JumpingSelector(selectors.BaseSelector):
    def __init__(self) -> None:
        self.now = 1_000.0
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return self._real.select(None)
        ready = self._real.select(min(timeout, _GRACE_SECONDS))
        if not ready:
            self.now += max(0.0, timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer as soon as no socket is readable."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now
