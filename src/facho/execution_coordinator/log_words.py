"""Puts the coordinator's events into words, in the language of whoever reads them: the one place that has the words."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from facho.execution_coordinator.log_entry import one_line
from facho.execution_coordinator.models import EventType
from facho.polling.domain.changes import ChangeType

# Of each event the sentences that tell most come first; the first whose values are all there is taken.
_SENTENCES: dict[str, tuple[Promise, ...]] = {
    EventType.TASK_ADDED: (
        _("Task '%(task_type)s' added to the plan, every %(interval_seconds)s s"),
        _("Task '%(task_type)s' added to the plan"),
    ),
    EventType.TASK_REMOVED: (_("Task '%(task_type)s' removed from the plan"),),
    EventType.TASK_MODIFIED: (
        _("Task '%(task_type)s' runs every %(interval_seconds)s s, before every %(interval_before_seconds)s s"),
        _("Task '%(task_type)s' runs every %(interval_seconds)s s, before in a chain"),
        _("Task '%(task_type)s' runs in a chain, before every %(interval_before_seconds)s s"),
        _("Task '%(task_type)s' modified"),
    ),
    EventType.PLAN_CREATED: (_("Plan from %(hour)s created, runs: %(runs)s"),),
    EventType.PLAN_ADJUSTED: (_("Plan from %(hour)s adjusted, runs: %(runs)s"),),
    EventType.EXECUTION_STARTED: (_("Execution of '%(task_type)s' started"),),
    EventType.EXECUTION_COMPLETED: (_("Execution of '%(task_type)s' completed"),),
    EventType.EXECUTION_FAILED: (
        _("Execution of '%(task_type)s' failed: %(reason)s"),
        _("Execution of '%(task_type)s' failed"),
    ),
    EventType.EXECUTION_ABORTED: (
        _("Execution of '%(task_type)s' aborted: %(reason)s"),
        _("Execution of '%(task_type)s' aborted"),
    ),
    EventType.QUOTA_WARNING: (
        _("The quota of '%(task_type)s' will be missed: %(completed)s of %(required)s so far, hour from %(hour)s"),
        _("The quota of '%(task_type)s' will be missed"),
    ),
    EventType.QUOTA_VIOLATION: (
        _("Quota violation [%(severity)s]: %(task_type)s, %(completed)s of %(required)s, hour from %(hour)s"),
        _("Quota violation [%(severity)s]: %(task_type)s"),
    ),
    EventType.OLT_ENABLED: (_("The OLT was enabled"),),
    EventType.OLT_DISABLED: (_("The OLT was disabled: its runs were aborted"),),
    EventType.OLT_UNREACHABLE: (_("The OLT does not answer"),),
    EventType.OLT_BACK: (_("The OLT answers again"),),
    EventType.EMERGENCY_REPLAN: (_("Emergency replan: %(reason)s"),),
}

# Reasons that are codes; any other is somebody's own words.
_REASONS: dict[str, Promise] = {ChangeType.OLT_UNREACHABLE: _("the OLT does not answer")}


def describe(event_type: str, details: object) -> str:
    """Say on one line what happened. Plain text, whatever the values hold: a page has to escape it."""
    values = _words(details) if isinstance(details, Mapping) else {}
    for sentence in _SENTENCES.get(event_type, ()):
        with suppress(KeyError):
            return str(sentence) % values
    labels: dict[str, str | Promise] = dict(EventType.choices)
    return capfirst(str(labels.get(event_type, one_line(event_type))))


def _words(details: Mapping[object, object]) -> dict[str, str]:
    words = {str(name): one_line(value) for name, value in details.items() if value is not None}
    if "hour" in words:
        words["hour"] = _local_time(words["hour"])
    if "reason" in words:
        words["reason"] = str(_REASONS.get(words["reason"], words["reason"]))
    return words


def _local_time(text: str) -> str:
    with suppress(ValueError, OverflowError):
        return f"{localtime(datetime.fromisoformat(text)):%Y-%m-%d %H:%M}"
    return text
