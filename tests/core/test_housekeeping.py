"""Chores: the trouble of one OLT is reported and is not the others', and a long one ends when it is no longer ours."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from facho.core.processes import housekeeping as processes_housekeeping
from facho.core.processes.housekeeping import CLEANUP_BATCH, Housekeeping, _for_each, cleaning_up
from facho.core.wiring import OltBusy, Parts
from facho.execution_coordinator.retention import RETENTIONS, Retention
from facho.executions.runner import Hints
from facho.infrastructure.gateway import SystemClock
from facho.infrastructure.storage import Reserve, Storage

BUSY, BROKEN, SOUND = 1, 2, 3


async def test_one_olts_trouble_is_logged_and_the_others_are_asked(caplog: pytest.LogCaptureFixture) -> None:
    asked = []

    async def ask(olt_id: int) -> None:
        if olt_id == BUSY:
            raise OltBusy
        if olt_id == BROKEN:
            raise RuntimeError("no such row")
        asked.append(olt_id)

    with caplog.at_level(logging.INFO, logger="facho.core.processes.housekeeping"):
        await _for_each(ask, [BUSY, BROKEN, SOUND])

    assert asked == [SOUND]
    assert [record.getMessage() for record in caplog.records] == ["housekeeping.probe_failed olt=2"]
    assert "no such row" in caplog.text


class Shelf:
    """Expired rows, in every table so many batches and one more, and the thread that deletes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
        self.left = dict.fromkeys((retention.model for retention in RETENTIONS), batches * CLEANUP_BATCH + 1)
        self.asked: list[str] = []
        monkeypatch.setattr(processes_housekeeping, "delete_expired", self._delete)
        self.storage = Storage(reserve=None)

    def aside(self) -> "Shelf":
        """Have no other thread."""
        return self

    def _delete(self, retention: Retention, _now: datetime, batch_size: int) -> int:
        self.asked.append(retention.model)
        deleted = min(batch_size, self.left[retention.model])
        self.left[retention.model] -= deleted
        return deleted

    async def run(self, call: Callable[..., int], /, *args: Any) -> int:
        """Let others have their turn, as a thread does."""
        await asyncio.sleep(0)
        return call(*args)

    async def close(self) -> None:
        """Have nothing to close."""


async def clean_up(shelf: Any, is_wanted: Callable[[], bool], is_over: Callable[[], bool]) -> None:
    """Keep a house that has no other database until it is over, or until everybody has had many turns."""
    nothing: Any = None
    stop = asyncio.Event()
    house = Housekeeping(Parts(nothing, shelf, SystemClock(), "engine/test", Hints(), shelf.storage), stop, is_wanted)
    cleaning = asyncio.create_task(cleaning_up(house))
    for _ in range(1_000):
        if is_over():
            stop.set()
        await asyncio.sleep(0)
    stop.set()
    await cleaning


async def test_each_table_is_cleaned_to_its_end_and_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(monkeypatch, batches=2)

    await clean_up(shelf, is_wanted=lambda: True, is_over=lambda: False)

    assert shelf.asked == [retention.model for retention in RETENTIONS for _ in range(3)]


async def test_a_long_clean_up_ends_when_asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(monkeypatch, batches=10)

    await clean_up(shelf, is_wanted=lambda: True, is_over=lambda: len(shelf.asked) >= 2)

    assert len(shelf.asked) <= 3


async def test_a_long_clean_up_ends_when_another_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(monkeypatch, batches=10)

    await clean_up(shelf, is_wanted=lambda: len(shelf.asked) < 2, is_over=lambda: False)

    assert len(shelf.asked) == 2


async def test_nothing_is_tidied_while_nothing_can_be_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shelf = Shelf(monkeypatch, batches=1)
    monkeypatch.setattr(Reserve, "free_bytes", 0)
    shelf.storage = Storage(Reserve(tmp_path / "disk-reserve"))

    await clean_up(shelf, is_wanted=lambda: True, is_over=lambda: False)

    assert shelf.asked == []


class Months:
    """Counts the looks for a month that is due, while one may have been asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks, self.is_begun = 0, False
        monkeypatch.setattr(processes_housekeeping, "REPORT_SECONDS", 0.0)
        monkeypatch.setattr(processes_housekeeping, "compute_some", self._look)
        monkeypatch.setattr(processes_housekeeping, "is_any_begun", lambda: self.is_begun)
        monkeypatch.setattr(processes_housekeeping, "write_reports", lambda _now: 0)

    def _look(self, _now: datetime) -> int:
        self.looks += 1
        self.is_begun = False
        return 0


async def test_month_that_was_asked_for_begins_before_the_next_look_for_due_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    months, shelf, nothing, stop = Months(monkeypatch), Shelf(monkeypatch, 0), cast(Any, None), asyncio.Event()
    parts = Parts(nothing, cast(Any, shelf), SystemClock(), "engine/test", Hints(), shelf.storage)
    reporting = asyncio.create_task(processes_housekeeping.reporting(Housekeeping(parts, stop)))
    await turns(50)
    looks_before = months.looks

    months.is_begun = True
    await turns(50)
    stop.set()
    await reporting

    assert (looks_before, months.looks) == (1, 2)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
