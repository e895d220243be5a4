"""What an OLT and its tasks are to the coordinator, and what changed between two looks at them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any


class ChangeType(StrEnum):
    """What can change about an OLT."""

    TASK_ADDED = "task_added"
    TASK_REMOVED = "task_removed"
    TASK_INTERVAL_CHANGED = "task_interval_changed"
    OLT_ENABLED = "olt_enabled"
    OLT_DISABLED = "olt_disabled"
    OLT_UNREACHABLE = "olt_unreachable"
    OLT_BACK = "olt_back"


@dataclass(frozen=True, slots=True)
class Task:
    """A job that runs on an OLT; one that is suspended still does."""

    node_id: int
    task_type: str
    interval_seconds: int


@dataclass(frozen=True, slots=True)
class OltView:
    """What matters about an OLT: what an operator set, and whether it answers. Nothing that moves by itself."""

    enabled: bool
    is_silent: bool
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; `task` as it is now, or as it was when it is gone."""

    type: ChangeType
    task: Task | None = None
    interval_before_seconds: int | None = None


def state_hash(view: OltView) -> str:
    """Return the SHA-256 of what matters; the order of the tasks does not."""
    tasks = sorted((task.node_id, task.task_type, task.interval_seconds) for task in view.tasks)
    return sha256(json.dumps([view.enabled, view.is_silent, tasks]).encode()).hexdigest()


def detect_changes(before: OltView | None, now: OltView) -> list[Change]:
    """List what changed since the OLT was looked at last; all its tasks are new when it never was."""
    if before is None:
        return [Change(ChangeType.TASK_ADDED, task) for task in now.tasks]
    return [*_changes_of_olt(before, now), *_changes_of_tasks(before, now)]


def to_json(view: OltView) -> dict[str, Any]:
    """Put a view into values that JSON keeps."""
    return {"enabled": view.enabled, "is_silent": view.is_silent, "tasks": [asdict(task) for task in view.tasks]}


def from_json(values: Mapping[str, Any]) -> OltView:
    """Read back what `to_json` wrote."""
    return OltView(values["enabled"], values["is_silent"], tuple(Task(**task) for task in values["tasks"]))


def _changes_of_olt(before: OltView, now: OltView) -> Iterator[Change]:
    if before.enabled != now.enabled:
        yield Change(ChangeType.OLT_ENABLED if now.enabled else ChangeType.OLT_DISABLED)
    if before.is_silent != now.is_silent:
        yield Change(ChangeType.OLT_UNREACHABLE if now.is_silent else ChangeType.OLT_BACK)


def _changes_of_tasks(before: OltView, now: OltView) -> Iterator[Change]:
    old, new = ({task.node_id: task for task in view.tasks} for view in (before, now))
    for node_id in old.keys() - new.keys():
        yield Change(ChangeType.TASK_REMOVED, old[node_id])
    for node_id in new.keys() - old.keys():
        yield Change(ChangeType.TASK_ADDED, new[node_id])
    for node_id in new.keys() & old.keys():
        if old[node_id].interval_seconds != new[node_id].interval_seconds:
            yield Change(ChangeType.TASK_INTERVAL_CHANGED, new[node_id], old[node_id].interval_seconds)
