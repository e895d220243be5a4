"""Where a run can be hit, and how: the victim stops at the named point, tells, and waits for what is to happen.

The points are wrapped around the product's functions from outside; the product knows nothing of them.
"""

import json
import os
import select
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

PATIENCE_SECONDS = 30.0
# Far enough into the walk that it has pages behind it and before it; the first check comes before any packet.
CHECK_IN_MID_WALK = 4


class Point(StrEnum):
    """A moment in the life of a composite."""

    AFTER_CLAIM = "after claim"
    AFTER_TAKE = "after take"
    MID_WALK = "mid-walk"
    BETWEEN_CHECK_AND_SEND = "between check and send"
    DURING_RENEWAL = "during lease renewal"
    BEFORE_STORE = "before store"
    INSIDE_STORE = "inside store"
    BETWEEN_MEMBERS = "between chain members"
    AFTER_STORE = "after store"


class Fault(StrEnum):
    """What happens to the process there."""

    KILL = "kill -9"
    STOP = "stopped longer than the lease"
    EXCEPTION = "exception"
    DATABASE_LOST = "database lost"


class Verdict(StrEnum):
    """What the victim does after its wait; one that was killed gets none."""

    GO_ON = "g"
    RAISE = "r"
    WRITES_FAIL = "w"


class Injected(Exception):
    """A defect that only tests have."""


class Ambush:
    """Waits at one point, once; `spring` is called there by the victim itself."""

    def __init__(self) -> None:
        self._heard, self._tell = os.pipe()
        self._verdict, self._judge = os.pipe()
        self._is_sprung = False

    def spring(self) -> None:
        """Tell that the point is reached and do as the answer says."""
        if self._is_sprung:
            return
        self._is_sprung = True
        os.write(self._tell, json.dumps({"at": time.monotonic()}).encode())
        ready, _, _ = select.select([self._verdict], [], [], PATIENCE_SECONDS)
        if not ready:
            os._exit(9)
        verdict = Verdict(os.read(self._verdict, 1).decode())
        if verdict is Verdict.RAISE:
            raise Injected
        if verdict is Verdict.WRITES_FAIL:
            _refuse_writes()

    def wait(self) -> float | None:
        """Return when the victim reached the point, by the monotonic clock; None when it never did."""
        ready, _, _ = select.select([self._heard], [], [], PATIENCE_SECONDS)
        return float(json.loads(os.read(self._heard, 4096))["at"]) if ready else None

    def decide(self, verdict: Verdict) -> None:
        """Let the victim go on."""
        os.write(self._judge, verdict.encode())


def lay(point: Point, ambush: Ambush) -> None:
    """Wrap the product's own functions in this process, so that the victim meets the ambush."""
    from facho.executions import runner, store
    from facho.executions.runner import Claim
    from facho.zabbix_pollers import store as pollers

    spring, members = ambush.spring, runner.NodeRunner
    lay_one: dict[Point, Callable[[], None]] = {
        Point.AFTER_CLAIM: lambda: _after(pollers, "claim_assignments", spring, when=bool),
        Point.AFTER_TAKE: lambda: _after(store, "take", spring),
        Point.MID_WALK: lambda: _before(Claim, "check", spring, call=CHECK_IN_MID_WALK),
        Point.BETWEEN_CHECK_AND_SEND: lambda: _after(Claim, "check", spring, call=CHECK_IN_MID_WALK),
        Point.DURING_RENEWAL: lambda: _after(store, "renew", spring),
        Point.BEFORE_STORE: lambda: _before(members, "_finish", spring),
        Point.INSIDE_STORE: lambda: _after(runner, "open_next", spring),
        Point.BETWEEN_MEMBERS: lambda: _after(members, "_finish", spring, when=_is_followed),
        Point.AFTER_STORE: lambda: _after(members, "_finish", spring, when=_is_the_last),
    }
    lay_one[point]()


def _is_followed(finished: Any) -> bool:
    return finished is not None and finished.following is not None


def _is_the_last(finished: Any) -> bool:
    return finished is not None and finished.following is None


def _before(place: Any, name: str, spring: Callable[[], None], *, call: int = 1) -> None:
    original, calls = getattr(place, name), [0]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            spring()
        return original(*args, **kwargs)

    setattr(place, name, wrapped)


def _after(
    place: Any,
    name: str,
    spring: Callable[[], None],
    *,
    call: int = 1,
    when: Callable[[Any], bool] = lambda result: True,
) -> None:
    original, calls = getattr(place, name), [0]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        calls[0] += 1
        if calls[0] >= call and when(result):
            spring()
        return result

    setattr(place, name, wrapped)


def _refuse_writes() -> None:
    """Let SQLite refuse the rest of the transaction, as a disk does that became read-only."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = 1")
