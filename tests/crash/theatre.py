"""Plays scenes with real processes: run as a script, it forks a process for each, on a database of its own.

A scene is a module with `play(order) -> findings`. Orders come as JSON on stdin, findings leave as a JSON line each.
"""

import json
import os
import select
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from servers.child import end_with_parent

Play = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Actor:
    """A forked process that plays one scene, and the pipe on which its findings come."""

    pid: int
    number: int
    findings: int


def main() -> None:
    """Play the orders of stdin, some at once, each on a copy of one migrated database."""
    end_with_parent()
    commission = json.load(sys.stdin)
    from crash.databases import Template
    from facho.core.product import open_product

    open_product()
    # Once for all: an engine that loads it after the fork would begin seconds late.
    import_module("facho.core.processes.engine")
    play: Play = import_module(commission["scene"]).play
    with Template.open() as template:
        for line in _play_all(play, template, commission["orders"], at_once=commission["at_once"]):
            print(line, flush=True)  # noqa: T201 what a script is for


def _play_all(play: Play, template: Any, orders: list[dict[str, Any]], *, at_once: int) -> Iterator[str]:
    waiting = list(enumerate(orders))
    acting: dict[int, Actor] = {}
    message: dict[int, bytes] = {}
    while waiting or acting:
        while waiting and len(acting) < at_once:
            number, order = waiting.pop(0)
            actor = _fork(play, template, number, order)
            acting[actor.findings] = actor
        for pipe in select.select(list(acting), [], [])[0]:
            chunk = os.read(pipe, 65_536)
            message[pipe] = message.get(pipe, b"") + chunk
            if not chunk:
                yield _reap(acting.pop(pipe), message.pop(pipe), template)


def _fork(play: Play, template: Any, number: int, order: dict[str, Any]) -> Actor:
    findings, tell = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tell)
        return Actor(pid, number, findings)
    end_with_parent()
    try:
        template.enter_copy(number)
        found = {**order, **play(order)}
    except BaseException:  # noqa: BLE001 the trouble of a forked process has to reach the test
        found = {**order, "trouble": traceback.format_exc()}
    with os.fdopen(tell, "w") as pipe:
        json.dump(found, pipe)
    os._exit(0)


def _reap(actor: Actor, said: bytes, template: Any) -> str:
    os.close(actor.findings)
    os.waitpid(actor.pid, 0)
    template.drop_copy(actor.number)
    return said.decode()


if __name__ == "__main__":
    main()
