"""A run in the hands of a runner, as plain values; how each try of it ended, and what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from facho.executions.models import Execution, ExecutionAttempt, HintRead, OnuRead
from facho.hosts.models import Olt
from facho.infrastructure.statements import Given, Insert, Select
from facho.polling.domain.collection import Collected, CollectRequest, Failure, FreeOid, Summary
from facho.polling.domain.execution_state import UNREACHABLE, ExecutionState, FailureKind, QueryType
from facho.polling.domain.hints import HintedRead, ReadScope
from facho.polling.domain.onu_presence import MISPLACED_ROWS, Sign
from facho.polling.domain.retry import SILENCE, AfterFailure, RetryPolicy, decide_after_failure
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import next_slot_after_try


@dataclass(frozen=True, slots=True)
class Run:
    execution_id: int
    token: int
    olt_id: int
    node_id: int | None
    poller_id: int | None
    poller_group: str
    slot_at: datetime | None
    task_type: str
    origin: str
    attempt: int
    started_at: datetime
    master_execution_id: int | None
    chain_position: int
    request: CollectRequest
    # What its earlier slices and tries brought.
    result: Summary


_COPIED = (
    *("token", "olt_id", "node_id", "poller_id", "poller_group", "slot_at", "task_type", "origin", "attempt"),
    *("master_execution_id", "chain_position"),
)
# What a runner needs of the row of an execution; first its key.
RUN_COLUMNS = ("id", *_COPIED, "started_at", "created_at", "address", "port", "cursor", "result")


def runs(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Select executions with what `run_of` copies, and nothing that is secret."""
    return executions.only(*RUN_COLUMNS, "status")


def run_of(execution: Execution) -> Run:
    return build_run([getattr(execution, name) for name in RUN_COLUMNS])


def build_run(columns: Sequence[Any]) -> Run:
    """Put a run together from the columns of its row; what it reads is loaded, in one query."""
    row = dict(zip(RUN_COLUMNS, columns, strict=True))
    return Run(
        execution_id=row["id"],
        started_at=row["started_at"] or row["created_at"],
        request=_collect_request(row),
        result=row["result"] or {},
        **{name: row[name] for name in _COPIED},
    )


_OPEN_ATTEMPT = Insert(ExecutionAttempt, ("execution_id", "number", "status", "started_at", "failure_kind", "error"))


def open_attempt(run: Run, now: datetime) -> None:
    """Begin the attempt's row; a later slice of the same attempt leaves it as it is."""
    _OPEN_ATTEMPT.run(
        execution_id=run.execution_id,
        number=run.attempt,
        status=ExecutionState.RUNNING,
        started_at=now,
        failure_kind="",
        error="",
    )


# Of a node: the vendor of its OLT, how its job reads, whether it ever did, and each thing that it reads.
_READS = Select(
    lambda: (
        WorkflowNode.objects.filter(id=Given("node_id"))
        .order_by("job__oids__position", "job__oids__id")
        .values_list(
            "workflow__olt__vendor",
            "job__query_type",
            "last_run_at",
            "job__oids__column_key",
            "job__oids__oid",
            "job__oids__name",
            "job__oids__unit",
        )
    )
)


def _collect_request(row: Mapping[str, Any]) -> CollectRequest:
    device = (row["olt_id"], row["address"], row["port"])
    reads = _READS.rows(node_id=row["node_id"]) if row["node_id"] else []
    if not reads:
        # Return where the ONU is that a person wants to have read, if that is what the execution is for.
        vendor = Olt.objects.values_list("vendor", flat=True).get(id=row["olt_id"])
        wish = OnuRead.objects.filter(execution_id=row["id"])
        onu = wish.values_list(
            "onu__pon_port__frame", "onu__pon_port__slot", "onu__pon_port__port", "onu__onu_id"
        ).first()
        hint = None if onu else _hinted(row["id"])
        return CollectRequest(*device, vendor, QueryType.GET, columns=(), onu=onu, hint=hint)
    vendor, query_type, last_run_at, *_ = reads[0]
    return CollectRequest(
        *device,
        vendor=vendor,
        query_type=QueryType(query_type),
        columns=tuple(key for _, _, _, key, *_ in reads if key),
        cursor=row["cursor"],
        oids=tuple(FreeOid(oid, name, unit) for *_, oid, name, unit in reads if oid),
        is_first=last_run_at is None,
    )


def _hinted(execution_id: int) -> HintedRead | None:
    """Return what an execution was started for by a notification; None if by something else."""
    row = HintRead.objects.filter(execution_id=execution_id).first()
    if row is None:
        return None
    if row.is_whole:
        return HintedRead(ReadScope.STATES)
    return HintedRead(ReadScope.PORT, row.frame, row.slot, row.port, row.onu_number)


# After these the OLT would not answer the rest of the chain either, or may not be asked.
STOPS_THE_CHAIN = frozenset({FailureKind.AUTH, FailureKind.CANCELLED})

NOTHING_TO_ASK = Failure(FailureKind.NO_ONUS, "there was nothing to ask: no ONU of this OLT is known")


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of one try or slice for an execution and its node."""

    state: ExecutionState
    failure: Failure | None = None
    resume_at: datetime | None = None
    cursor: Mapping[str, int] | None = None
    failures_in_a_row: int = 0
    suspends: bool = False
    # The OLT did not answer a single packet; an error that it sent is an answer.
    is_silence: bool = False

    @property
    def is_final(self) -> bool:
        """Whether the execution is over; otherwise it waits to continue."""
        return self.state is not ExecutionState.WAITING

    @property
    def allows_chain(self) -> bool:
        """Return whether the next member of the chain may be asked."""
        if not self.is_final or self.state is ExecutionState.INTERRUPTED or self.is_silence:
            return False
        return self.failure is None or self.failure.kind not in STOPS_THE_CHAIN


def judge(run: Run, collected: Collected, now: datetime) -> Ending:
    """Decide how the try ended; a yielded slice waits for its turn with the same attempt.

    A run that had nothing to ask is no success: it would count for its quota and teach that it takes no time.
    """
    if collected.failure is None and collected.cursor is not None:
        return Ending(ExecutionState.WAITING, resume_at=now, cursor=collected.cursor)
    if collected.failure is None and collected.is_empty and run.request.cursor is None:
        return Ending(ExecutionState.SKIPPED, NOTHING_TO_ASK)
    if collected.failure is None:
        return Ending(ExecutionState.SUCCESS)
    after = _after_failure(run, collected.failure, now)
    if collected.failure.kind is FailureKind.CANCELLED:
        state = ExecutionState.INTERRUPTED
    else:
        state = ExecutionState.WAITING if after.resume_at else ExecutionState.FAILED
    return Ending(
        state,
        collected.failure,
        resume_at=after.resume_at,
        cursor=collected.cursor,
        failures_in_a_row=after.failures_in_a_row,
        suspends=after.suspends,
        is_silence=collected.failure.kind in SILENCE and not collected.was_heard,
    )


def judge_death(run: Run, reason: str, now: datetime) -> Ending:
    """Decide what follows when the process of a try died: a failed try like any other, but the last ends interrupted.

    A slice of a long read continues where that slice began.
    """
    died = Collected(failure=Failure(FailureKind.INTERNAL, reason), cursor=run.request.cursor)
    ending = judge(run, died, now)
    return replace(ending, state=ExecutionState.INTERRUPTED) if ending.is_final else ending


def _after_failure(run: Run, failure: Failure, now: datetime) -> AfterFailure:
    node = WorkflowNode.objects.select_related("job").filter(id=run.node_id).first() if run.node_id else None
    if node is None:
        return AfterFailure(failures_in_a_row=0)
    if node.is_chain_node:
        # Not tried again alone: its next chance is the next run of its master.
        after = _decide(node, failure, next_slot_at=now, now=now)
        return AfterFailure(after.failures_in_a_row, suspends=after.suspends)
    return _decide(node, failure, next_slot_at=next_slot_after_try(node, now), now=now)


def _decide(node: WorkflowNode, failure: Failure, *, next_slot_at: datetime | None, now: datetime) -> AfterFailure:
    return decide_after_failure(
        failure.kind,
        failures_before=node.consecutive_failures,
        policy=RetryPolicy(node.job.max_attempts, node.job.retry_delay_seconds),
        next_slot_at=next_slot_at,
        now=now,
    )


FAILURES: dict[str, Promise] = {
    FailureKind.TIMEOUT: _(
        "It does not answer. Check its power, the address and any firewall in between. A wrong "
        "community looks the same."
    ),
    FailureKind.REFUSED: _("Nothing listens for SNMP at this address and port."),
    FailureKind.AUTH: _("It refuses our credentials: check community or SNMPv3 user and keys."),
    FailureKind.TOO_BIG: _("It cannot answer requests even of the smallest size."),
    FailureKind.MALFORMED: _("Its answer was not valid SNMP."),
    FailureKind.LOOP: _("It sent the same rows again and again; the read was stopped."),
    FailureKind.TOO_MUCH: _(
        "It sent more than a run may keep, so nothing was stored. Check that this is your OLT; if it is that large,"
        " read fewer columns in one job."
    ),
    FailureKind.MISSING: _("It does not have the table that was asked for."),
    FailureKind.NO_ONUS: _("There was nothing to read: no ONU of this OLT is known."),
    FailureKind.HIDDEN_ONUS: _("It has ONUs, but does not list them. Is its SNMP view open for the tables of ONUs?"),
    FailureKind.CANCELLED: _("The read was stopped before its end."),
    FailureKind.INTERNAL: _("Facho itself failed; the log says why."),
}


def explain_failure(kind: str, summary: Mapping[str, object]) -> str:
    """Say why a run failed, with the numbers of its summary where its kind has some."""
    counts = {sign: count for sign in Sign if isinstance(count := summary.get(sign), int)}
    if kind != FailureKind.HIDDEN_ONUS or not counts:
        return str(FAILURES.get(kind, kind))
    sign, onus = next(iter(counts.items()))
    words = {
        Sign.UNPLACED: ngettext(
            "Its tables list %(n)s ONU, but not at which place. Is its SNMP view closed, or its vendor another?",
            "Its tables list %(n)s ONUs, but not at which places. Is its SNMP view closed, or its vendor another?",
            onus,
        ),
        Sign.COUNTED: ngettext(
            "Its PON ports count %(n)s ONU, but its tables of ONUs are empty. Is its SNMP view closed for them?",
            "Its PON ports count %(n)s ONUs, but its tables of ONUs are empty. Is its SNMP view closed for them?",
            onus,
        ),
        Sign.KNOWN: ngettext(
            "%(n)s ONU is known, but its tables of ONUs are empty. Is its SNMP view closed for them?"
            " If it was taken out of use, disable the OLT.",
            "%(n)s ONUs are known, but its tables of ONUs are empty. Is its SNMP view closed for them?"
            " If it was taken out of use, disable the OLT.",
            onus,
        ),
    }
    return words[sign] % {"n": onus}


def warn_of_places(summary: Mapping[str, object]) -> str:
    """Say that most rows of a discovery have no place, or that none of its ONUs has a serial; else empty."""
    rows = summary.get(MISPLACED_ROWS)
    if isinstance(rows, int):
        return ngettext(
            "%(n)s row of its tables of ONUs has an unknown number and is not read. Is its vendor another?"
            " Record it with `facho record` and report it.",
            "%(n)s rows of its tables of ONUs have unknown numbers and are not read. Is its vendor another?"
            " Record it with `facho record` and report it.",
            rows,
        ) % {"n": rows}
    onus = summary.get("by_place")
    if not isinstance(onus, int) or onus != summary.get("onus"):
        return ""
    return ngettext(
        "It lists %(n)s ONU, but no serial: the ONU is known by its place. Is its SNMP view closed for that column?",
        "It lists %(n)s ONUs, but no serials: the ONUs are known by their places. Is its SNMP view closed for that"
        " column?",
        onus,
    ) % {"n": onus}


# Short, for a line of a list.
FAILURES_IN_SHORT: dict[str, Promise] = {
    UNREACHABLE: pgettext_lazy("failure", "OLT does not answer"),
    FailureKind.TIMEOUT: pgettext_lazy("failure", "no answer"),
    FailureKind.REFUSED: pgettext_lazy("failure", "nothing listens"),
    FailureKind.AUTH: pgettext_lazy("failure", "credentials refused"),
    FailureKind.TOO_BIG: pgettext_lazy("failure", "answers do not fit"),
    FailureKind.MALFORMED: pgettext_lazy("failure", "not valid SNMP"),
    FailureKind.LOOP: pgettext_lazy("failure", "rows repeat"),
    FailureKind.TOO_MUCH: pgettext_lazy("failure", "too much data"),
    FailureKind.MISSING: pgettext_lazy("failure", "table missing"),
    FailureKind.NO_ONUS: pgettext_lazy("failure", "no ONUs to ask"),
    FailureKind.HIDDEN_ONUS: pgettext_lazy("failure", "ONUs hidden"),
    FailureKind.CANCELLED: pgettext_lazy("failure", "stopped"),
    FailureKind.INTERNAL: pgettext_lazy("failure", "Facho failed"),
}
