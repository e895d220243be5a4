"""A clock that jumps, except for tests in which another process has to keep up."""

import asyncio

import pytest
from bench.virtual_loop import VirtualTimeLoop

ON_THE_REAL_CLOCK = {"test_net_snmp.py"}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, type[asyncio.AbstractEventLoop]]:
    """Let time-outs pass at once where nobody else waits."""
    if item.path.name in ON_THE_REAL_CLOCK:
        return {"real": asyncio.SelectorEventLoop}
    return {"virtual": VirtualTimeLoop}
