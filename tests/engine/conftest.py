"""A clock that jumps, for the tests of time-outs."""

import asyncio

import pytest

from polling.snmp.snmp_virtual_loop import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, type[asyncio.AbstractEventLoop]]:
    """Let time-outs pass at once, except where another process has to keep up."""
    if item.get_closest_marker("slow"):
        return {"real": asyncio.SelectorEventLoop}
    return {"virtual": VirtualTimeLoop}
