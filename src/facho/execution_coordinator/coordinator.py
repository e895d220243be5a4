"""Watches every OLT: finds what changed since the last look, acts on it, and keeps the quotas counted.

It starts nothing; the scheduler does. All it remembers is in the database: a pass that dies is done again.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from facho.execution_coordinator import actions, quotas, violations
from facho.execution_coordinator.change_log import log_change
from facho.execution_coordinator.logger import coordinator_logger
from facho.execution_coordinator.models import EventType, Level, OltState
from facho.execution_coordinator.plans import keep_plans, rebuild_plans
from facho.execution_coordinator.state import OltRow, load_olts
from facho.executions.models import Execution
from facho.polling.domain.changes import Change, OltView, detect_changes, from_json, state_hash, to_json
from facho.polling.domain.quota import hour_of
from facho.snmp_jobs.store import pass_suspended

logger = logging.getLogger(__name__)

# Between two counts of everything only OLTs are counted whose runs ended or whose tasks changed.
COUNT_ALL = timedelta(seconds=60)


class ExecutionCoordinator:
    """One pass every few seconds over all OLTs."""

    def __init__(self) -> None:
        self._looked_at: datetime | None = None
        self._counted_at: datetime | None = None
        self._closed_before: datetime | None = None

    def run_pass(self, now: datetime) -> None:
        """Look at everything once: changes, quotas, violations, plans."""
        pass_suspended(now)
        olts = self.get_system_state()
        changed = self._handle_all(olts, now)
        self._count(load_olts() if changed else olts, changed, now)
        keep_plans(olts, now)
        self._looked_at = now

    def get_system_state(self) -> dict[int, OltRow]:
        """Read every OLT with its tasks as they are now."""
        return load_olts()

    def calculate_state_hash(self, state: OltRow) -> str:
        """Return the SHA-256 of what matters about an OLT: equal as long as nobody changes anything."""
        return state_hash(state.view)

    def detect_changes(self, before: OltView | None, state: OltRow) -> list[Change]:
        """List what changed since the OLT was looked at last."""
        return detect_changes(before, state.view)

    @transaction.atomic
    def handle_changes(self, state: OltRow, changes: Sequence[Change], now: datetime) -> None:
        """Act on the changes of one OLT, tell them, plan again, and remember what was seen; all or nothing."""
        for change in changes:
            actions.act_on(state.olt_id, change, now)
            log_change(state.olt_id, change)
        rebuild_plans([state.olt_id], now)
        self._save(state, now)

    def _handle_all(self, olts: Mapping[int, OltRow], now: datetime) -> list[int]:
        """Handle each OLT that is not as it was; an error in one does not keep the others waiting."""
        known = dict(OltState.objects.values_list("olt_id", "state_hash"))
        changed = [olt_id for olt_id, state in olts.items() if known.get(olt_id) != self.calculate_state_hash(state)]
        for olt_id in changed:
            try:
                before = OltState.objects.filter(olt_id=olt_id).first()
                view = from_json(before.state) if before else None
                self.handle_changes(olts[olt_id], self.detect_changes(view, olts[olt_id]), now)
            except Exception:  # a loop guard: one OLT that cannot be handled must not stop the others
                logger.exception("coordinator.olt_failed olt=%s", olt_id)
        return changed

    def _save(self, state: OltRow, now: datetime) -> None:
        values = {"state": to_json(state.view), "state_hash": self.calculate_state_hash(state), "saved_at": now}
        OltState.objects.update_or_create(olt_id=state.olt_id, defaults=values)

    def _count(self, olts: Mapping[int, OltRow], changed: Sequence[int], now: datetime) -> None:
        """Count the quotas of everything once a minute, and of what moved in between."""
        if self._is_time_to_count_all(now):
            self._count_all(olts, now)
            return
        moved = {olt_id: olts[olt_id] for olt_id in {*changed, *self._ended_since_last_look()} if olt_id in olts}
        if moved:
            self._tell(quotas.refresh_quotas(moved, now, is_all=False))

    def _is_time_to_count_all(self, now: datetime) -> bool:
        """Tell whether a minute has passed, the clock was set back, or an hour has just ended and is to be judged.

        Until a first pass came to its end there is no last look to count from.
        """
        last = self._counted_at
        if last is None or self._looked_at is None:
            return True
        return not last <= now < last + COUNT_ALL or hour_of(last) != hour_of(now)

    def _count_all(self, olts: Mapping[int, OltRow], now: datetime) -> None:
        refreshed = quotas.refresh_quotas(olts, now, is_all=True)
        self._tell(refreshed)
        violations.raise_violations(refreshed.trackers, olts, now)
        self._close_old_hours(olts, now)
        self._counted_at = now

    def _close_old_hours(self, olts: Mapping[int, OltRow], now: datetime) -> None:
        """Judge, once an hour, what is no longer counted; who was judged is not asked for again, so all or nothing."""
        hour = hour_of(now)
        if self._closed_before == hour.start:
            return
        with transaction.atomic():
            violations.raise_violations(quotas.close_stale(now), olts, now)
        self._closed_before = hour.start

    def _ended_since_last_look(self) -> list[int]:
        ended = Execution.objects.filter(finished_at__gte=self._looked_at, slot_at__isnull=False)
        return list(ended.order_by().values_list("olt_id", flat=True).distinct())

    def _tell(self, refreshed: quotas.Refreshed) -> None:
        for tracker in refreshed.warned:
            coordinator_logger.log_event(
                EventType.QUOTA_WARNING,
                olt_id=tracker.olt_id,
                level=Level.WARNING,
                task_type=tracker.task_type,
                completed=tracker.quota_completed,
                required=tracker.quota_required,
                hour=tracker.period_start.isoformat(),
            )
