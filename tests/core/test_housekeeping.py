"""Chores on many OLTs: the trouble of one is told, and is not the others'."""

import logging

import pytest

from facho.core.housekeeping import _for_each
from facho.core.wiring import OltBusy

BUSY, BROKEN, SOUND = 1, 2, 3


async def test_one_olts_trouble_is_logged_and_the_others_are_asked(caplog: pytest.LogCaptureFixture) -> None:
    asked = []

    async def ask(olt_id: int) -> None:
        if olt_id == BUSY:
            raise OltBusy
        if olt_id == BROKEN:
            raise RuntimeError("no such row")
        asked.append(olt_id)

    with caplog.at_level(logging.INFO, logger="facho.core.housekeeping"):
        await _for_each(ask, [BUSY, BROKEN, SOUND])

    assert asked == [SOUND]
    assert [record.getMessage() for record in caplog.records] == ["housekeeping.probe_failed olt=2"]
    assert "no such row" in caplog.text
