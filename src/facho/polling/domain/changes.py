"""An OLT with its tasks as the coordinator sees it, and the changes between two passes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any


class ChangeType(StrEnum):
    TASK_ADDED = "task_added"
    TASK_REMOVED = "task_removed"
    TASK_INTERVAL_CHANGED = "task_interval_changed"
    OLT_ENABLED = "olt_enabled"
    OLT_DISABLED = "olt_disabled"
    OLT_UNREACHABLE = "olt_unreachable"
    OLT_BACK = "olt_back"


@dataclass(frozen=True, slots=True)
class Task:
    node_id: int
    task_type: str
    interval_seconds: int


@dataclass(frozen=True, slots=True)
class OltView:
    """Settings of an OLT and whether it answers; nothing that changes by itself."""

    enabled: bool
    is_silent: bool
    tasks: tuple[Task, ...]
    # No change by itself, but plans are rebuilt when its first discovery is over.
    is_discovered: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; `task` is the current one, or the former one if removed."""

    type: ChangeType
    task: Task | None = None
    interval_before_seconds: int | None = None


def state_hash(view: OltView) -> str:
    """Return the SHA-256 of the view, independent of the order of tasks."""
    tasks = sorted((task.node_id, task.task_type, task.interval_seconds) for task in view.tasks)
    # Only what differs from the rule is added, so that the hash of an OLT is what earlier versions remember.
    undiscovered = [] if view.is_discovered else ["undiscovered"]
    return sha256(json.dumps([view.enabled, view.is_silent, tasks, *undiscovered]).encode()).hexdigest()


def detect_changes(before: OltView | None, now: OltView) -> list[Change]:
    """List changes since the last check; on the first check all tasks are new."""
    if before is None:
        return [Change(ChangeType.TASK_ADDED, task) for task in now.tasks]
    changes = []
    if before.enabled != now.enabled:
        changes.append(Change(ChangeType.OLT_ENABLED if now.enabled else ChangeType.OLT_DISABLED))
    if before.is_silent != now.is_silent:
        changes.append(Change(ChangeType.OLT_UNREACHABLE if now.is_silent else ChangeType.OLT_BACK))
    old, new = ({task.node_id: task for task in view.tasks} for view in (before, now))
    changes += [Change(ChangeType.TASK_REMOVED, old[node_id]) for node_id in old.keys() - new.keys()]
    changes += [Change(ChangeType.TASK_ADDED, new[node_id]) for node_id in new.keys() - old.keys()]
    for node_id in new.keys() & old.keys():
        if old[node_id].interval_seconds != new[node_id].interval_seconds:
            changes.append(Change(ChangeType.TASK_INTERVAL_CHANGED, new[node_id], old[node_id].interval_seconds))
    return changes


def to_json(view: OltView) -> dict[str, Any]:
    return {"enabled": view.enabled, "is_silent": view.is_silent, "tasks": [asdict(task) for task in view.tasks]}


def from_json(values: Mapping[str, Any]) -> OltView:
    return OltView(values["enabled"], values["is_silent"], tuple(Task(**task) for task in values["tasks"]))
